#!/bin/bash
# dist.sh, for make test-dist: proves that the portable programs need no newer glibc than 2.28 and only glibc's libraries, that they run in root file
# systems of Debian 11, 12 and 13 (debootstrap) and on ARM (qemu-user), libcurl found there or the package named, that the wheel is below 6 MB and gives
# an audit in an empty environment, that the source package builds, and that the Debian packages have these programs. macOS: the file's format; no Mac ran it.
# Needs root, debootstrap, qemu-user-static and a network; what is missing is skipped with its reason.
CDPATH= cd "$(dirname "$0")/.." || exit 1
B=${B:-build} DIST=${DIST:-dist} python=${PYTHON:-python3}
. tests/check.sh
version=$(sed -n 's/^#define VLMPROF_VERSION "\(.*\)"/\1/p' vlmprof.h) skipped=0
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
export OMP_WAIT_POLICY=passive # the program does not start itself again: under qemu it could not
for arch in x86_64 aarch64; do
    for file in vlmprof; do
        binary=$B/dist/$arch/portable/$file
        newest=$(readelf -V "$binary" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
        check "$arch $file needs at most glibc 2.28 ($newest)" [ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ]
        check "$arch $file needs only glibc's libraries" [ -z "$(readelf -d "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE 'lib(c|m|dl|pthread)\.so\.[0-9]|ld-linux.*')" ]
    done
    check "$arch wheel is below 6 MB" [ "$(stat -c %s "$DIST/vlmprof-$version-py3-none-manylinux_2_28_$arch.whl")" -lt 6000000 ]
    check "$arch archive has the licences" [ "$(tar -tzf "$DIST/vlmprof-$version-linux-$arch.tar.gz" | grep -cE '/(LICENSE|THIRD-PARTY.txt|vlmprof)$')" = 3 ]
done
if ! command -v dpkg-deb >/dev/null; then skip "Debian packages: no dpkg-deb (apt-get install dpkg)"
else
    for arch in x86_64:amd64 aarch64:arm64; do
        package=$DIST/vlmprof_${version}_${arch#*:}.deb arch=${arch%:*}
        check "$arch Debian package unpacks" dpkg-deb -x "$package" "$work/deb-$arch"
        check "$arch Debian package has the portable program" cmp "$work/deb-$arch/usr/bin/vlmprof" "$B/dist/$arch/portable/vlmprof"
    done
fi
check "the macOS client is an ARM program of macOS" [ "$(head -c 8 "$B/dist/macos/client/vlmprof" | od -An -tx1 | tr -d ' ')" = cffaedfe0c000001 ]

# ---- a server on this machine: 576 tokens an image, as LLaVA-1.5's rule says
mkfifo "$work/hold"
"$python" tests/servers/fixed_count.py 576 <"$work/hold" >"$work/url" & exec 8>"$work/hold"
for _ in $(seq 50); do [ -s "$work/url" ] && break; sleep 0.1; done
url=$(cat "$work/url")
audit=(audit --endpoint "$url" --endpoint_model fixed --family llava --quiet)

# ---- root file systems: packages are unpacked, not configured
root_of() { # root_of SUITE ARCH LIBCURL: unpacks it in $B/roots, or says why not
    local root=$B/roots/$1-$2 deb
    [ -e "$root/unpacked" ] && return 0
    rm -rf "$root" && mkdir -p "$root"
    debootstrap --arch="$2" --foreign --variant=minbase --include="$3" "$1" "$root" >"$root.log" 2>&1 || { tail -n 1 "$root.log"; return 1; }
    for deb in "$root"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$deb" "$root" || return 1; done
    touch "$root/unpacked"
}
commands_in() { # commands_in NAME RUN...: the four commands, by RUN PROGRAM
    local name=$1; shift
    check "$name: tile" "$@" tile 640x480
    check "$name: run" "$@" run --synthetic tiny samples/cat.jpg -p "What?" --max_new_tokens 3
    check "$name: selftest" "$@" selftest
    check "$name: audit" "$@" "${audit[@]}"
}
if [ "$(id -u)" != 0 ]; then skip "root file systems: only root may use chroot"
elif ! command -v debootstrap >/dev/null; then skip "root file systems: no debootstrap (apt-get install debootstrap)"
else
    for suite in bullseye:libcurl4 bookworm:libcurl4 trixie:libcurl4t64 bookworm:libcurl3-gnutls; do
        library=${suite#*:} suite=${suite%:*}
        name="Debian $suite with $library"
        [ "$library" = libcurl3-gnutls ] && rm -rf "$B/roots/$suite-amd64-gnutls"
        if [ "$library" = libcurl3-gnutls ]; then # the other name of libcurl, in a copy of the same system
            [ -e "$B/roots/$suite-amd64/unpacked" ] || continue
            root=$B/roots/$suite-amd64-gnutls && cp -a "$B/roots/$suite-amd64" "$root"
            find "$root" -name 'libcurl.so.4*' -delete
            (cd "$work" && apt-get download libcurl3-gnutls >/dev/null 2>&1 && dpkg-deb -x libcurl3-gnutls*.deb "$OLDPWD/$root") || { skip "$name: no such package here"; continue; }
        else
            root=$B/roots/$suite-amd64
            why=$(root_of "$suite" amd64 "$library") || { skip "$name: $why"; continue; }
        fi
        mkdir -p "$root/vlmprof" && cp "$B/dist/x86_64/portable/vlmprof" "$root/vlmprof/" && cp -R samples "$root/vlmprof/"
        commands_in "$name" chroot "$root" /bin/sh -c 'cd /vlmprof && exec ./vlmprof "$@"' sh
    done
    root=$B/roots/bookworm-amd64-gnutls
    if [ -e "$root/unpacked" ]; then
        find "$root" -name 'libcurl*.so.4*' -delete
        chroot "$root" /vlmprof/vlmprof "${audit[@]}" >"$work/said" 2>&1
        check "without libcurl one line names the package" grep -q 'libcurl is not installed.*apt install libcurl4' "$work/said"
        check "and nothing else needs it" chroot "$root" /vlmprof/vlmprof tile 640x480
    fi
    if ! command -v qemu-aarch64-static >/dev/null; then skip "ARM: no qemu-aarch64-static (apt-get install qemu-user-static)"
    elif ! why=$(root_of bookworm arm64 libcurl4); then skip "ARM: $why"
    else commands_in "ARM" qemu-aarch64-static -L "$B/roots/bookworm-arm64" -E LD_LIBRARY_PATH="$PWD/$B/roots/bookworm-arm64/usr/lib/aarch64-linux-gnu" "$B/dist/aarch64/portable/vlmprof"; fi
fi

# ---- from nothing to an audit
if "$python" -m venv "$work/venv" >/dev/null 2>&1; then
    since=$SECONDS
    check "the wheel installs" "$work/venv/bin/pip" install --disable-pip-version-check -q --no-index "$DIST/vlmprof-$version-py3-none-manylinux_2_28_$(uname -m).whl"
    check "its program audits the server" "$work/venv/bin/vlmprof" "${audit[@]}"
    check "both in less than 10 s ($((SECONDS - since)) s)" [ $((SECONDS - since)) -lt 10 ]
    check "the source package builds and installs" "$work/venv/bin/pip" install --disable-pip-version-check -q --no-index --no-build-isolation --force-reinstall "$DIST/vlmprof-$version.tar.gz"
    check "what it built runs" "$work/venv/bin/vlmprof" "${audit[@]}"
else skip "the wheel: no $python with venv"; fi
exec 8>&-
wait
echo "test_dist: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
