# Installs the build tree, then configures, builds and runs a program that knows only where it was installed.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${WORK_DIR}/prefix")
run("${WORK_DIR}/prefix/bin/ballast" --help)
run(${CMAKE_COMMAND} -S "${CONSUMER_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
  "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${COMPILER_FLAGS}"
  "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DBALLAST_EXAMPLES=${WORK_DIR}/prefix/share/ballast/examples")
run(${CMAKE_COMMAND} --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/consumer")
run("${WORK_DIR}/build/cpp_router")
file(REMOVE_RECURSE "${WORK_DIR}")
