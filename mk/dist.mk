# Packages to install without a compiler: portable programs, a wheel, a source package, Debian packages; `make test-dist` tests them on other systems.
# The compiler is the ordinary GCC, so the machine code is that of `make`. Only the linker is zig's (PyPI's ziglang): it knows the symbols of every
# glibc since 2.17, but the system's own linker uses those of this system. GCC's OpenMP and support library are linked in.
.PHONY: dist dist-linux-x86_64 dist-linux-aarch64 dist-macos-arm64 wheel wheel-x86_64 wheel-aarch64 sdist deb deb-x86_64 deb-aarch64 test-dist zig
DIST ?= dist
GLIBC := 2.28
ZIG := $(abspath $(B))/zig/bin/python -m ziglang
export ZIG_GLOBAL_CACHE_DIR := $(abspath $(B))/zig-cache
export ZIG_LOCAL_CACHE_DIR := $(ZIG_GLOBAL_CACHE_DIR)
named = $(DIST)/vlmprof-$(VERSION)-$(1).tar.gz

dist: dist-linux-x86_64 dist-linux-aarch64 dist-macos-arm64
	@ls -l $(DIST)/vlmprof-$(VERSION)-*.tar.gz
zig:
	@PYTHON="$(PYTHON3)" packaging/zig.sh $(B)/zig >&2
# the program and the licences
dist-linux-x86_64 dist-linux-aarch64: dist-linux-%: zig
	@$(MAKE) B=$(B)/dist/$* CC=$*-linux-gnu-gcc NVCC= TRIPLE=$*-linux-gnu ZIG="$(ZIG)" $(B)/dist/$*/portable/vlmprof
	@$(call pack,$(B)/dist/$*/portable,linux-$*)
# a client: everything but the engine's threads; only compiled and linked, not tested on a Mac
dist-macos-arm64: zig
	@mkdir -p $(B)/dist/macos/include $(B)/dist/macos/client && cp -R /usr/include/stb $(B)/dist/macos/include/
	@$(MAKE) B=$(B)/dist/macos CC="$(ZIG) cc -target aarch64-macos -isystem $(abspath $(B))/dist/macos/include" AR="$(ZIG) ar" NVCC= OPENMP= PROBED= SYSTEM=-lm \
	    LDFLAGS=-s PROGRAM=$(B)/dist/macos/client/vlmprof $(B)/dist/macos/client/vlmprof
	@$(call pack,$(B)/dist/macos/client,macos-arm64)
pack = mkdir -p $(DIST) && tar -czf $(call named,$(2)) --owner=0 --group=0 --transform='s|^\(.*/\)\?|vlmprof-$(VERSION)-$(2)/|' LICENSE packaging/THIRD-PARTY.txt $(1)/vlmprof

# in the build folder of one of the targets above
LINK = mkdir -p $(@D) && $(ZIG) cc -target $(TRIPLE).$(GLIBC) -s -o $@
$(B)/portable/vlmprof: $(LIBRARY) $(ROOMS) $(B)/cli.o
	@echo "zig $@"; $(LINK) $(B)/cli.o $(LIBRARIES) $(foreach library,libgomp.a libgcc.a,$(shell $(CC) -print-file-name=$(library))) $(SYSTEM) -lpthread

wheel: wheel-x86_64 wheel-aarch64
wheel-x86_64 wheel-aarch64: wheel-%: dist-linux-%
	@$(PYTHON3) packaging/wheel.py wheel $(B)/dist/$*/portable manylinux_$(subst .,_,$(GLIBC))_$* $(DIST)
deb: deb-x86_64 deb-aarch64
deb-x86_64: DEBIAN = amd64
deb-aarch64: DEBIAN = arm64
deb-x86_64 deb-aarch64: deb-%: dist-linux-% $(PAGES)
	@packaging/deb.sh $(B)/dist/$*/portable/vlmprof $(DEBIAN) $(B)/man $(DIST)
sdist:
	@$(PYTHON3) packaging/wheel.py sdist $(DIST)

# packages that cannot be installed here are skipped with the reason
test-dist:
	@tests/deps.sh systems || true
	@$(MAKE) wheel sdist dist $$(command -v dpkg-deb >/dev/null && echo deb)
	@B="$(B)" DIST="$(DIST)" tests/dist.sh
