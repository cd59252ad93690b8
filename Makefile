# vlmprof: `make help` lists the targets. Works with GNU make 4 and bash; builds go to build/, the program to ./vlmprof.
# CC, CXX, CFLAGS, KERNEL_FLAGS, NVCC, PREFIX and DESTDIR can be set from outside.
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:

CC ?= cc
CXX ?= c++
CFLAGS ?= -O2 -g
KERNEL_FLAGS ?= -O3
NVCC ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
TEST_TIMEOUT_S ?= 600
B ?= build
PROGRAM ?= ./vlmprof

# No option here lets the compiler reorder floating point, and none ties the program to this machine's processor.
# Contraction is off because results of the header are compared bit by bit; the kernels choose it function by function.
WARN := -Wall -Wextra -Wpedantic -Wshadow
STD := -std=c11
HEADER_FLAGS = $(STD) $(WARN) -ffp-contract=off $(CFLAGS) $(SANITIZE)
ENGINE_FLAGS = $(STD) $(WARN) $(CFLAGS) $(KERNEL_FLAGS) -fopenmp $(SANITIZE)
DEPENDENCIES = -MMD -MP -MT $@ -MF $(B)/$(subst /,-,$@).d

TEST_SOURCES := $(wildcard tests/test_*.c)
TEST_SCRIPTS := $(wildcard tests/test_*.sh)
BENCH_SOURCES := $(wildcard tests/bench/*.c)
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
SAMPLE_SOURCES := $(wildcard samples/*.c)
# a source that calls the engine is linked with it, unless it includes the kernels' source itself
CALLS_ENGINE := $(shell grep -lE 'vp_engine_|links: engine' $(TEST_SOURCES) $(BENCH_SOURCES) $(FUZZ_SOURCES) /dev/null 2>/dev/null)
HOLDS_ENGINE := $(shell grep -lE 'include "[./]*vlmprof_kernels\.cu"' $(TEST_SOURCES) $(BENCH_SOURCES) $(FUZZ_SOURCES) /dev/null 2>/dev/null)
LINKS_ENGINE := $(filter-out $(HOLDS_ENGINE),$(CALLS_ENGINE))
TEST_PROGRAMS := $(TEST_SOURCES:tests/%.c=$(B)/tests/%)
BENCH_PROGRAMS := $(BENCH_SOURCES:tests/bench/%.c=$(B)/bench/%)
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(B)/fuzz/%)
SAMPLE_PROGRAMS := $(SAMPLE_SOURCES:samples/%.c=$(B)/samples/%)
# without -j a sub-make uses all cores; with -j it shares the caller's
JOBS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))

.PHONY: all help deps demo test test-programs check test-sanitized test-gpu gpu-compile bench fuzz full-size install clean
all: $(PROGRAM)
	@if [ -n "$(NVCC)" ]; then echo "$(PROGRAM): CPU backend. nvcc found ($(NVCC)): no GPU backend in this version, make gpu-compile compiles the kernels"; \
	else echo "$(PROGRAM): CPU backend. nvcc not found, and not needed: no GPU backend in this version"; fi

help:
	@echo "make             builds ./vlmprof"
	@echo "make demo        a sweep over samples/ with random weights: 12 result files in build/demo, under a minute"
	@echo "make test        all tests; the last line is the count"
	@echo "make check       test, sanitizers, compilers and language modes, nvcc when found, style"
	@echo "make gpu-compile the kernels as GPU objects (needs nvcc); test-gpu: no GPU backend in this version, fails"
	@echo "make bench       benchmarks;  make fuzz: FUZZ_SECONDS=$(FUZZ_SECONDS) for each fuzzer;  make full-size: checks at the real model's size"
	@echo "make install     PREFIX=$(PREFIX);  make clean"

# ---- packages: probed once for each compiler, installed when that is allowed (tests/deps.sh)
PROBED := $(B)/deps-$(subst /,-,$(subst $() ,-,$(CC)))
deps: $(PROBED)
$(PROBED):
	@tests/deps.sh build "$(CC)"
	@mkdir -p $(B) && touch $@

# ---- the program
$(B)/cli.o: cli.c | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(HEADER_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(B)/vlmprof_kernels.o: vlmprof_kernels.cu | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(ENGINE_FLAGS) $(DEPENDENCIES) -x c -c $< -o $@
$(PROGRAM): $(B)/cli.o $(B)/vlmprof_kernels.o
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ -lm

# ---- programs of one source each: tests, benchmarks, samples. An old program is removed first: a failed build must not leave one to run.
COMPILE_ONE = @echo "cc  $<"; mkdir -p $(@D); rm -f $@; \
    $(CC) $(HEADER_FLAGS) $(if $(filter $<,$(CALLS_ENGINE) $(HOLDS_ENGINE)),-fopenmp) $(DEPENDENCIES) -I. $< \
    $(if $(filter $<,$(LINKS_ENGINE)),$(B)/vlmprof_kernels.o) $(LDFLAGS) -o $@ -lm
$(B)/tests/%: tests/%.c | $(PROBED)
	$(COMPILE_ONE)
$(B)/bench/%: tests/bench/%.c | $(PROBED)
	$(COMPILE_ONE)
$(B)/samples/%: samples/%.c | $(PROBED)
	$(COMPILE_ONE)
$(patsubst tests/%.c,$(B)/tests/%,$(filter tests/test_%,$(LINKS_ENGINE))): $(B)/vlmprof_kernels.o
$(patsubst tests/bench/%.c,$(B)/bench/%,$(filter tests/bench/%,$(LINKS_ENGINE))): $(B)/vlmprof_kernels.o

demo: $(PROGRAM)
	@rm -rf $(B)/demo && mkdir -p $(B)/demo
	@$(PROGRAM) sweep --synthetic tiny --data samples/questions.jsonl --output_dir $(B)/demo --tier_list low medium high \
	    --top_k_list $(DEMO_TOP_K) --num_active_blocks_list $(DEMO_BLOCKS) --num_samples $(DEMO_SAMPLES) --num_runs_per_sample 1 --max_new_tokens 8
	@for tier in low medium high; do ls $(B)/demo/*imgsizetier-$$tier*.json; done > $(B)/demo/files
	@awk -f samples/table.awk $$(cat $(B)/demo/files)
	@echo "P50 over $(DEMO_SAMPLES) questions, one run each. $$(wc -l < $(B)/demo/files) result files: $(B)/demo/questions_imgsizetier-*.json"
DEMO_SAMPLES ?= 13
DEMO_TOP_K ?= 1 2
DEMO_BLOCKS ?= 2 4

# Building goes on past a test that does not compile: run.sh counts it as failed, so that the last line is always the count.
test: $(PROBED)
	@$(MAKE) $(JOBS) -k test-programs || true
	@B=$(B) PROGRAM=$(PROGRAM) CC="$(CC)" TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) tests/run.sh $(TEST_PROGRAMS) $(TEST_SCRIPTS)
test-programs: $(PROGRAM) $(TEST_PROGRAMS) $(SAMPLE_PROGRAMS)

# The same tests with AddressSanitizer and UndefinedBehaviorSanitizer, in a build folder of their own.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
test-sanitized:
	@$(MAKE) test B=build/sanitized-$(notdir $(CC)) PROGRAM=build/sanitized-$(notdir $(CC))/vlmprof CC="$(CC)" CFLAGS="-O1 -g" KERNEL_FLAGS=-O2 TEST_TIMEOUT_S=1800 SANITIZE="$(SANITIZERS)"

check: test
	@tests/deps.sh clang
	@tests/check_style.sh
	@CC="$(CC)" tests/check_compile.sh
	@$(MAKE) test-sanitized CC=gcc
	@$(MAKE) test-sanitized CC=clang
	@if [ -n "$(NVCC)" ]; then $(MAKE) gpu-compile; else echo "skipped: gpu-compile: nvcc not found"; fi
	@echo "check: all passed"

# ---- GPU: the kernels compile for every architecture that nvcc knows of these
GPU_ARCHS ?= sm_80 sm_90 sm_90a sm_100
gpu-compile: $(GPU_ARCHS:%=$(B)/vlmprof_kernels.%.o)
	@echo "gpu-compile: $(words $(GPU_ARCHS)) objects"
$(B)/vlmprof_kernels.%.o: vlmprof_kernels.cu vlmprof.h
	@if [ -z "$(NVCC)" ]; then echo "gpu-compile needs nvcc (CUDA Toolkit 12.8 or later), or NVCC=path" >&2; exit 1; fi
	@mkdir -p $(B)
	@echo "nvcc $* $<"
	@$(NVCC) -O3 -std=c++17 -arch=$* -c $< -o $@
test-gpu:
	@echo "test-gpu: this version has no GPU backend, so there is nothing that could pass"; exit 1

bench: $(PROGRAM) $(BENCH_PROGRAMS)
	@if [ -z "$(BENCH_PROGRAMS)" ]; then echo "bench: no tests/bench/*.c" >&2; exit 1; fi
	@set -e; for program in $(BENCH_PROGRAMS); do echo "== $$program"; $$program; done

# ---- libFuzzer (clang); what it finds lies in build/fuzz
$(B)/fuzz/%: tests/fuzz/%.c vlmprof.h $(B)/fuzz/vlmprof_kernels.o
	@echo "fuzz $<"
	@clang -std=c11 -O1 -g -ffp-contract=off -fopenmp -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. $< \
	    $(if $(filter $<,$(LINKS_ENGINE)),$(B)/fuzz/vlmprof_kernels.o) -o $@ -lm
$(B)/fuzz/vlmprof_kernels.o: vlmprof_kernels.cu vlmprof.h
	@mkdir -p $(B)/fuzz
	@$(if $(filter tests/fuzz/%,$(LINKS_ENGINE)),clang -std=c11 -O1 -g -fopenmp -fsanitize=fuzzer-no-link$(,)address$(,)undefined -x c -c $< -o $@,touch $@)
, := ,
fuzz-deps: $(PROBED)
	@tests/deps.sh clang
fuzz: fuzz-deps
	@if [ -z "$(FUZZ_PROGRAMS)" ]; then echo "fuzz: no tests/fuzz/fuzz_*.c" >&2; exit 1; fi
	@$(MAKE) $(FUZZ_PROGRAMS)
	@set -e; for program in $(FUZZ_PROGRAMS); do \
	    mkdir -p $$program.corpus; seeds=tests/fuzz/corpus/$${program##*/fuzz_}; [ -d $$seeds ] || seeds=; \
	    echo "== $$program, $(FUZZ_SECONDS) s"; \
	    $$program -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 -artifact_prefix=$$program- $$program.corpus $$seeds; done
.PHONY: fuzz-deps

full-size: $(PROGRAM) $(B)/vlmprof_kernels.o
	@if [ ! -x tests/full_size.sh ]; then echo "full-size: tests/full_size.sh is missing" >&2; exit 1; fi
	@B=$(B) PROGRAM=$(PROGRAM) CC="$(CC)" tests/full_size.sh

install: $(PROGRAM)
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/vlmprof
	install -D -m 644 vlmprof.h $(DESTDIR)$(PREFIX)/include/vlmprof.h

clean:
	rm -rf build vlmprof

-include $(wildcard $(B)/*.d)
