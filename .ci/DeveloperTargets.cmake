# What CI does, as targets: `cmake --build --preset release --target ci_asan`, and so on.
set(presets ci_release=release ci_asan=asan+ubsan ci_tsan=tsan)
foreach(pair IN LISTS presets)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 target)
  list(GET pair 1 preset)
  add_custom_target(${target} USES_TERMINAL
    COMMAND ${CMAKE_COMMAND} --workflow --preset ${preset} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endforeach()
add_custom_target(ci_fresh_debian USES_TERMINAL
  COMMAND ${PROJECT_SOURCE_DIR}/tests/install/fresh_debian.sh)
# Cases that no other commit tried: a long check of the built-in stack, many short ones, and the mutants.
add_custom_target(ci_campaign USES_TERMINAL
  COMMAND ${CMAKE_COMMAND} -D BALLAST=$<TARGET_FILE:ballast> -P ${PROJECT_SOURCE_DIR}/.ci/Campaign.cmake
  DEPENDS ballast WORKING_DIRECTORY ${PROJECT_BINARY_DIR})

# Names each line that clang-format would change; nothing to do where clang-format is not installed.
find_program(CLANG_FORMAT clang-format)
mark_as_advanced(CLANG_FORMAT)
file(GLOB_RECURSE formatted CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  core/*.h core/*.cpp sim/*.h sim/*.cpp tests/*.h tests/*.cpp)
if(CLANG_FORMAT)
  add_custom_target(format COMMAND ${CLANG_FORMAT} --dry-run -Werror ${formatted}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
else()
  add_custom_target(format COMMAND ${CMAKE_COMMAND} -E echo "clang-format is not installed: nothing checked")
endif()

# Every compiler, optimisation, SIMD target, number of threads and split of the tokens: one signature.
add_custom_target(determinism_matrix USES_TERMINAL
  COMMAND ${PROJECT_SOURCE_DIR}/.ci/determinism_matrix.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
