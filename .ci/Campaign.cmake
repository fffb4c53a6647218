# A long campaign of the laws. Its seed is the commit, so that every commit tries cases that no other tried.
#   cmake -D BALLAST=path [-D SEED=n] [-D TIME=30m] [-D SEEDS=200] -P .ci/Campaign.cmake

if(NOT DEFINED SEED)
  execute_process(COMMAND git rev-parse --short=14 HEAD
    WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  string(SUBSTRING ${commit} 0 14 commit)
  math(EXPR SEED "0x${commit}")
endif()
if(NOT DEFINED TIME)
  set(TIME 10m)
endif()
if(NOT DEFINED SEEDS)
  set(SEEDS 200)
endif()
message(STATUS "seed ${SEED}")

function(ballast)
  execute_process(COMMAND ${BALLAST} ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The built-in stack: for long under one seed, and shortly under many.
ballast(check --seed ${SEED} --time-budget ${TIME})
math(EXPR last "${SEEDS} - 1")
foreach(i RANGE ${last})
  math(EXPR seed "${SEED} + ${i}")
  execute_process(COMMAND ${BALLAST} check --seed ${seed}
    OUTPUT_VARIABLE report RESULT_VARIABLE result)
  if(result)
    message(FATAL_ERROR "${report}false alarm of seed ${seed}")
  endif()
endforeach()
message(STATUS "no false alarm under ${SEEDS} seeds")

ballast(mutants --seed ${SEED})
