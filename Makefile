# vlmprof. Works with GNU make 4 and bash; builds go to build/, the program to ./vlmprof. `make help` prints this list:
define HELP
make                    builds ./vlmprof; with GPU code when nvcc is found
make demo               a sweep of the small model in samples/tiny over drawings, about a minute; results and report in $(B)/demo
make demo-prune         image tokens left out: each method at four rates, over $(PRUNE_SAMPLES) held-out questions (PRUNE_SAMPLES=1000: all)
make demo-pareto        accuracy against latency over $(PARETO_SAMPLES) held-out questions (PARETO_SAMPLES=1000: all), about 16 minutes; opens the report
make install            the program, headers, library, pkg-config and CMake files, manual pages and completions, below PREFIX=$(PREFIX) (DESTDIR: a staging folder)
make uninstall          removes them
make dist               portable programs for Linux (x86-64 and 64-bit ARM, glibc 2.28) and a client for macOS, in $(DIST)
make wheel              Python wheels with them
make sdist              the source package of the wheel
make deb                Debian packages of the portable programs, with manual pages and completions
make man                the manual pages in $(B)/man
make deps               finds the compiler's packages; installs them on Debian and Ubuntu where it may
make help               this list
make clean              removes build/ and ./vlmprof

Tests
make test               the quick tests, the GPU code's too (emulated on the CPU); the last line is the count; seconds per program in $(B)/tests/times.txt
make test-all           these and the slow ones
make test-slow          the slow ones alone
make test-sanitized     test-all with AddressSanitizer and UndefinedBehaviorSanitizer
make test-threads       threads that share what may be shared, with ThreadSanitizer (clang)
make test-servers       the part of make test-all that asks a real server, llama.cpp's; a skip is a failure
make test-programs      builds the programs of make test without running them
make test-slow-programs builds those of make test-slow
make check              test-all, sanitizers, compilers and language modes, nvcc when found
make fuzz               FUZZ_SECONDS=$(FUZZ_SECONDS) for each fuzzer (clang)
make full-size          checks at the real model's size; 17 GB of memory
make test-dist          what make dist, make wheel and make deb make, in root file systems of Debian 11, 12 and 13, on ARM under qemu
make readme-count       writes the count of tests, from the last make test, into README.md

Benchmarks
make bench              benchmarks of this machine
make bench-peers        compared with PyTorch, llama.cpp and others (tests/bench/peers.py)
make bench-portable     the program of make dist next to the ordinary one
make numbers            measures the figures of vlmprof help numbers and writes that page; on a quiet machine

GPU
make test-gpu           the tests that need a GPU; a skip is a failure
make first-gpu          the first run on a GPU: ten minutes, one file, from which what is wrong can be mended without the GPU
make first-gpu-pack     the same as a folder to carry to a machine without a compiler
make gpu-choose         FILE=first-gpu.jsonl: which switches of --gpu pay, and which code can go
make gpu-compile        the kernels for $(GPU_ARCHS), no spills allowed (needs nvcc, no GPU)
make gpu-report         registers, spills, occupancy, instructions, waits and shared memory of each kernel against gates (needs nvcc, no GPU)
make gpu-predict        what each kernel should take on Hopper, from counts; writes tests/bench/results/gpu-predictions.md

Variables: CC, CXX, CFLAGS, KERNEL_FLAGS, NVCC (empty: no GPU code), PREFIX, DESTDIR, B (the build folder), PROGRAM
endef
.DEFAULT_GOAL := all
.PHONY: all help deps clean
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
# As many jobs as there are cores and gigabytes of free memory; a caller's -j counts. Several targets, one of them a command, run one after another.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += $(shell [[ "$$MAKEFLAGS" == *-j* ]] || \
    awk -v jobs="$$(nproc)" '/^MemAvailable:/ && $$2 < jobs * 1e6 { jobs = int($$2 / 1e6) } END { print "-j" (jobs > 1 ? jobs : 1) }' /proc/meminfo)
endif
ifneq ($(and $(word 2,$(MAKECMDGOALS)),$(filter clean install uninstall check demo% test% bench% first-gpu% fuzz% full-size,$(MAKECMDGOALS))),)
.NOTPARALLEL:
endif
.DELETE_ON_ERROR:
.SUFFIXES:

CC ?= cc
# the C++ compiler next to the C compiler: one sanitizer runtime for both
CXX := $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),$(if $(filter %-gcc,$(CC)),$(CC:%-gcc=%-g++),g++))
CFLAGS ?= -O2 -g1
# the program around the library computes little, and is a third of what is compiled
CLI_FLAGS ?= $(if $(filter file,$(origin CFLAGS)),-O1)
KERNEL_FLAGS ?= -O3
ifeq ($(origin NVCC),undefined)
NVCC := $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
endif
# what this nvcc does not know: no-blackwell before 12.8; all before 12.0, which cannot compile the GPU code
NVCC_LACKS := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | \
    awk '{ n = $$1 * 100 + $$2; print n < 1200 ? "all" : n < 1208 ? "no-blackwell" : "" }'))
OPENMP ?= -fopenmp
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
TEST_TIMEOUT_S ?= 1500
B ?= build
PROGRAM ?= ./vlmprof

# No option here lets the compiler reorder floating point, and none ties the program to this machine's processor.
# Contraction is off because results of the header are compared bit by bit; the kernels choose it function by function.
WARN := -Wall -Wextra -Wpedantic -Wshadow
STD := -std=c11 -D_DEFAULT_SOURCE
# a cross compiler (aarch64-linux-gnu-gcc) has headers of its own; libstb-dev's, the same for every processor, is searched after them
CROSS := $(if $(filter %-gcc,$(CC)),-idirafter /usr/include)
INCLUDES := -I. -Iparts -Iparts/lib -Icli
HEADER_FLAGS = $(STD) $(WARN) $(INCLUDES) $(CROSS) -ffp-contract=off $(CFLAGS) $(SANITIZE)
ENGINE_FLAGS = $(STD) $(WARN) $(INCLUDES) $(CFLAGS) $(KERNEL_FLAGS) $(OPENMP) $(SANITIZE)
DEPENDENCIES = -MMD -MP -MT $@ -MF $(B)/$(subst /,-,$@).$(D)
D := d
UPPER = $(shell echo $(1) | tr a-z A-Z)

# libcurl is opened at run time by dlopen, which is in a library of its own before glibc 2.34
SYSTEM := -ldl -lm

# the headers for copying (each compiled once as a C file), the library's other subjects, the engine, the program
HEADERS := vlmprof.h $(wildcard parts/vlmprof_*.h)
LIB_SOURCES := $(wildcard parts/lib/*.c)
ENGINE_SOURCES := $(wildcard parts/engine/*.c)
CLI_SOURCES := $(wildcard cli/*/*.c cli/*/*/*.c)
HEADER_OBJECTS = $(HEADERS:%.h=$(B)/%.o) $(LIB_SOURCES:%.c=$(B)/%.o)
ENGINE_OBJECTS = $(ENGINE_SOURCES:%.c=$(B)/%.o) $(B)/vlmprof_kernels.o
GUIDES := $(wildcard cli/guides/*.txt)
ASSETS := $(wildcard cli/page/*.css cli/page/*.js cli/conform/*.py)
CLI_OBJECTS = $(CLI_SOURCES:%.c=$(B)/%.o) $(B)/cli/guides.o $(B)/cli/assets.o
# sources with hooks for tests, and their objects in the programs that only tests use
HOOKED := $(shell grep -l VLMPROF_TEST_HOOKS cli.c $(CLI_SOURCES))
HOOKED_OBJECTS := $(HOOKED:%.c=$(B)/hooked/%.o)
LIBRARY = $(B)/libvlmprof.a
ROOMS = $(B)/librooms.a
E := $(B)/emulated
GPU_ARCHS ?= sm_80 sm_90 sm_90a $(if $(NVCC_LACKS),,sm_100)
LIBRARIES = $(if $(CLI_SOURCES),$(ROOMS)) $(LIBRARY)

all: $(PROGRAM)
	@if [ -n "$(GPU_OBJECT)" ]; then echo "$(PROGRAM): CPU and GPU backends (nvcc: $(NVCC)); ./vlmprof info shows what it finds here"; \
	elif [ -n "$(GPU_DRIVER)" ]; then \
	    echo "$(PROGRAM): CPU backend. There is an NVIDIA driver, but no nvcc: install the CUDA Toolkit 12.8 or later with cuBLAS"; \
	    echo "  (https://developer.nvidia.com/cuda-downloads), then make again; NVCC=path where nvcc is not on the PATH"; \
	else echo "$(PROGRAM): CPU backend. nvcc not found: no GPU code (CUDA Toolkit 12.8 or later, or NVCC=path)"; fi

help:
	@$(info $(HELP)):

# ---- packages: probed once for each compiler, installed when that is allowed (tests/deps.sh)
PROBED := $(B)/deps-$(subst /,-,$(subst $() ,-,$(CC)))
deps: $(PROBED)
$(PROBED):
	@tests/deps.sh build "$(CC) $(CROSS)"
	@mkdir -p $(B) && touch $@

# the tests need a C++ compiler and libcurl as well
PROBED_EMULATOR := $(PROBED:$(B)/deps-%=$(B)/deps-emulator-%)
$(PROBED_EMULATOR): $(PROBED)
	@tests/deps.sh emulator "$(CC)"
	@touch $@

# ---- A line changed in the implementation of a header for copying compiles one object. The others depend on what it declares: its preprocessed text, a
# file that is written only where it changes. In their files of dependencies, which end in .od, that file takes the header's place.
DECLARED = $(HEADERS:%=$(B)/declared/%)
$(DECLARED:=.seen): $(B)/declared/%.seen: % | $(PROBED)
	@mkdir -p $(@D); $(CC) $(STD) $(INCLUDES) $(CROSS) -E -dD -P -x c $< -o $@ && { cmp -s $@ $(@:.seen=) || cp $@ $(@:.seen=); }
$(DECLARED): %: %.seen
	@:
COMPILED = $(HEADER_OBJECTS) $(ENGINE_OBJECTS) $(CLI_OBJECTS) $(HOOKED_OBJECTS) $(B)/cli.o $(B)/vlmprof_cuda.o $(E)/vlmprof_emulated.o $(GPU_ARCHS:%=$(B)/gpu/vlmprof_kernels.%.o)
# a build folder of older rules has no such files: its objects are compiled again
$(B)/rules-2:
	@mkdir -p $(B) && touch $@
$(COMPILED): D := od
$(COMPILED): $(B)/rules-2 | $(DECLARED)
OBJECTS_DEPEND := $(if $(wildcard $(B)/*.od),$(shell sed -E 's#(^| )(\./)?(vlmprof|parts/vlmprof_[a-z]+)\.h#\1$(B)/declared/\3.h#g' $(B)/*.od >$(B)/od.$$$$ && \
    mv $(B)/od.$$$$ $(B)/objects.mk && echo $(B)/objects.mk))

include mk/gpu.mk

# ---- the library: the headers, parts/lib and the engine, one object each; and the program's rooms
$(B)/vlmprof.o: vlmprof.h | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(HEADER_FLAGS) -DVLMPROF_IMPLEMENTATION $(DEPENDENCIES) -x c -c $< -o $@
$(B)/parts/vlmprof_%.o: parts/vlmprof_%.h | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -DVLMPROF_$(call UPPER,$*)_IMPLEMENTATION $(DEPENDENCIES) -x c -c $< -o $@
$(B)/parts/lib/%.o: parts/lib/%.c | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -Wmissing-prototypes $(DEPENDENCIES) -c $< -o $@
$(B)/parts/engine/%.o: parts/engine/%.c | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(ENGINE_FLAGS) -ffp-contract=off -Wmissing-prototypes $(DEPENDENCIES) -c $< -o $@
$(B)/vlmprof_kernels.o: vlmprof_kernels.cu | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(ENGINE_FLAGS) $(DEPENDENCIES) -x c -c $< -o $@
$(B)/cli/%.o: cli/%.c | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) $(CLI_FLAGS) -Wmissing-prototypes $(OPENMP) $(DEPENDENCIES) -c $< -o $@
# the guides as arrays of lines; cli/help/guide.h declares them. The line {terms} becomes two for each term of cli/results/metrics.h.
$(B)/cli/guides.c: $(GUIDES) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "help/guide.h"'; echo '#include "results/fields.h"'; echo '#include "results/knobs.h"'; \
	echo '#define FIRST(first, ...) first'; \
	echo '#define ROW_LINES(S, type, key, value, ...) "  " #key, "      " FIRST(__VA_ARGS__, 0),'; \
	echo '#define AT_LINES(S, type, key, member, ...) "  " key, "      " FIRST(__VA_ARGS__, 0),'; \
	echo '#define KNOB_LINES(id, key, words, ...) "  " key, "      " words,'; \
	echo '#define ELSE_LINES(type, key, ...) "  " key, "      " FIRST(__VA_ARGS__, 0),'; \
	echo '#define LINES(id, key, unit, meaning) "  " key, "      " meaning,'; \
	for guide in $(GUIDES); do echo "static const char *const $$(basename $$guide .txt)_lines[] = {"; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/",/; s/^"{knobs}",$$/KNOB_ROWS(KNOB_LINES)/; s/^"{terms}",$$/METRIC_ROWS(LINES) TERM_ROWS(LINES)/; s/^"{keys of .*}",$$/\U&/; s/^"{KEYS OF A \(.*\)}",$$/\1_KEYS(ROW_LINES, AT_LINES, ELSE_LINES)/' $$guide; echo '};'; done; \
	echo 'const struct guide GUIDES[] = {'; \
	for guide in $(GUIDES); do name=$$(basename $$guide .txt); echo "{\"$$name\", $${name}_lines, sizeof $${name}_lines / sizeof *$${name}_lines},"; done; \
	echo '{NULL, NULL, 0}};'; } >$@
$(B)/cli/guides.o: $(B)/cli/guides.c cli/help/guide.h cli/results/metrics.h cli/results/fields.h cli/results/knobs.h | $(PROBED)
	@echo "cc  $(GUIDES)"
	@$(CC) $(HEADER_FLAGS) -c $< -o $@
# the pages' style sheets and scripts, and conform's, as arrays of lines, page.css as PAGE_CSS; cli/page/page.h and cli/conform/script.h declare them
$(B)/cli/assets.c: $(ASSETS) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "page/page.h"'; echo '#include "conform/script.h"'; for asset in $(ASSETS); do basename $$asset | sed 's/\(.*\)\.\(.*\)/const char *const \U\1_\2[] = {/'; \
	sed -e 's/[\\"?]/\\&/g; s/.*/"&\\n",/' $$asset; echo 'NULL};'; done; } >$@
$(B)/cli/assets.o: $(B)/cli/assets.c | $(PROBED)
	@echo "cc  $(ASSETS)"
	@$(CC) $(HEADER_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(B)/cli.o: cli.c | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(HEADER_FLAGS) $(OPENMP) $(DEPENDENCIES) -c $< -o $@
$(LIBRARY): $(HEADER_OBJECTS) $(ENGINE_OBJECTS)
	@rm -f $@; $(AR) rcs $@ $^
$(ROOMS): $(CLI_OBJECTS)
	@rm -f $@; $(AR) rcs $@ $^

# ---- the program. The GPU's half is linked as an object: it replaces a weak symbol, which no archive member does.
$(PROGRAM): $(GPU_OBJECT) $(LINKED_WITH_GPU) $(LIBRARY) $(ROOMS) $(B)/cli.o
	@$(CC) $(OPENMP) $(SANITIZE) $(LDFLAGS) $(B)/cli.o $(GPU_OBJECT) $(LIBRARIES) -o $@ $(if $(GPU_OBJECT),$(CUDA_LIBRARIES)) $(SYSTEM)
	@$(if $(GPU_OBJECT),:,rm -f $(B)/linked-with-gpu)

clean:
	rm -rf build vlmprof $(DIST)

include mk/tests.mk mk/demo.mk mk/fuzz.mk mk/bench.mk mk/install.mk mk/dist.mk
-include $(wildcard $(B)/*.d) $(OBJECTS_DEPEND)
