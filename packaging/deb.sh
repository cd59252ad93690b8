#!/bin/bash
# deb.sh PROGRAM ARCHITECTURE MANUAL FOLDER: a Debian package of the program in FOLDER, with the manual pages of the folder MANUAL and a completion for bash
# (make man). ARCHITECTURE is Debian's word: amd64, arm64. The same input gives the same bytes.
set -eu
program=$1 architecture=$2 manual=$3 folder=$4
command -v dpkg-deb >/dev/null || { echo "deb.sh: dpkg-deb is not installed: apt-get install dpkg" >&2; exit 1; }
version=$(sed -n 's/^#define VLMPROF_VERSION "\(.*\)"/\1/p' vlmprof.h)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
chmod 755 "$root"
install -D -m 755 "$program" "$root/usr/bin/vlmprof"
for page in "$manual"/*.[17]; do
    install -D -m 644 "$page" "$root/usr/share/man/man${page##*.}/${page##*/}"
    gzip -9n "$root/usr/share/man/man${page##*.}/${page##*/}"
done
install -D -m 644 packaging/completion.bash "$root/usr/share/bash-completion/completions/vlmprof"
mkdir -p "$root/usr/share/doc/vlmprof" "$root/DEBIAN" "$folder"
cat LICENSE packaging/THIRD-PARTY.txt >"$root/usr/share/doc/vlmprof/copyright"
size=$(du -sk --apparent-size "$root/usr" | cut -f1)
# libcurl is opened at run time, under the names that Debian 11, 12 and 13 have
cat >"$root/DEBIAN/control" <<CONTROL
Package: vlmprof
Version: $version
Architecture: $architecture
Maintainer: vlmprof developers
Section: utils
Priority: optional
Installed-Size: $size
Depends: libc6 (>= 2.28)
Recommends: libcurl4 | libcurl4t64 | libcurl3-gnutls
Description: profiler of vision-language models
 Measures the stages of a vision-language model on this machine or behind a
 server, over image sizes and precisions, and scores the answers it timed.
CONTROL
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800} dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/vlmprof_${version}_$architecture.deb" >/dev/null
