#!/bin/bash
# slow: builds and installs two projects, 6 s
# Proves that an installation serves: a C project built with pkg-config, a C++ one with CMake, moved to another folder too; its manual pages have no
# roff error; its completion completes; uninstall leaves no file behind.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build} PROGRAM=${RELEASE:-./vlmprof} CC=${CC:-cc}
. tests/check.sh
top=$PWD skipped=0
cxx=g++
case $CC in *clang*) cxx=${CC/clang/clang++};; esac # the archive's OpenMP is its compiler's
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
sanitized=$(sed -n 's/.*\(-fsanitize=[a-z,]*\).*/\1/p' <<<"$SANITIZE")

root=$work/root
check "make install" make install B="$B" PROGRAM="$PROGRAM" CC="$CC" NVCC= DESTDIR="$work/staged" PREFIX=/opt/vlmprof
mkdir -p "$root" && mv "$work/staged/opt/vlmprof" "$root/moved here"
prefix="$root/moved here"
for file in bin/vlmprof include/vlmprof.h include/vlmprof/vlmprof_ranges.hpp lib/libvlmprof.a share/vlmprof/vlmprof_kernels.cu \
    share/vlmprof/parts/engine/backend.h share/man/man1/vlmprof-sweep.1 share/man/man7/vlmprof-tokens.7; do
    check "$file is installed" [ -s "$prefix/$file" ]
done
check "it has no hooks for tests" [ "$(grep -c VLMPROF_TEST_ "$prefix/bin/vlmprof")" = 0 ]
check "the installed program runs" "$prefix/bin/vlmprof" --version
check "its version is the header's" grep -q "^Version: $("$prefix/bin/vlmprof" --version | awk '{ print $2 }')$" "$prefix/lib/pkgconfig/vlmprof.pc"

# a Debian package of the same: its fields, its files, what dpkg installs and removes in an empty root
packages() { # packages COMMAND...: dpkg on that root, as any user
    PATH=$PATH:/usr/sbin:/sbin dpkg --root="$work/debian" --force-not-root --force-depends --force-script-chrootless --log="$work/dpkg.log" "$@"
}
if command -v dpkg-deb >/dev/null && command -v dpkg >/dev/null; then
    architecture=$(dpkg --print-architecture) version=$("$prefix/bin/vlmprof" --version | awk '{ print $2 }')
    package=$work/debs/vlmprof_${version}_$architecture.deb
    export DPKG_DEB_COMPRESSOR_LEVEL=0 # make test-dist makes packages with the ordinary level
    check "a Debian package is made" packaging/deb.sh "$PROGRAM" "$architecture" "$B/man" "$work/debs"
    cp "$package" "$work/first.deb"
    sleep 1 # another time of day, which the files must not show
    check "and made again" packaging/deb.sh "$PROGRAM" "$architecture" "$B/man" "$work/debs"
    check "the same bytes" cmp "$package" "$work/first.deb"
    check "Debian package: its fields" [ "$(dpkg-deb -f "$package" Package Version Architecture Depends | cut -d' ' -f2- | xargs)" = \
        "vlmprof $version $architecture libc6 (>= 2.28)" ]
    check "Debian package: all files are root's" [ -z "$(dpkg-deb -c "$package" | grep -v ' root/root ')" ]
    mkdir -p "$work/debian/var/lib/dpkg/updates" "$work/debian/var/lib/dpkg/info" && touch "$work/debian/var/lib/dpkg/status"
    check "dpkg installs it" packages -i "$package"
    check "the program in it runs" "$work/debian/usr/bin/vlmprof" --version
    check "dpkg finds no file changed" [ -z "$(packages -V vlmprof 2>&1)" ]
    check "its copyright has both licences" [ "$(grep -cE '^MIT License$|^2\. libgomp and libgcc ' "$work/debian/usr/share/doc/vlmprof/copyright")" = 2 ]
    check "it has each manual page" diff <(cd "$prefix/share/man" && ls man?) <(cd "$work/debian/usr/share/man" && ls man? | sed 's/\.gz$//')
    check "it has the completion" [ -s "$work/debian/usr/share/bash-completion/completions/vlmprof" ]
    check "dpkg removes it" packages -r vlmprof
    check "and leaves no file of it" [ -z "$(find "$work/debian/usr" -type f 2>/dev/null)" ]
    check "without dpkg-deb one line says what to install" grep -q 'dpkg-deb is not installed: apt-get install dpkg' \
        <(PATH=/none /bin/bash packaging/deb.sh "$PROGRAM" "$architecture" "$B/man" "$work/debs" 2>&1)
else skip "a Debian package: no dpkg-deb and dpkg (apt-get install dpkg)"; fi

# a foreign C project: the header's sample, and one that calls a function of the archive
cat >"$work/uses.c" <<'CODE'
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_families.h"
#include <stdio.h>
int main(void) {
    vp_engine_options options = vp_engine_options_default();
    return printf("%s %d\n", vp_family_find("internvl")->name, (int)options.threads) < 0;
}
CODE
if command -v pkg-config >/dev/null; then
    flags=$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config --cflags vlmprof) libs=$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config --libs vlmprof)
    check "pkg-config: a C project builds" bash -c "$CC $sanitized '$work/uses.c' -o '$work/uses' $flags $libs"
    check "pkg-config: it runs" [ "$("$work/uses")" = "internvl 0" ]
    check "pkg-config: the header alone" bash -c "$CC samples/01_count_tokens.c -o '$work/count' $flags -lm"
else skip "pkg-config: not installed"; fi
if command -v cmake >/dev/null; then
    mkdir "$work/cmake" && cp samples/05_ranges.cpp "$work/cmake/" && cp "$work/uses.c" "$work/cmake/uses.cpp"
    cat >"$work/cmake/CMakeLists.txt" <<'CODE'
cmake_minimum_required(VERSION 3.10)
project(foreign CXX)
find_package(vlmprof 0.1 REQUIRED)
add_executable(ranges 05_ranges.cpp)
target_link_libraries(ranges vlmprof::header)
add_executable(uses uses.cpp)
target_link_libraries(uses vlmprof::vlmprof)
CODE
    check "CMake: a C++ project is configured" cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER=$cxx -DCMAKE_CXX_FLAGS="$sanitized"
    check "CMake: it builds" cmake --build "$work/cmake/build"
    check "CMake: the header's program runs" grep -q "sum 3000, 6 ranges, 0 open" <("$work/cmake/build/ranges")
    check "CMake: the library's program runs" [ "$("$work/cmake/build/uses")" = "internvl 0" ]
    mkdir "$work/plain" && cp samples/02_time_and_report.c "$work/plain/"
    cat >"$work/plain/CMakeLists.txt" <<'CODE'
cmake_minimum_required(VERSION 3.10)
project(plain C)
set(CMAKE_C_STANDARD 90)
set(CMAKE_C_EXTENSIONS OFF)
find_package(vlmprof REQUIRED)
add_executable(rows 02_time_and_report.c)
target_link_libraries(rows vlmprof::header)
CODE
    check "CMake: a project in strict C is configured and built, with no flags for the header" bash -c "cmake -S '$work/plain' -B '$work/plain/build' \
        -DCMAKE_PREFIX_PATH='$prefix' -DCMAKE_C_COMPILER='${CC%% *}' -DCMAKE_C_FLAGS='-Wall -Wextra -Werror $sanitized' && cmake --build '$work/plain/build'"
    check "CMake: its program runs" grep -q '"side": 64' <("$work/plain/build/rows")
    sed -i 's/vlmprof 0.1/vlmprof 99/' "$work/cmake/CMakeLists.txt"
    cmake -S "$work/cmake" -B "$work/cmake/other" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER=$cxx >"$work/refused" 2>&1
    check "CMake: a later version than this is refused" [ $? -ne 0 ]
else skip "CMake: not installed"; fi

# manual pages: every command and topic has one; roff reads them without a complaint; an option and a guide's sentence are found in them
pages=$(ls "$prefix"/share/man/man[17]/*.[17] | wc -l)
check "a page for the program and for each command and topic" [ "$pages" -eq $(($("$PROGRAM" help --list | wc -l) + 1)) ]
if command -v groff >/dev/null; then
    for page in "$prefix"/share/man/man[17]/*; do
        groff -man -Tutf8 -ww -P -c "$page" >"$work/page" 2>"$work/complaints"
        check "roff reads ${page##*/}" [ ! -s "$work/complaints" ]
    done
    shown=$(groff -man -Tascii -P -c -P -b -P -u "$prefix/share/man/man1/vlmprof-run.1")
    check "the page of run shows its options" grep -q -- '--max_new_tokens N' <<<"$shown"
    shown=$(groff -man -Tascii -P -c -P -b -P -u "$prefix/share/man/man7/vlmprof-tokens.7")
    check "the page on tokens shows its list" grep -q '^ *paligemma_896' <<<"$(tr ' ' '\n' <<<"$shown")"
else skip "groff: not installed"; fi

# completion
complete_bash() { # complete_bash WORDS...: what bash offers for the last word
    PATH="$prefix/bin:$PATH" bash --norc -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vlmprof 2>/dev/null; echo "${COMPREPLY[*]}"' bash \
        "$prefix/share/bash-completion/completions/vlmprof" "$@"
}
check "bash completes commands" [ "$(complete_bash vlmprof sw)" = "sweep sweeps" ]
check "bash completes options" [ "$(complete_bash vlmprof run --max_new)" = --max_new_tokens ]
check "bash completes topics" [ "$(complete_bash vlmprof help tok)" = "tokenize tokens" ]
check "bash completes files" [ "$(complete_bash vlmprof run samples/cat)" = samples/cat.jpg ]

check "make install again" make install B="$B" PROGRAM="$PROGRAM" CC="$CC" NVCC= DESTDIR="$work/staged" PREFIX=/opt/vlmprof
check "make uninstall" make uninstall B="$B" PROGRAM="$PROGRAM" CC="$CC" NVCC= DESTDIR="$work/staged" PREFIX=/opt/vlmprof
check "uninstall leaves no file and none of our folders" [ -z "$(find "$work/staged" \( -type f -o -iname '*vlmprof*' -not -path "$work/staged/opt/vlmprof" \) -print)" ]
cd "$top" || exit 1
echo "test_install: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
