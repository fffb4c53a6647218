# Builds for arm64 on another machine, and runs in an emulator what was built:
#   cmake --preset arm64
#   cmake --build --preset arm64 --target ballast test_core
#   qemu-aarch64-static build/arm64/ballast signature
#   qemu-aarch64-static build/arm64/tests/test_core
# On Debian it needs
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install g++-aarch64-linux-gnu qemu-user-static \
#     libboost-program-options-dev:arm64 libgtest-dev:arm64 librapidcheck-dev:arm64 libmpfr-dev:arm64
# or, to leave the system as it is, those for arm64 unpacked into a folder that CMAKE_PREFIX_PATH names:
#   apt-get download libboost1.74-dev:arm64 libboost-program-options1.74-dev:arm64 libgtest-dev:arm64 \
#     librapidcheck-dev:arm64 libmpfr-dev:arm64 libgmp-dev:arm64
#   for package in *_arm64.deb; do dpkg -x $package arm64; done
#   export CMAKE_PREFIX_PATH=$PWD/arm64/usr
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)

# Programs that bring their libraries, so that the emulator need not be told where those are.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(Boost_USE_STATIC_LIBS ON)
