# vlmprof. Works with GNU make 4 and bash; builds go to build/, the program to ./vlmprof. `make help` prints this list:
define HELP
make                    builds ./vlmprof, with GPU code if nvcc and an NVIDIA driver are found, or with GPU=1
make demo               sweeps the small model in samples/tiny over drawings, in about a minute; results and report in $(B)/demo
make demo-prune         prunes image tokens with each method at four rates, over $(PRUNE_SAMPLES) held-out questions (PRUNE_SAMPLES=1000: all)
make demo-pareto        shows accuracy against latency over $(PARETO_SAMPLES) held-out questions (PARETO_SAMPLES=1000: all), in about 16 minutes; opens the report
make demo-policy        computes what choosing a configuration for each of $(POLICY_SAMPLES) questions can gain, and runs that policy, in about 4 minutes
make install            installs the program, headers, library, pkg-config and CMake files, manual pages and completion below PREFIX=$(PREFIX) (DESTDIR: a staging folder)
make uninstall          removes what make install installed
make dist               builds portable programs for Linux (x86-64 and 64-bit ARM, glibc 2.28) and a client for macOS, in $(DIST)
make wheel              builds Python wheels with these programs
make sdist              builds the wheel's source package
make deb                builds Debian packages of the portable programs, with manual pages and completion
make man                writes the manual pages to $(B)/man
make deps               checks for the packages that the build needs; on Debian and Ubuntu, installs them if it has permission
make format             formats the lines of C that differ from the last commit (.clang-format)
make help               prints this list
make clean              removes build/ and ./vlmprof

Tests
make test               runs the quick tests, including the GPU code (emulated on the CPU); the last line is the count; seconds per program are in $(B)/tests/times.txt
make test-all           runs the quick and the slow tests
make test-slow          runs only the slow tests
make test-sanitized     runs test-all with AddressSanitizer and UndefinedBehaviorSanitizer
make test-threads       runs threads that share what they may share, with ThreadSanitizer (clang)
make test-servers       runs the tests with a real server (llama.cpp), which are part of make test-all; a skip is a failure
make test-programs      builds the programs of make test without running them
make test-slow-programs builds the programs of make test-slow without running them
make check              runs test-all, clang-tidy and other tools, sanitizers, several compilers and language modes, and nvcc if found
make fuzz               runs each fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS) (clang)
make full-size          runs checks at the real model's size; needs 17 GB of memory
make test-dist          tests the results of make dist, make wheel and make deb in root file systems of Debian 11, 12 and 13, and for ARM under qemu
make readme-figures     measures the figures of README.md here and writes them, in about 6 minutes, after a make test

Benchmarks
make bench              runs the benchmarks on this machine
make bench-peers        compares vlmprof with PyTorch, llama.cpp and others (tests/bench/peers.py)
make numbers            measures the figures of vlmprof help numbers and writes that page; needs a quiet machine

GPU
make test-gpu           runs the tests that need a GPU; a skip is a failure
make first-gpu-pack     packs a first run on a GPU, of ten minutes, into a folder for a machine without a compiler: ./first_run.sh there
make first-gpu          packs it and runs it here
make gpu-choose         FILE=first-gpu.jsonl: shows which switches of --gpu pay off, and which code can be removed
make gpu-compile        compiles the kernels for $(GPU_ARCHS) without spills (needs nvcc, no GPU)
make gpu-report         checks registers, spills, occupancy, instructions, waits and shared memory of each kernel against limits (needs nvcc, no GPU)
make gpu-predict        predicts each kernel's time on Hopper from counts; writes tests/bench/results/gpu-predictions.md

Variables: CC, CXX, CFLAGS, KERNEL_FLAGS, NVCC, GPU (1: with GPU code, 0: without), PREFIX, DESTDIR, B (the build folder), PROGRAM
endef
.DEFAULT_GOAL := all
.PHONY: all help deps format clean
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
# Runs as many jobs as there are cores and gigabytes of free memory; -j overrides this. Several targets run one after another if one is a command.
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
# the C++ compiler of the same family as the C compiler, so that both use one sanitizer runtime
CXX := $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),$(if $(filter %-gcc,$(CC)),$(CC:%-gcc=%-g++),g++))
CFLAGS ?= -O2 -g1
# the program around the library computes little, and is a third of the compiled code
CLI_FLAGS ?= $(if $(filter file,$(origin CFLAGS)),-O1)
KERNEL_FLAGS ?= -O3
ifeq ($(origin NVCC),undefined)
NVCC := $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
endif
# what this nvcc lacks: no-blackwell before 12.8; all before 12.0, which cannot compile the GPU code
NVCC_LACKS := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | \
    awk '{ n = $$1 * 100 + $$2; print n < 1200 ? "all" : n < 1208 ? "no-blackwell" : "" }'))
OPENMP ?= -fopenmp
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
TEST_TIMEOUT_S ?= 1500
B ?= build
ifneq ($(origin PROGRAM),command line) # tests have the program with hooks in their environment
PROGRAM := ./vlmprof
endif

# No option here lets the compiler reorder floating-point operations or ties the program to this machine's processor.
# Contraction is off because the header's results are compared bit by bit; the kernels enable it for single functions.
WARN := -Wall -Wextra -Wpedantic -Wshadow
STD := -std=c11 -D_DEFAULT_SOURCE
# a cross compiler (aarch64-linux-gnu-gcc) has its own headers; libstb-dev's folder, the same for every processor, is searched after them
CROSS := $(if $(filter %-gcc,$(CC)),-idirafter /usr/include)
INCLUDES := -I. -Iparts -Iparts/lib -Icli -Itests
HEADER_FLAGS = $(STD) $(WARN) $(INCLUDES) $(CROSS) -ffp-contract=off $(CFLAGS) $(SANITIZE)
ENGINE_FLAGS = $(STD) $(WARN) $(INCLUDES) $(CFLAGS) $(KERNEL_FLAGS) $(OPENMP) $(SANITIZE)
DEPENDENCIES = -MMD -MP -MT $@ -MF $(B)/$(subst /,-,$@).$(D)
D := d
UPPER = $(shell echo $(1) | tr a-z A-Z)

# libcurl is opened at run time by dlopen, which is in a separate library before glibc 2.34
SYSTEM := -ldl -lm

# the copied headers (each compiled once as a C file), the library's other subjects, the engine, the program
HEADERS := vlmprof.h $(wildcard parts/vlmprof_*.h)
LIB_SOURCES := $(wildcard parts/lib/*.c)
ENGINE_SOURCES := $(wildcard parts/engine/*.c)
CLI_SOURCES := $(wildcard cli/*/*.c cli/*/*/*.c)
HEADER_OBJECTS = $(HEADERS:%.h=$(B)/%.o) $(LIB_SOURCES:%.c=$(B)/%.o)
ENGINE_OBJECTS = $(ENGINE_SOURCES:%.c=$(B)/%.o) $(B)/vlmprof_kernels.o
GUIDES := $(wildcard cli/guides/*.txt)
ASSETS := $(wildcard cli/page/*.css cli/page/*.js)
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
	elif [ -n "$(NVCC)" ]; then echo "$(PROGRAM): CPU backend. There is no NVIDIA driver here: make GPU=1 adds the GPU code ($(NVCC)) for another machine"; \
	elif [ -n "$(GPU_DRIVER)" ]; then \
	    echo "$(PROGRAM): CPU backend. There is an NVIDIA driver, but no nvcc: install the CUDA Toolkit 12.8 or later with cuBLAS"; \
	    echo "  (https://developer.nvidia.com/cuda-downloads), then make again; NVCC=path if nvcc is not on the PATH"; \
	else echo "$(PROGRAM): CPU backend. nvcc not found: no GPU code (CUDA Toolkit 12.8 or later, or NVCC=path)"; fi

help:
	@$(info $(HELP)):

# ---- packages: probed once for each compiler, installed if allowed (tests/deps.sh)
PROBED := $(B)/deps-$(subst /,-,$(subst $() ,-,$(CC)))
deps: $(PROBED)
$(PROBED):
	@tests/deps.sh build "$(CC) $(CROSS)"
	@mkdir -p $(B) && touch $@

# the tests also need a C++ compiler and libcurl
PROBED_EMULATOR := $(PROBED:$(B)/deps-%=$(B)/deps-emulator-%)
$(PROBED_EMULATOR): $(PROBED)
	@tests/deps.sh emulator "$(CC)"
	@touch $@

# ---- A change in the implementation of a copied header recompiles only one object. The others depend on its declarations: its preprocessed text, in a
# file that is written only if it changes. In their dependency files, which end in .od, that file replaces the header.
DECLARED = $(HEADERS:%=$(B)/declared/%)
$(DECLARED:=.seen): $(B)/declared/%.seen: % | $(PROBED)
	@mkdir -p $(@D); $(CC) $(STD) $(INCLUDES) $(CROSS) -E -dD -P -x c $< -o $@ && { cmp -s $@ $(@:.seen=) || cp $@ $(@:.seen=); }
$(DECLARED): %: %.seen
	@:
COMPILED = $(HEADER_OBJECTS) $(ENGINE_OBJECTS) $(CLI_OBJECTS) $(HOOKED_OBJECTS) $(B)/cli.o $(B)/vlmprof_cuda.o $(E)/vlmprof_emulated.o $(GPU_ARCHS:%=$(B)/gpu/vlmprof_kernels.%.o)
# a build folder of older rules has no such files, so its objects are compiled again
$(B)/rules-2:
	@mkdir -p $(B) && touch $@
$(COMPILED): D := od
$(COMPILED): $(B)/rules-2 | $(DECLARED)
OBJECTS_DEPEND := $(if $(wildcard $(B)/*.od),$(shell sed -E 's#(^| )(\./)?(vlmprof|parts/vlmprof_[a-z_]+)\.h#\1$(B)/declared/\3.h#g' $(B)/*.od >$(B)/od.$$$$ && \
    mv $(B)/od.$$$$ $(B)/objects.mk && echo $(B)/objects.mk))

include mk/gpu.mk

# ---- the library: the headers, parts/lib and the engine, one object each; and the folders of cli/
# what computes little is compiled like the program around it, and what the engine does between kernels without -O3
COLD := $(addprefix vlmprof_,families file ranges stages trace unicode) $(addprefix lib/vlmprof_,caption chat config latency noise prompt server)
$(COLD:%=$(B)/parts/%.o): CFLAGS += $(CLI_FLAGS)
$(filter-out $(B)/parts/engine/pack.o $(B)/parts/engine/prune.o,$(ENGINE_SOURCES:%.c=$(B)/%.o)): KERNEL_FLAGS :=
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
# makes the guides arrays of lines, which cli/help/help_text.h declares. The line {terms} becomes two lines for each term of cli/results/metrics.h.
$(B)/cli/guides.c: $(GUIDES) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "help/help_text.h"'; echo '#include "results/fields.h"'; echo '#include "results/knobs.h"'; \
	echo '#define FIRST(first, ...) first'; \
	echo '#define ROW_LINES(S, type, key, ...) "  " #key, "      " FIRST(__VA_ARGS__, 0),'; \
	echo '#define AT_LINES(S, type, key, member, ...) "  " key, "      " FIRST(__VA_ARGS__, 0),'; \
	echo '#define KNOB_LINES(id, key, words, ...) "  " key, "      " words,'; \
	echo '#define ELSE_LINES(type, key, ...) "  " key, "      " FIRST(__VA_ARGS__, 0),'; \
	echo '#define LINES(id, key, unit, meaning) "  " key, "      " meaning,'; \
	for guide in $(GUIDES); do echo "static const char *const $$(basename $$guide .txt)_lines[] = {"; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/",/; s/^"{knobs}",$$/KNOB_ROWS(KNOB_LINES)/; s/^"{terms}",$$/METRIC_ROWS(LINES) TERM_ROWS(LINES)/; s/^"{keys of .*}",$$/\U&/; s/^"{KEYS OF A \(.*\)}",$$/\1_KEYS(ROW_LINES, AT_LINES, ELSE_LINES)/' $$guide; echo '};'; done; \
	echo 'const struct guide GUIDES[] = {'; \
	for guide in $(GUIDES); do name=$$(basename $$guide .txt); echo "{\"$$name\", $${name}_lines, sizeof $${name}_lines / sizeof *$${name}_lines},"; done; \
	echo '{NULL, NULL, 0}};'; } >$@
$(B)/cli/guides.o: $(B)/cli/guides.c cli/help/help_text.h cli/results/metrics.h cli/results/fields.h cli/results/knobs.h | $(PROBED)
	@echo "cc  $(GUIDES)"
	@$(CC) $(HEADER_FLAGS) -c $< -o $@
# makes the pages' style sheets and scripts arrays of lines (page.css is PAGE_CSS); cli/page/page.h declares them
$(B)/cli/assets.c: $(ASSETS) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "page/page.h"'; for asset in $(ASSETS); do basename $$asset | sed 's/\(.*\)\.\(.*\)/const char *const \U\1_\2[] = {/'; \
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

# ---- the program. The GPU code is linked as an object, because it replaces a weak symbol, which an archive member would not do.
$(PROGRAM): $(GPU_OBJECT) $(LINKED) $(LIBRARY) $(ROOMS) $(B)/cli.o
	@$(CC) $(OPENMP) $(SANITIZE) $(LDFLAGS) $(B)/cli.o $(GPU_OBJECT) $(LIBRARIES) -o $@ $(if $(GPU_OBJECT),$(CUDA_LIBRARIES)) $(SYSTEM)

# the lines that differ from the last commit, in the style of .clang-format
format:
	@tests/deps.sh tools
	@git clang-format --quiet --force HEAD -- '*.c' '*.h' '*.hpp' '*.cpp' '*.cu'

clean:
	rm -rf build vlmprof $(DIST)

include mk/tests.mk mk/demo.mk mk/fuzz.mk mk/bench.mk mk/install.mk mk/dist.mk
-include $(wildcard $(B)/*.d) $(OBJECTS_DEPEND)
