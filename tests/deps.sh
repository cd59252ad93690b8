#!/bin/bash
# deps.sh build|emulator|clang|tools|systems [CC]: looks whether the compiler finds what the Makefile needs (systems: whether the programs of make test-dist
# are here); installs it on Debian and Ubuntu when it may (root, or sudo without a password), else says in one line what to install. Prints nothing when
# all is there.
what=$1 compiler=${2:-cc} offline=

probe_build() {
    local work status
    work=$(mktemp -d) || return 1
    printf '#include <math.h>\n#include <omp.h>\n#include <stb/stb_image.h>\nint main(void) { return (int)sin(omp_get_max_threads()) > 1; }\n' > "$work/probe.c"
    $compiler -fopenmp "$work/probe.c" -o "$work/probe" -lm >/dev/null 2>&1
    status=$?
    rm -rf "$work"
    return $status
}
probe_emulator() { # the emulated GPU of the tests is C++; the program opens libcurl where it asks a server
    local work status cxx=g++
    case $compiler in *clang*) cxx=${compiler/clang/clang++};; esac
    work=$(mktemp -d) || return 1
    printf '#include <functional>\n#include <dlfcn.h>\nint main() { return !dlopen("libcurl.so.4", RTLD_LAZY) && !dlopen("libcurl-gnutls.so.4", RTLD_LAZY); }\n' \
        > "$work/probe.cc"
    $cxx -std=c++17 "$work/probe.cc" -o "$work/probe" -ldl >/dev/null 2>&1 && "$work/probe"
    status=$?
    rm -rf "$work"
    return $status
}
probe_clang() {
    local work status
    work=$(mktemp -d) || return 1
    printf '#include <omp.h>\n#include <cstdlib>\nint main() { return 0; }\n' > "$work/probe.cc"
    clang++ -fopenmp -fsanitize=address,undefined "$work/probe.cc" -o "$work/probe" >/dev/null 2>&1 && g++ "$work/probe.cc" -fopenmp -o "$work/probe" >/dev/null 2>&1
    status=$?
    rm -rf "$work"
    return $status
}
probe_tools() { command -v shellcheck && command -v codespell && command -v clang-tidy && command -v clang-format && python3 -m venv --help; } >/dev/null 2>&1
probe_systems() { command -v debootstrap && command -v qemu-aarch64-static && command -v dpkg-deb; } >/dev/null

case $what in
    build) packages="gcc libc6-dev libstb-dev" offline="; without a network: bring /usr/include/stb, name the folder that holds it in C_INCLUDE_PATH"
           case $compiler in *clang*) packages="clang libomp-dev libc6-dev libstb-dev";; aarch64-linux-gnu-gcc*) packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross libstb-dev";; esac;;
    emulator) packages="g++ libcurl4"
              case $compiler in *clang*) packages="clang g++ libcurl4";; esac;;
    clang) packages="g++ clang libomp-dev";;
    tools) packages="shellcheck codespell clang-tidy clang-format python3-venv";;
    systems) packages="debootstrap qemu-user-static dpkg";;
    *) echo "usage: deps.sh build|emulator|clang|tools|systems [CC]" >&2; exit 2;;
esac
"probe_$what" && exit 0
become=
if [ "$(id -u)" != 0 ]; then become="sudo -n"; sudo -n true 2>/dev/null || become=no; fi
if [ "$become" != no ] && command -v apt-get >/dev/null; then
    echo "installing $packages" >&2
    { $become apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=15 update -q &&
      $become env DEBIAN_FRONTEND=noninteractive apt-get install -yq $packages; } </dev/null >/dev/null 2>&1
    "probe_$what" && exit 0
fi
echo "vlmprof needs: $packages (Debian and Ubuntu: apt-get install $packages)$offline" >&2
exit 1
