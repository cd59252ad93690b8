# vlmprof: `make help` lists the targets. Works with GNU make 4 and bash; builds go to build/, the program to ./vlmprof.
# CC, CXX, CFLAGS, KERNEL_FLAGS, NVCC (empty: no GPU code), PREFIX and DESTDIR can be set from outside.
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
# As many jobs as there are cores and gigabytes of free memory; a caller's -j counts. Several targets, one of them a command, run one after another.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += $(shell [[ "$$MAKEFLAGS" == *-j* ]] || \
    awk -v jobs="$$(nproc)" '/^MemAvailable:/ && $$2 < jobs * 1e6 { jobs = int($$2 / 1e6) } END { print "-j" (jobs > 1 ? jobs : 1) }' /proc/meminfo)
endif
ifneq ($(and $(word 2,$(MAKECMDGOALS)),$(filter clean install uninstall check demo% test% bench% fuzz% full-size,$(MAKECMDGOALS))),)
.NOTPARALLEL:
endif
.DELETE_ON_ERROR:
.SUFFIXES:

CC ?= cc
# the C++ compiler beside the C compiler: one sanitizer runtime for both
CXX := $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),$(if $(filter %-gcc,$(CC)),$(CC:%-gcc=%-g++),g++))
CFLAGS ?= -O2 -g1
# the program around the library computes little, and is a third of what is compiled
CLI_FLAGS ?= $(if $(filter file,$(origin CFLAGS)),-O1)
KERNEL_FLAGS ?= -O3
ifeq ($(origin NVCC),undefined)
NVCC := $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
endif
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
TEST_TIMEOUT_S ?= 600
B ?= build
PROGRAM ?= ./vlmprof

# one fat object: machine code for A100, H100/H200 (with wgmma and TMA, which sm_90a alone has) and B200, and PTX for what comes after; no C++ runtime is needed to link it
NVCC_FLAGS = -std=c++17 -O3 --threads 0 -DVLMPROF_SM_90A $(INCLUDES) -Xcompiler -fno-threadsafe-statics,-fno-exceptions,-Wall,-Wextra
NVCC_ARCHS := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_100,code=[sm_100,compute_100]
CUDA_TOOLKIT = $(dir $(realpath $(shell command -v $(NVCC))))..
CUDA_LIBRARIES = $(foreach place,lib64 lib targets/x86_64-linux/lib,-L$(CUDA_TOOLKIT)/$(place)) -lcudart_static -ldl -lrt -lpthread

# No option here lets the compiler reorder floating point, and none ties the program to this machine's processor.
# Contraction is off because results of the header are compared bit by bit; the kernels choose it function by function.
WARN := -Wall -Wextra -Wpedantic -Wshadow
STD := -std=c11 -D_DEFAULT_SOURCE
# a cross compiler (aarch64-linux-gnu-gcc) has headers of its own; libstb-dev's, the same for every processor, is searched after them
CROSS := $(if $(filter %-gcc,$(CC)),-idirafter /usr/include)
INCLUDES := -I. -Iparts -Icli
HEADER_FLAGS = $(STD) $(WARN) $(INCLUDES) $(CROSS) -ffp-contract=off $(CFLAGS) $(SANITIZE)
ENGINE_FLAGS = $(STD) $(WARN) $(INCLUDES) $(CFLAGS) $(KERNEL_FLAGS) -fopenmp $(SANITIZE)
DEPENDENCIES = -MMD -MP -MT $@ -MF $(B)/$(subst /,-,$@).d
UPPER = $(shell echo $(1) | tr a-z A-Z)

# libcurl is opened at run time by dlopen, which stands in a library of its own before glibc 2.34
SYSTEM := -ldl -lm

# the rooms: companion headers (each compiled once as a C file), the engine, the program
PART_HEADERS := $(filter-out parts/vlmprof_engine.h,$(wildcard parts/vlmprof_*.h))
ENGINE_SOURCES := $(wildcard parts/engine/*.c)
CLI_SOURCES := $(wildcard cli/*/*.c)
HEADER_OBJECTS = $(B)/vlmprof.o $(PART_HEADERS:parts/%.h=$(B)/parts/%.o)
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
GPU_ARCHS ?= sm_80 sm_90 sm_90a sm_100
LIBRARIES = $(if $(CLI_SOURCES),$(ROOMS)) $(LIBRARY)

# test_faults.c makes calls of the emulated GPU fail: it has no other form
TEST_SOURCES := $(filter-out tests/test_faults.c,$(wildcard tests/test_*.c))
TEST_SCRIPTS := $(wildcard tests/test_*.sh tests/strange_machines.sh) tests/check_layers.sh tests/check_style.sh
# A test whose first five lines have `/* slow: WHY */` (a script: `# slow: WHY`) is left to test-all; `slow-emulated: WHY` does that for its form on
# the emulated GPU.
marked = $(shell awk 'FNR > 5 { nextfile } /^(\/\*|\#) $(1): / { print FILENAME }' $(wildcard tests/*.c tests/*.sh tests/fuzz/fuzz_*.c))
BENCH_SOURCES := $(wildcard tests/bench/*.c)
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
SAMPLE_SOURCES := $(wildcard samples/*.c samples/*.cpp)
TEST_PROGRAMS := $(TEST_SOURCES:tests/%.c=$(B)/tests/%) $(FUZZ_SOURCES:tests/fuzz/fuzz_%.c=$(B)/tests/corpus_%)
BENCH_PROGRAMS := $(BENCH_SOURCES:tests/bench/%.c=$(B)/bench/%)
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(B)/fuzz/%)
SAMPLE_PROGRAMS := $(addprefix $(B)/,$(basename $(SAMPLE_SOURCES)))
# a library that makes the n-th call of a kind fail; the stdio functions that the compiler may replace by others keep their names at -O0
INJECTOR := $(B)/tests/fault_injector.so

.PHONY: all help deps demo demo-pareto test test-slow test-all test-programs test-slow-programs check test-sanitized test-threads test-servers test-gpu gpu-compile gpu-report gpu-predict bench bench-peers numbers readme-count bench-gpu all-gpu fuzz full-size man install uninstall clean
all: $(PROGRAM)
	@if [ -n "$(GPU_OBJECT)" ]; then echo "$(PROGRAM): CPU and GPU backends (nvcc: $(NVCC)); ./vlmprof info shows what it finds here"; \
	else echo "$(PROGRAM): CPU backend. nvcc not found: no GPU code (CUDA Toolkit 12.8 or later, or NVCC=path)"; fi

help:
	@echo "make             builds ./vlmprof; with GPU code when nvcc is found"
	@echo "make demo        a sweep of the small model in samples/tiny over drawings and photographs, a minute or two; results and report in build/demo"
	@echo "make demo-pareto accuracy against latency over $(PARETO_SAMPLES) held-out questions (PARETO_SAMPLES=1000: all), about 16 minutes; opens the report"
	@echo "make test        the quick tests, the GPU code's too (emulated on the CPU); the last line is the count; seconds per program in $(B)/tests/times.txt"
	@echo "make test-all    these and the slow ones (make test-slow)"
	@echo "make test-threads threads that share what may be shared, with ThreadSanitizer (clang)"
	@echo "make test-servers the part of make test-all that asks a real server, llama.cpp's; a skip is a failure"
	@echo "make check       test-all, sanitizers, compilers and language modes, nvcc when found"
	@echo "make test-gpu    the tests that need a GPU; a skip is a failure.  make bench-gpu: benchmarks on a GPU"
	@echo "make all-gpu     both in 10 minutes, what was measured beside what counts predict; raw output in tests/bench/results"
	@echo "make gpu-compile the kernels for $(GPU_ARCHS), no spills allowed (needs nvcc)"
	@echo "make gpu-report  registers, spills, occupancy, instructions, waits and shared memory of each kernel against gates (needs nvcc, no GPU)"
	@echo "make bench       benchmarks;  make bench-peers: beside PyTorch, llama.cpp and others (tests/bench/peers.py)"
	@echo "make numbers     measures the figures of vlmprof help numbers here and writes that page, on a quiet machine"
	@echo "make fuzz        FUZZ_SECONDS=$(FUZZ_SECONDS) for each fuzzer;  make full-size: checks at the real model's size"
	@echo "make install     PREFIX=$(PREFIX), DESTDIR: program, header, library, pkg-config, CMake, manual pages, completions;  make uninstall;  make man;  make clean"

# ---- packages: probed once for each compiler, installed when that is allowed (tests/deps.sh)
PROBED := $(B)/deps-$(subst /,-,$(subst $() ,-,$(CC)))
deps: $(PROBED)
$(PROBED):
	@tests/deps.sh build "$(CC) $(CROSS)"
	@mkdir -p $(B) && touch $@

# the tests need a C++ compiler and libcurl, too
PROBED_EMULATOR := $(PROBED:$(B)/deps-%=$(B)/deps-emulator-%)
$(PROBED_EMULATOR): $(PROBED)
	@tests/deps.sh emulator "$(CC)"
	@touch $@

# ---- the headers' declarations, without the implementations below them: what the objects are compiled against. A line changed in an implementation
# then compiles one object. A file here is written only where it changes; #line keeps the source's name.
HEADERS := vlmprof.h $(wildcard parts/vlmprof_*.h)
DECLARATIONS = $(B)/include/written
$(DECLARATIONS): $(HEADERS)
	@mkdir -p $(@D)
	@for header in $^; do copy=$(@D)/$${header##*/}; \
	    awk -v name=$$header 'NR == 1 { print "#line 1 \"" name "\"" } { print } /^#endif \/\* VLMPROF[A-Z_]*_H \*\/$$/ { exit }' $$header >$$copy.new; \
	    if cmp -s $$copy.new $$copy; then rm $$copy.new; else mv $$copy.new $$copy; fi; done
	@touch $@
$(addprefix $(B)/include/,$(notdir $(HEADERS))): $(DECLARATIONS)
	@:
COMPILED = $(HEADER_OBJECTS) $(ENGINE_OBJECTS) $(CLI_OBJECTS) $(HOOKED_OBJECTS) $(B)/cli.o $(B)/vlmprof_cuda.o $(E)/vlmprof_emulated.o $(GPU_ARCHS:%=$(B)/gpu/vlmprof_kernels.%.o)
$(COMPILED): INCLUDES := -I$(B)/include $(INCLUDES)
$(COMPILED): | $(DECLARATIONS)

# ---- the library: the header, its companions and the engine, one object each; and the program's rooms
$(B)/vlmprof.o: vlmprof.h | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(HEADER_FLAGS) -DVLMPROF_IMPLEMENTATION $(DEPENDENCIES) -x c -c $< -o $@
$(B)/parts/vlmprof_%.o: parts/vlmprof_%.h | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -DVLMPROF_$(call UPPER,$*)_IMPLEMENTATION $(DEPENDENCIES) -x c -c $< -o $@
$(B)/parts/engine/%.o: parts/engine/%.c | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(ENGINE_FLAGS) -ffp-contract=off -Wmissing-prototypes $(DEPENDENCIES) -c $< -o $@
$(B)/vlmprof_kernels.o: vlmprof_kernels.cu | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(ENGINE_FLAGS) $(DEPENDENCIES) -x c -c $< -o $@
$(B)/cli/%.o: cli/%.c | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) $(CLI_FLAGS) -Wmissing-prototypes -fopenmp $(DEPENDENCIES) -c $< -o $@
# the guides as arrays of lines; cli/help/guide.h declares them. The line {terms} becomes two for each term of cli/base/metrics.h.
$(B)/cli/guides.c: $(GUIDES) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "help/guide.h"'; echo '#include "base/metrics.h"'; \
	echo '#define LINES(key, unit, meaning) "  " key, "      " meaning,'; \
	for guide in $(GUIDES); do echo "static const char *const $$(basename $$guide .txt)_lines[] = {"; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/",/; s/^"{terms}",$$/METRIC_ROWS(LINES) TERM_ROWS(LINES)/' $$guide; echo '};'; done; \
	echo 'const struct guide GUIDES[] = {'; \
	for guide in $(GUIDES); do name=$$(basename $$guide .txt); echo "{\"$$name\", $${name}_lines, sizeof $${name}_lines / sizeof *$${name}_lines},"; done; \
	echo '{NULL, NULL, 0}};'; } >$@
$(B)/cli/guides.o: $(B)/cli/guides.c cli/help/guide.h cli/base/metrics.h | $(PROBED)
	@echo "cc  $(GUIDES)"
	@$(CC) $(HEADER_FLAGS) -c $< -o $@
# the pages' style sheets and scripts as arrays of lines, page.css as PAGE_CSS; cli/page/page.h declares them
$(B)/cli/assets.c: $(ASSETS) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "page/page.h"'; for asset in $(ASSETS); do basename $$asset | sed 's/\(.*\)\.\(.*\)/const char *const \U\1_\2[] = {/'; \
	sed -e 's/[\\"?]/\\&/g; s/.*/"&\\n",/' $$asset; echo 'NULL};'; done; } >$@
$(B)/cli/assets.o: $(B)/cli/assets.c | $(PROBED)
	@echo "cc  $(ASSETS)"
	@$(CC) $(HEADER_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(B)/cli.o: cli.c | $(PROBED)
	@echo "cc  $<"
	@$(CC) $(HEADER_FLAGS) -fopenmp $(DEPENDENCIES) -c $< -o $@
$(LIBRARY): $(HEADER_OBJECTS) $(ENGINE_OBJECTS)
	@rm -f $@; $(AR) rcs $@ $^
$(ROOMS): $(CLI_OBJECTS)
	@rm -f $@; $(AR) rcs $@ $^

# ---- the program, and the GPU's half of it. That is linked as an object: it stands in for a weak symbol, which no archive member does.
$(B)/vlmprof_cuda.o: vlmprof_kernels.cu
	@echo "nvcc $<"
	@mkdir -p $(B)
	@$(NVCC) $(NVCC_FLAGS) $(NVCC_ARCHS) -MMD -MP -MF $(B)/vlmprof_cuda.d -c $< -o $@
# Where no GPU could run it, demo and tests go without. A program that was linked without it is linked again for those who build it to keep.
GPU_DRIVER := $(wildcard /dev/nvidia* /dev/dxg /dev/nvhost*)
NO_GPU_CODE := $(if $(NVCC),$(if $(GPU_DRIVER),,$(filter demo% test test-all test-slow% test-programs test-servers,$(MAKECMDGOALS))))
GPU_OBJECT := $(if $(NVCC),$(if $(NO_GPU_CODE),,$(B)/vlmprof_cuda.o))
LINKED_WITH_GPU := $(if $(GPU_OBJECT),$(B)/linked-with-gpu)
$(B)/linked-with-gpu:
	@mkdir -p $(B) && touch $@
$(PROGRAM): $(GPU_OBJECT) $(LINKED_WITH_GPU) $(LIBRARY) $(ROOMS) $(B)/cli.o
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $(B)/cli.o $(GPU_OBJECT) $(LIBRARIES) -o $@ $(if $(GPU_OBJECT),$(CUDA_LIBRARIES)) $(SYSTEM)
	@$(if $(GPU_OBJECT),:,rm -f $(B)/linked-with-gpu)

# The programs that only tests use have hooks: a pause that a test plants between stages, ceilings that are given instead of measured. Objects with hooks
# take the place of the archive's; they are never part of what is built or installed.
$(B)/hooked/%.o: %.c | $(PROBED)
	@echo "cc  $< (test hooks)"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -DVLMPROF_TEST_HOOKS -fopenmp $(DEPENDENCIES) -c $< -o $@
$(B)/tests/vlmprof-hooks: $(HOOKED_OBJECTS) $(B)/cli.o $(LIBRARIES)
	@mkdir -p $(@D)
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)

# the same with a clock that counts its readings: what it measures is the same each time
$(B)/tests/vlmprof-clock.o: vlmprof.h tests/support/counting_clock.h | $(PROBED)
	@echo "cc  $< (counting clock)"
	@mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -include tests/support/counting_clock.h -DVLMPROF_IMPLEMENTATION -x c -c $< -o $@
$(B)/tests/vlmprof-clock: $(B)/tests/vlmprof-clock.o $(HOOKED_OBJECTS) $(B)/cli.o $(LIBRARIES)
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)

# the same with a server and a clock that are made up: load, audit and ask wait for nothing and say the same each time
$(B)/tests/vlmprof-virtual.o: tests/support/virtual_server.h vlmprof.h $(HEADERS) | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -x c -c $< -o $@
$(B)/tests/vlmprof-virtual: $(B)/tests/vlmprof-virtual.o $(B)/cli.o $(LIBRARIES)
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)

# ---- the same with the GPU emulated (tests/emulator/cuda_on_cpu.h): the whole command, and the tests that run on any device
EMULATED_FLAGS = -x c++ -std=c++17 -DVLMPROF_SM_90A -Wno-psabi $(WARN) $(INCLUDES) $(CFLAGS) -O1 $(SANITIZE) -include tests/emulator/cuda_on_cpu.h
$(E)/vlmprof_emulated.o: vlmprof_kernels.cu | $(PROBED_EMULATOR)
	@echo "c++ $< (GPU code, emulated)"
	@mkdir -p $(E)
	@$(CXX) $(EMULATED_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(E)/vlmprof: $(HOOKED_OBJECTS) $(B)/cli.o $(E)/vlmprof_emulated.o $(LIBRARIES)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)
$(E)/emulator: tests/emulator/emulator.cpp tests/emulator/cuda_on_cpu.h tests/emulator/cupti_on_cpu.h tests/emulator/dependent_on_cpu.h \
    tests/emulator/cooperative_on_cpu.h | $(PROBED_EMULATOR)
	@echo "c++ $<"
	@mkdir -p $(E)
	@$(CXX) -std=c++17 $(WARN) $(CFLAGS) -O0 $(SANITIZE) -I. $< -o $@ -ldl -lm
$(E)/test_%.o: tests/test_%.c | $(PROBED)
	@mkdir -p $(E)
	@$(CC) $(HEADER_FLAGS) -O1 -fopenmp -DTEST_EMULATED -DTEST_CUDA -DTEST_DEVICE='"cuda"' $(DEPENDENCIES) -c $< -o $@
$(E)/test_%: $(E)/test_%.o $(E)/vlmprof_emulated.o $(LIBRARY)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)
EMULATED_TESTS := $(E)/emulator $(E)/test_kernels $(E)/test_model $(E)/test_othermodels $(E)/test_faults $(E)/test_trace
.PRECIOUS: $(E)/test_%.o


$(INJECTOR): tests/fault_injector.c tests/fault_injector.h | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(STD) $(WARN) -g -O0 -fPIC -shared $< -Wl,--defsym=__getdelim=getdelim -ldl -o $@

# ---- programs of one source each: tests, benchmarks, samples. They link the library; a test of a part's insides includes that part, whose object
# then stays in the archive. An old program is removed first: a failed build must not leave one to run.
# Tests and samples are compiled at -O0: they wait for the compiler longer than for their own code; those that compute much get -O1. Benchmarks that
# include the kernels get the product's flags.
COMPUTING := tests/test_gemm.c tests/test_kernels.c tests/test_engine.c tests/test_intervals.c tests/test_analysis.c tests/test_load.c
LEVEL = $(if $(filter $(COMPUTING),$<),-O1,$(if $(filter tests/test_% samples/%,$<),-O0))
BENCH_OF_KERNELS := $(shell grep -l 'include "vlmprof_kernels.cu"' $(BENCH_SOURCES))
COMPILE_ONE = @echo "cc  $<"; mkdir -p $(@D); rm -f $@; \
    $(CC) $(if $(filter $<,$(BENCH_OF_KERNELS)),$(ENGINE_FLAGS),$(HEADER_FLAGS)) $(LEVEL) -fopenmp $(DEPENDENCIES) $< $(filter %.a,$^) $(LDFLAGS) -o $@ $(SYSTEM)
$(B)/tests/%: tests/%.c $(LIBRARIES) | $(PROBED)
	$(COMPILE_ONE)
$(B)/bench/%: tests/bench/%.c $(LIBRARIES) | $(PROBED)
	$(COMPILE_ONE)
$(B)/samples/%: samples/%.c | $(PROBED)
	$(COMPILE_ONE)
$(B)/samples/%: samples/%.cpp | $(PROBED_EMULATOR)
	@echo "c++ $<"; mkdir -p $(@D); rm -f $@
	@$(CXX) -std=c++17 $(WARN) -Wconversion $(INCLUDES) -ffp-contract=off $(CFLAGS) $(LEVEL) $(SANITIZE) $(DEPENDENCIES) $< $(LDFLAGS) -o $@ -lm

# the small model and its knobs; drawings that it never saw, photographs that it knows nothing about
SMALL_MODEL := --model samples/tiny/model --importance_scores_file samples/tiny/importance-scores.json --max_new_tokens 8 --num_runs_per_sample 2
DEMO_SAMPLES ?= 13
demo: $(PROGRAM)
	@rm -rf $(B)/demo && mkdir -p $(B)/demo
	@$(PROGRAM) sweep $(SMALL_MODEL) --data samples/tiny/heldout.jsonl samples/questions.jsonl --output_dir $(B)/demo --tier_list low medium high \
	    --top_k_list 1 2 --num_active_blocks_list 3 5 --num_samples $(DEMO_SAMPLES)
	@$(PROGRAM) report $(B)/demo --output_dir $(B)/demo/report
	@$(if $(NO_GPU_CODE),echo "No GPU driver here: $(PROGRAM) may lack the GPU code. make builds it with $(NVCC).")
	@echo "The small model knows drawings only: the accuracy on \"heldout\" is its own, that on the photographs of \"questions\" means nothing. Latency is real on both."
	@echo "The best configuration within 100 ms: $(PROGRAM) best $(B)/demo --dataset_name heldout --budget_ms 100"

# stopped and run again it goes on; the page is opened where something opens it
PARETO_SAMPLES ?= 200
PARETO = $(B)/demo-pareto-$(PARETO_SAMPLES)
OPEN ?= $(if $(DISPLAY)$(WAYLAND_DISPLAY),$(shell command -v xdg-open),$(if $(filter Darwin,$(shell uname)),open))
demo-pareto: $(PROGRAM)
	@$(PROGRAM) sweep $(SMALL_MODEL) --data samples/tiny/heldout.jsonl --output_dir $(PARETO) --tier_list low medium high \
	    --top_k_list 1 4 --num_active_blocks_list 2 5 --weights_list bf16 int8 int4 --num_samples $(PARETO_SAMPLES)
	@$(PROGRAM) report $(PARETO) --output_dir $(PARETO)/report
	@echo "the front and the knobs' effects: $(abspath $(PARETO))/report/report.html"
	@$(if $(OPEN),$(OPEN) $(PARETO)/report/report.html,echo "open that page in a browser: no display here")

# the slowest of $(B)/tests/times.txt start first, so that none runs alone at the end
LONG_TESTS := tests/test_servers.sh $(B)/tests/test_sweep $(E)/test_faults tests/test_tiny.sh tests/strange_machines.sh tests/test_bench_gpu.sh $(E)/test_kernels \
    $(B)/tests/test_command_sweep tests/test_readme.sh $(B)/tests/test_profile $(E)/test_othermodels $(B)/tests/test_othermodels $(E)/test_model $(B)/tests/test_twins \
    $(addprefix $(B)/tests/test_,outputs journal_hostile devices command_run gemm model audit sweep_server clock compare flame_page plan_cost)
ALL_TESTS = $(TEST_PROGRAMS) $(EMULATED_TESTS) $(TEST_SCRIPTS)
SLOW_SOURCES := $(call marked,slow)
# what has more to test where VLMPROF_TEST_ALL is set
DEEPER := $(shell grep -lE 'VLMPROF_TEST_ALL|check_all' tests/*.c tests/*.sh)
DEEPER_TESTS = $(filter $(ALL_TESTS),$(DEEPER) $(DEEPER:tests/%.c=$(B)/tests/%) $(DEEPER:tests/%.c=$(E)/%))
SLOW_TESTS = $(filter $(ALL_TESTS),$(SLOW_SOURCES) $(SLOW_SOURCES:tests/%.c=$(B)/tests/%) $(SLOW_SOURCES:tests/fuzz/fuzz_%.c=$(B)/tests/corpus_%) \
    $(patsubst tests/%.c,$(E)/%,$(call marked,slow-emulated) $(filter tests/test_faults.c,$(SLOW_SOURCES))))
QUICK_TESTS = $(filter-out $(SLOW_TESTS),$(ALL_TESTS))
in_order = $(foreach test,$(LONG_TESTS),$(filter $(test),$(1))) $(filter-out $(LONG_TESTS),$(1))
RUN_TESTS = @B=$(B) PROGRAM=$(PROGRAM) CC="$(CC)" TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) tests/run.sh
# The quick tests have a thread each, as they run beside one another; the slow ones have all that OpenMP gives them.
# Building goes on past a test that does not compile: run.sh counts it as failed, so that the last line is always the count.
test: $(PROBED_EMULATOR)
	@$(MAKE) -k test-programs || true
	$(subst @,@TEST_TOTAL=$(B)/tests/total.txt OMP_NUM_THREADS=1 ,$(RUN_TESTS)) $(call in_order,$(QUICK_TESTS))
test-slow: $(PROBED_EMULATOR)
	@$(MAKE) -k test-slow-programs || true
	$(subst @,@VLMPROF_TEST_ALL=1 ,$(RUN_TESTS)) $(call in_order,$(sort $(SLOW_TESTS) $(DEEPER_TESTS)))
test-all: $(PROBED_EMULATOR)
	@tests/total.sh "$(MAKE) test" "$(MAKE) test-slow"
# what takes longest to compile comes first
TEST_TOOLS = $(E)/vlmprof_emulated.o $(E)/emulator $(PROGRAM) $(INJECTOR) $(E)/vlmprof $(B)/tests/vlmprof-hooks $(B)/tests/vlmprof-clock $(B)/tests/vlmprof-virtual $(E)/bench_gpu $(E)/gpu_report $(E)/launches $(SAMPLE_PROGRAMS)
test-programs: $(TEST_TOOLS) $(filter-out %.sh,$(QUICK_TESTS))
test-slow-programs: $(TEST_TOOLS) $(filter-out %.sh,$(SLOW_TESTS) $(DEEPER_TESTS)) $(B)/tests/full_size

# The same tests with AddressSanitizer and UndefinedBehaviorSanitizer, in a build folder of their own.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
test-sanitized:
	@$(MAKE) test-all B=build/sanitized-$(notdir $(CC)) PROGRAM=build/sanitized-$(notdir $(CC))/vlmprof CC="$(CC)" CFLAGS="-O1 -g" KERNEL_FLAGS=-O2 NVCC= TEST_TIMEOUT_S=1800 SANITIZE="$(SANITIZERS)"

# Threads that share what may be shared, with ThreadSanitizer. libarcher explains libomp's barriers to it, and comes with libomp.
test-threads:
	@tests/deps.sh clang
	@$(MAKE) B=build/threads CC=clang CFLAGS="-O1 -g" KERNEL_FLAGS=-O1 NVCC= SANITIZE=-fsanitize=thread build/threads/tests/test_threads
	@archer=$$(clang -print-resource-dir)/../../libarcher.so; if [ ! -e "$$archer" ]; then echo "test-threads: clang has no libarcher.so beside its libomp" >&2; exit 1; fi; \
	    OMP_TOOL_LIBRARIES=$$archer TSAN_OPTIONS=ignore_noninstrumented_modules=1 build/threads/tests/test_threads

# llama.cpp's server comes from PyPI into build/servers-venv
test-servers: $(PROGRAM)
	@PROGRAM=$(PROGRAM) tests/test_servers.sh | tee $(B)/test-servers.log; tail -n 1 $(B)/test-servers.log | grep -q ' 0 failed, 0 skipped$$'

check: export TINY_QUESTIONS := 100
check: export TEST_STRICT_SKIPS := 1
check: test-all
	@tests/deps.sh clang
	@CC="$(CC)" tests/check_compile.sh
	@B=$(B) CXX="$(CXX)" tests/planted.sh
	@B=$(B) PROGRAM=$(PROGRAM) tests/check_page.sh
	@$(MAKE) test-threads
	@$(MAKE) test-sanitized CC=gcc
	@$(MAKE) test-sanitized CC=clang
	@if [ -n "$(NVCC)" ]; then $(MAKE) gpu-compile gpu-report; else echo "skipped: gpu-compile: nvcc not found"; fi
	@echo "check: all passed"

# ---- GPU: the kernels compile for every architecture of these without a warning and without spilling a register
gpu-compile: $(GPU_ARCHS:%=$(B)/gpu/vlmprof_kernels.%.o) $(PROGRAM)
	@if readelf -d $(PROGRAM) | grep -E 'NEEDED.*(cuda|cudart|cublas|nvidia|stdc\+\+)'; then echo "$(PROGRAM) needs a library that machines without a GPU lack" >&2; exit 1; fi
	@echo "gpu-compile: $(words $(GPU_ARCHS)) objects, no warnings, no spills, no local memory; $(PROGRAM) needs no CUDA library to start"
$(B)/gpu/vlmprof_kernels.%.o: vlmprof_kernels.cu
	@if [ -z "$(NVCC)" ]; then echo "gpu-compile needs nvcc (CUDA Toolkit 12.8 or later), or NVCC=path" >&2; exit 1; fi
	@mkdir -p $(@D)
	@echo "nvcc $* $<"
	@$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(B)/gpu-$*.d -arch=$* -Xptxas -v -c $< -o $@ >$@.log 2>&1 || { cat $@.log; exit 1; }
	@if grep -v '^ptxas info\|bytes stack frame' $@.log | grep .; then echo "$*: nvcc warns" >&2; rm $@; exit 1; fi
	@if grep 'stack frame' $@.log | grep -v ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads'; then \
	    echo "$*: registers spill, or an array lies in local memory" >&2; rm $@; exit 1; fi

# what every kernel became, against tests/bench/gpu/gates.txt (KEEP_GATES=1 writes them anew); no GPU needed
$(E)/launches.o: tests/bench/gpu/launches.c | $(PROBED)
	@mkdir -p $(E)
	@$(CC) $(HEADER_FLAGS) -fopenmp $(DEPENDENCIES) -c $< -o $@
$(E)/launches: $(E)/launches.o $(E)/vlmprof_emulated.o $(LIBRARY)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)
$(E)/gpu_report: tests/bench/gpu/gpu_report.c | $(PROBED)
	@mkdir -p $(E)
	@$(CC) $(HEADER_FLAGS) $(DEPENDENCIES) $< -o $@ $(LDFLAGS)
gpu-report: $(GPU_ARCHS:%=$(B)/gpu/vlmprof_kernels.%.o) $(E)/launches $(E)/gpu_report
	@B=$(B) tests/bench/gpu/gpu_report.sh $(E)/gpu_report $(E)/launches $(NVCC) $(GPU_ARCHS)

# what each kernel should take on Hopper, from counts: tests/bench/results/gpu-predictions.md
gpu-predict: $(E)/launches
	@mkdir -p $(B)/gpu
	@for kind in '' int8 int4 clusters; do CUDA_ON_CPU_CAPABILITY=9.0 CUDA_ON_CPU_MULTIPROCESSORS=132 $(E)/launches stages $$kind >$(B)/gpu/stages$$kind.txt || exit 1; done
	@python3 tests/bench/gpu/predict.py $(B)/gpu/stages.txt tests/bench/gpu/gates.txt $(B)/gpu/stagesint8.txt $(B)/gpu/stagesint4.txt $(B)/gpu/stagesclusters.txt >tests/bench/results/gpu-predictions.md
	@python3 tests/bench/gpu/predict.py $(B)/gpu/stages.txt tests/bench/gpu/gates.txt --json >tests/bench/results/gpu-predictions.json
	@echo "written: tests/bench/results/gpu-predictions.md"

# ---- on a machine with a GPU: the same sources as the emulated tests, on the device itself
G := $(B)/gpu
$(G)/test_%.o: tests/test_%.c | $(PROBED)
	@mkdir -p $(G)
	@$(CC) $(HEADER_FLAGS) -fopenmp -DTEST_CUDA -DTEST_DEVICE='"cuda"' $(DEPENDENCIES) -c $< -o $@
$(G)/test_%: $(G)/test_%.o $(B)/vlmprof_cuda.o $(LIBRARY)
	@$(CC) -fopenmp $(LDFLAGS) $^ -o $@ $(CUDA_LIBRARIES) $(SYSTEM)
.PRECIOUS: $(G)/test_%.o
test-gpu: $(PROBED)
	@if [ -z "$(NVCC)" ]; then echo "test-gpu needs nvcc (CUDA Toolkit 12.8 or later), or NVCC=path" >&2; exit 1; fi
	@$(MAKE) $(PROGRAM) $(G)/test_kernels $(G)/test_model
	@$(PROGRAM) selftest --device cuda
	@B=$(B) PROGRAM=$(PROGRAM) CC="$(CC)" TEST_JOBS=1 TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) tests/run.sh $(G)/test_kernels $(G)/test_model | tee $(G)/test.log; \
	    tail -n 1 $(G)/test.log | grep -q ' 0 failed, 0 skipped$$'
# one program for the device and for the emulated one, where the tests try it at tiny size
$(E)/bench_gpu.o: tests/bench/gpu/bench_gpu.c | $(PROBED)
	@mkdir -p $(E)
	@$(CC) $(HEADER_FLAGS) $(DEPENDENCIES) -c $< -o $@
$(E)/bench_gpu: $(E)/bench_gpu.o $(E)/vlmprof_emulated.o $(LIBRARY)
	@$(CXX) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)
$(G)/bench_gpu: $(E)/bench_gpu.o $(B)/vlmprof_cuda.o $(LIBRARY)
	@mkdir -p $(G)
	@$(CC) -fopenmp $(LDFLAGS) $^ -o $@ $(CUDA_LIBRARIES) $(SYSTEM)
bench-gpu: $(PROBED)
	@if [ -z "$(NVCC)" ]; then echo "bench-gpu needs nvcc (CUDA Toolkit 12.8 or later), or NVCC=path" >&2; exit 1; fi
	@$(MAKE) $(G)/bench_gpu
	@tests/bench/bench_gpu.sh $(G)/bench_gpu
# both, and what was measured beside what counts predict: 10 minutes on the device, raw output in a folder of tests/bench/results
all-gpu: $(PROBED)
	@if [ -z "$(NVCC)" ]; then echo "all-gpu needs nvcc (CUDA Toolkit 12.8 or later), or NVCC=path" >&2; exit 1; fi
	@$(MAKE) $(PROGRAM) $(G)/test_kernels $(G)/test_model $(G)/bench_gpu
	@tests/bench/gpu/run_all.sh tests/bench/results $(PROGRAM) $(G)/bench_gpu $(G)/test_kernels $(G)/test_model

bench: $(PROGRAM) $(BENCH_PROGRAMS)
	@if [ -z "$(BENCH_PROGRAMS)" ]; then echo "bench: no tests/bench/*.c" >&2; exit 1; fi
	@set -e; export OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000; for program in $(BENCH_PROGRAMS); do echo "== $$program"; $$program; done

# ---- beside other programs: tests/bench/peers.py says which variables name them
PYTHON3 ?= python3
bench-peers: $(B)/bench/bench_peers
	@$(PYTHON3) tests/bench/peers.py

# README's count of tests, from the last make test
readme-count:
	@B=$(B) tests/readme_count.sh write

# guide numbers, measured here: about 6 minutes, and the real model's shape where 16 GB of memory are free. The program with the new page is built by make.
numbers: $(PROGRAM) $(BENCH_PROGRAMS) $(B)/tests/test_report
	@PROGRAM=$(PROGRAM) $(PYTHON3) tests/bench/write_numbers.py

# ---- each fuzzer's seeds and old findings as a test, with any compiler
$(B)/tests/corpus_%: tests/fuzz/fuzz_%.c tests/fuzz/run_files.c $(LIBRARIES) | $(PROBED)
	@echo "cc  $< (its corpus)"; mkdir -p $(@D); rm -f $@
	@$(CC) $(HEADER_FLAGS) -O0 -fopenmp $(DEPENDENCIES) $(filter %.c,$^) $(filter %.a,$^) $(LDFLAGS) -o $@ $(SYSTEM)

# ---- libFuzzer (clang), the library instrumented too; what it finds lies in build/fuzz
F := $(B)/fuzz
FUZZ_FLAGS := -O2 -fsanitize=address,undefined -fno-sanitize-recover=all
# the checks of the sanitizers are comparisons too: traced they take more than half of the time, and teach nothing
COVERAGE := -fno-sanitize-coverage=trace-cmp
INSTRUMENTED := $(F)/instrumented/librooms.a $(F)/instrumented/libvlmprof.a
$(F)/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(INSTRUMENTED)
	@echo "fuzz $<"
	@clang -std=c11 -g $(INCLUDES) -ffp-contract=off -fopenmp $(FUZZ_FLAGS) -fsanitize=fuzzer $(COVERAGE) $< $(INSTRUMENTED) -o $@ $(SYSTEM)
$(F)/instrumented/libvlmprof.a: FORCE
	@$(MAKE) instrumented B=$(F)/instrumented CC=clang CFLAGS="-g" KERNEL_FLAGS= SANITIZE="$(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(COVERAGE)"
$(F)/instrumented/librooms.a: $(F)/instrumented/libvlmprof.a
	@:
instrumented: $(LIBRARIES)
FORCE:
fuzz-deps: $(PROBED)
	@tests/deps.sh clang
fuzz: fuzz-deps
	@if [ -z "$(FUZZ_PROGRAMS)" ]; then echo "fuzz: no tests/fuzz/fuzz_*.c" >&2; exit 1; fi
	@$(MAKE) $(FUZZ_PROGRAMS)
	@set -e; export ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=8; for program in $(FUZZ_PROGRAMS); do \
	    name=$${program##*/fuzz_}; mkdir -p $$program.corpus; seeds=tests/fuzz/corpus/$$name; [ -d $$seeds ] || seeds=; \
	    words=tests/fuzz/dictionaries/$$name.dict; [ -f $$words ] && words=-dict=$$words || words=; \
	    echo "== $$program, $(FUZZ_SECONDS) s"; \
	    $$program $$words -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 -artifact_prefix=$$program- $$program.corpus $$seeds; done
.PHONY: fuzz-deps instrumented FORCE

# random weights in the shape of the real model
full-size: $(B)/tests/full_size
	@awk '/^MemAvailable:/ && $$2 < 17e6 { print "full-size: needs 17 GB of free memory, " $$2 " kB are free"; exit 1 }' /proc/meminfo >&2
	@$<

# ---- manual pages and completions, from the program's own tables and guides
PAGES = $(B)/man/written
man: $(PAGES)
$(PAGES): $(PROGRAM)
	@mkdir -p $(@D)
	@$(PROGRAM) help --man >$(@D)/vlmprof.1
	@for word in $$($(PROGRAM) help --list); do section=1; if [ -e cli/guides/$$word.txt ]; then section=7; fi; \
	    $(PROGRAM) help $$word --man >$(@D)/vlmprof-$$word.$$section || exit 1; done
	@for shell in bash zsh fish; do $(PROGRAM) help --completion $$shell >$(@D)/completion.$$shell || exit 1; done
	@touch $@

# ---- what an installation holds. The package files find the headers and the archive from their own place, wherever the folder is moved.
VERSION := $(shell sed -n 's/^\#define VLMPROF_VERSION "\(.*\)"/\1/p' vlmprof.h)
define PKGCONFIG
prefix=$${pcfiledir}/../..
libdir=$${prefix}/lib
includedir=$${prefix}/include

Name: vlmprof
Description: profiling of vision-language models, stage by stage
Version: $(VERSION)
Cflags: -I$${includedir} -I$${includedir}/vlmprof
Libs: -L$${libdir} -lvlmprof -fopenmp -lpthread -ldl -lm
endef
define CMAKE_CONFIG
# vlmprof::header: vlmprof.h and the companions, for programs that define their IMPLEMENTATION macros. vlmprof::vlmprof: the library with the engine.
get_filename_component(VLMPROF_PREFIX "$${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET vlmprof::header)
  add_library(vlmprof::header INTERFACE IMPORTED)
  set_target_properties(vlmprof::header PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "$${VLMPROF_PREFIX}/include;$${VLMPROF_PREFIX}/include/vlmprof"
    INTERFACE_LINK_LIBRARIES m)
  add_library(vlmprof::vlmprof STATIC IMPORTED)
  set_target_properties(vlmprof::vlmprof PROPERTIES IMPORTED_LOCATION "$${VLMPROF_PREFIX}/lib/libvlmprof.a"
    INTERFACE_INCLUDE_DIRECTORIES "$${VLMPROF_PREFIX}/include;$${VLMPROF_PREFIX}/include/vlmprof" INTERFACE_LINK_LIBRARIES "-fopenmp;pthread;dl;m")
endif()
endef
define CMAKE_VERSION
set(PACKAGE_VERSION "$(VERSION)")
if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
endef
$(B)/package/written: Makefile vlmprof.h
	$(shell mkdir -p $(@D))
	$(file >$(B)/package/vlmprof.pc,$(PKGCONFIG))
	$(file >$(B)/package/vlmprof-config.cmake,$(CMAKE_CONFIG))
	$(file >$(B)/package/vlmprof-config-version.cmake,$(CMAKE_VERSION))
	@touch $@

# FOLDER:FILES..., files only of this program's names. The kernels' and the engine's source is for builds with other compilers or for other GPUs.
define INSTALLED
include vlmprof.h
include/vlmprof $(HEADERS:vlmprof.h=) $(wildcard parts/*.hpp)
share/vlmprof vlmprof_kernels.cu LICENSE samples/result.schema.json
share/vlmprof/parts/engine $(wildcard parts/engine/*.[ch])
share/vlmprof/parts/kernels $(wildcard parts/kernels/*.h)
lib $(LIBRARY)
$(if $(GPU_OBJECT),lib/vlmprof $(GPU_OBJECT))
lib/pkgconfig $(B)/package/vlmprof.pc
lib/cmake/vlmprof $(B)/package/vlmprof-config.cmake $(B)/package/vlmprof-config-version.cmake
share/man/man1 $(B)/man/*.1
share/man/man7 $(B)/man/*.7
share/bash-completion/completions $(B)/man/completion.bash=vlmprof
share/zsh/site-functions $(B)/man/completion.zsh=_vlmprof
share/fish/vendor_completions.d $(B)/man/completion.fish=vlmprof.fish
bin $(PROGRAM)
endef
# install_each COMMAND: runs it for each line of that list with $$from, and $$to below DESTDIR and PREFIX
install_each = @$(file >$(B)/package/list,$(INSTALLED))while read -r folder files; do for file in $$files; do \
    from=$${file%%=*}; name=$${file\#\#*=}; to="$(DESTDIR)$(PREFIX)/$$folder/$${name\#\#*/}"; $(1) || exit 1; done; done <$(B)/package/list
install: $(PROGRAM) $(PAGES) $(B)/package/written
	$(call install_each,install -D -m $$([ -x "$$from" ] && echo 755 || echo 644) "$$from" "$$to")
	@echo "installed below $(DESTDIR)$(PREFIX): vlmprof, its header and library, manual pages, completions; make uninstall removes them"
uninstall: $(PROGRAM) $(PAGES) $(B)/package/written
	$(call install_each,rm -f "$$to")
	@cd "$(DESTDIR)$(PREFIX)" && for folder in include/vlmprof share/vlmprof/parts/engine share/vlmprof/parts/kernels share/vlmprof/parts share/vlmprof lib/vlmprof lib/cmake/vlmprof; do \
	    if [ -d $$folder ]; then rmdir --ignore-fail-on-non-empty $$folder; fi; done

clean:
	rm -rf build vlmprof

-include $(wildcard $(B)/*.d)
