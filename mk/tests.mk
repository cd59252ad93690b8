# Tests: their programs, when each runs, sanitizers, and make check.
.PHONY: test test-slow test-all test-programs test-slow-programs test-sanitized test-threads test-servers check full-size

# tests/FOLDER/test_NAME.c becomes $(B)/tests/test_NAME. test_faults.c makes calls of the emulated GPU fail, so it has no other form.
TEST_SOURCES := $(filter-out %/test_faults.c,$(wildcard tests/*/test_*.c))
TEST_SCRIPTS := $(wildcard tests/*/test_*.sh tests/strange_machines.sh) tests/check_layers.sh tests/check_style.sh
vpath test_%.c $(sort $(dir $(TEST_SOURCES)))
programs_of = $(patsubst %.c,$(2)%,$(notdir $(filter %.c,$(1))))
# A test with `/* slow: WHY */` (a script: `# slow: WHY`) in its first five lines runs only in test-all; `slow-emulated: WHY` does that for its form on
# the emulated GPU.
marked = $(shell awk 'FNR > 5 { nextfile } /^(\/\*|\#) $(1): / { print FILENAME }' $(wildcard tests/*/*.c tests/*/*.sh tests/*.sh))
BENCH_SOURCES := $(wildcard tests/bench/*.c)
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
SAMPLE_SOURCES := $(wildcard samples/*.c samples/*.cpp)
TEST_PROGRAMS := $(call programs_of,$(TEST_SOURCES),$(B)/tests/) $(FUZZ_SOURCES:tests/fuzz/fuzz_%.c=$(B)/tests/corpus_%)
BENCH_PROGRAMS := $(BENCH_SOURCES:tests/bench/%.c=$(B)/bench/%)
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(B)/fuzz/%)
SAMPLE_PROGRAMS := $(addprefix $(B)/,$(basename $(SAMPLE_SOURCES)))
# a library that makes the n-th call of a kind fail; the stdio functions that the compiler may replace by others keep their names at -O0
INJECTOR := $(B)/tests/fault_injector.so

# The programs for tests have hooks: a pause between stages, given instead of measured ceilings, a folder as the system's root. Objects with hooks
# replace the archive's; they are never part of the built or installed program.
$(B)/hooked/%.o: %.c | $(PROBED)
	@echo "cc  $< (test hooks)"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -DVLMPROF_TEST_HOOKS -fopenmp $(DEPENDENCIES) -c $< -o $@
$(B)/tests/vlmprof-hooks: $(HOOKED_OBJECTS) $(B)/cli.o $(GPU_OBJECT) $(LIBRARIES)
	@mkdir -p $(@D)
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(if $(GPU_OBJECT),$(CUDA_LIBRARIES)) $(SYSTEM)

# the same with a clock that counts its readings, so that measurements are the same each time
$(B)/tests/vlmprof-clock.o: vlmprof.h tests/support/counting_clock.h | $(PROBED)
	@echo "cc  $< (counting clock)"
	@mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) -include tests/support/counting_clock.h -DVLMPROF_IMPLEMENTATION $(DEPENDENCIES) -x c -c $< -o $@
$(B)/tests/vlmprof-clock: $(B)/tests/vlmprof-clock.o $(HOOKED_OBJECTS) $(B)/cli.o $(LIBRARIES)
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)

# the same with a simulated server and clock: audit and ask do not wait, and print the same each time
$(B)/tests/vlmprof-virtual.o: tests/support/virtual_server.h | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(HEADER_FLAGS) $(DEPENDENCIES) -x c -c $< -o $@
$(B)/tests/vlmprof-virtual: $(B)/tests/vlmprof-virtual.o $(B)/cli.o $(LIBRARIES)
	@$(CC) -fopenmp $(SANITIZE) $(LDFLAGS) $^ -o $@ $(SYSTEM)

$(INJECTOR): tests/commands/fault_injector.c tests/commands/fault_injector.h | $(PROBED)
	@echo "cc  $<"; mkdir -p $(@D)
	@$(CC) $(STD) $(WARN) -g -O0 -fPIC -shared $< -Wl,--defsym=__getdelim=getdelim -ldl -o $@

# ---- programs of one source each: tests, benchmarks, samples. They link the library. A test of a part's internals includes that part, whose object
# then stays in the archive. An old program is removed first, because a failed build must not leave one to run.
# Tests and samples are compiled at -O0, because compiling takes longer than running them; those that compute much get -O1. Benchmarks that
# include the kernels get the product's flags.
COMPUTING := test_gemm.c test_kernels.c test_engine.c test_intervals.c test_analysis.c test_latency.c test_policy.c
LEVEL = $(if $(filter $(COMPUTING),$(<F)),-O1,$(if $(filter test_%,$(<F))$(filter samples/%,$<),-O0))
BENCH_OF_KERNELS := $(shell grep -l 'include "vlmprof_kernels.cu"' $(BENCH_SOURCES))
COMPILE_ONE = @echo "cc  $<"; mkdir -p $(@D); rm -f $@; \
    $(CC) $(if $(filter $<,$(BENCH_OF_KERNELS)),$(ENGINE_FLAGS),$(HEADER_FLAGS)) $(LEVEL) -fopenmp $(DEPENDENCIES) $< $(filter %.a,$^) $(LDFLAGS) -o $@ $(SYSTEM)
$(B)/tests/test_%: test_%.c $(LIBRARIES) | $(PROBED)
	$(COMPILE_ONE)
$(B)/tests/full_size: tests/engine/full_size.c $(LIBRARIES) | $(PROBED)
	$(COMPILE_ONE)
$(B)/bench/%: tests/bench/%.c $(LIBRARIES) | $(PROBED)
	$(COMPILE_ONE)
$(B)/samples/%: samples/%.c | $(PROBED)
	$(COMPILE_ONE)
$(B)/samples/%: samples/%.cpp | $(PROBED_EMULATOR)
	@echo "c++ $<"; mkdir -p $(@D); rm -f $@
	@$(CXX) -std=c++17 $(WARN) -Wconversion $(INCLUDES) -ffp-contract=off $(CFLAGS) $(LEVEL) $(SANITIZE) $(DEPENDENCIES) $< $(LDFLAGS) -o $@ -lm

# the slowest tests of $(B)/tests/times.txt start first, so that none runs alone at the end
LONG_TESTS := %/test_servers.sh $(E)/test_othermodels $(E)/test_model tests/strange_machines.sh $(E)/test_prune %/test_first_gpu.sh \
    $(B)/tests/test_sweep $(B)/tests/test_devices %/test_tiny.sh %/test_torch.sh %/test_demo.sh $(E)/test_faults $(E)/test_kernels \
    %/test_install.sh $(addprefix $(B)/tests/test_,journal_hostile inject outputs fidelity) %/test_readme.sh \
    $(addprefix $(B)/tests/test_,profile virtual option_values command_sweep audit othermodels) %/test_copies.sh %/test_python.sh \
    $(E)/test_several $(addprefix $(B)/tests/test_,model sweep_server compare gemm clock flame_page command_run)
ALL_TESTS = $(TEST_PROGRAMS) $(EMULATED_TESTS) $(TEST_SCRIPTS)
SLOW_SOURCES := $(call marked,slow)
# tests with more cases if VLMPROF_TEST_ALL is set; test_prune has them only on the emulated GPU
DEEPER := $(shell grep -lE 'VLMPROF_TEST_ALL|check_all' tests/*/test_*)
DEEPER_TESTS = $(filter-out $(B)/tests/test_prune,$(filter $(ALL_TESTS),$(DEEPER) $(call programs_of,$(DEEPER),$(B)/tests/) $(call programs_of,$(DEEPER),$(E)/)))
SLOW_TESTS = $(filter $(ALL_TESTS),$(SLOW_SOURCES) $(call programs_of,$(SLOW_SOURCES),$(B)/tests/) $(SLOW_SOURCES:tests/fuzz/fuzz_%.c=$(B)/tests/corpus_%) \
    $(call programs_of,$(call marked,slow-emulated) $(filter %/test_faults.c,$(SLOW_SOURCES)),$(E)/))
QUICK_TESTS = $(filter-out $(SLOW_TESTS),$(ALL_TESTS))
in_order = $(foreach test,$(LONG_TESTS),$(filter $(test),$(1))) $(filter-out $(LONG_TESTS),$(1))
RUN_TESTS = @B=$(B) PROGRAM=$(B)/tests/vlmprof-hooks RELEASE=$(PROGRAM) CC="$(CC)" TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) tests/run.sh
# The quick tests have one thread each, because they run in parallel; the slow ones have all of OpenMP's threads.
# Building continues after a test that does not compile: run.sh counts it as failed, so that the last line is always the count.
test: $(PROBED_EMULATOR)
	@$(MAKE) -k test-programs || true
	$(subst @,@TEST_TOTAL=$(B)/tests/total.txt OMP_NUM_THREADS=1 ,$(RUN_TESTS)) $(call in_order,$(QUICK_TESTS))
test-slow: $(PROBED_EMULATOR)
	@$(MAKE) -k test-slow-programs || true
	$(subst @,@VLMPROF_TEST_ALL=1 ,$(RUN_TESTS)) $(call in_order,$(sort $(SLOW_TESTS) $(DEEPER_TESTS)))
test-all: $(PROBED_EMULATOR)
	@tests/total.sh "$(MAKE) test" "$(MAKE) test-slow"
# PYTHON: one that has torch and transformers
.PHONY: test-torch
test-torch: $(PROGRAM)
	@tests/model/test_torch.sh
# the slowest to compile come first
TEST_TOOLS = $(E)/vlmprof_emulated.o $(E)/emulator $(PROGRAM) $(INJECTOR) $(E)/vlmprof $(B)/tests/vlmprof-hooks $(B)/tests/vlmprof-clock $(B)/tests/vlmprof-virtual $(E)/gpu_report $(E)/launches $(SAMPLE_PROGRAMS)
test-programs: $(TEST_TOOLS) $(filter-out %.sh,$(QUICK_TESTS))
test-slow-programs: $(TEST_TOOLS) $(E)/first_gpu $(filter-out %.sh,$(SLOW_TESTS) $(DEEPER_TESTS)) $(B)/tests/full_size

# The same tests with AddressSanitizer and UndefinedBehaviorSanitizer, in a separate build folder.
SANITIZERS := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer
test-sanitized:
	@$(MAKE) test-all B=build/sanitized-$(notdir $(CC)) PROGRAM=build/sanitized-$(notdir $(CC))/vlmprof CC="$(CC)" CFLAGS="-O1 -g" KERNEL_FLAGS=-O2 NVCC= TEST_TIMEOUT_S=2400 SANITIZE="$(SANITIZERS)"

# Threads that share what they may share, with ThreadSanitizer. libarcher, which comes with libomp, explains libomp's barriers to it.
test-threads:
	@tests/deps.sh clang
	@$(MAKE) B=build/threads CC=clang CFLAGS="-O1 -g" KERNEL_FLAGS=-O1 NVCC= SANITIZE=-fsanitize=thread build/threads/tests/test_threads
	@archer=$$(clang -print-resource-dir)/../../libarcher.so; if [ ! -e "$$archer" ]; then echo "test-threads: clang has no libarcher.so beside its libomp" >&2; exit 1; fi; \
	    OMP_TOOL_LIBRARIES=$$archer TSAN_OPTIONS=ignore_noninstrumented_modules=1 build/threads/tests/test_threads

# llama.cpp's server comes from PyPI into build/servers-venv
test-servers: $(PROGRAM)
	@PROGRAM=$(PROGRAM) tests/server/test_servers.sh | tee $(B)/test-servers.log; tail -n 1 $(B)/test-servers.log | grep -q ' 0 failed, 0 skipped$$'

check: export TINY_QUESTIONS := 100
check: export TEST_STRICT_SKIPS := 1
check: test-all
	@tests/deps.sh tools && python3 -m venv $(B)/tools && $(B)/tools/bin/pip install -q ruff mypy || echo "check: without some of the tools of check_tools.sh"
	@B=$(B) tests/check_tools.sh
	@tests/deps.sh clang
	@CC="$(CC)" tests/check_compile.sh
	@B=$(B) CXX="$(CXX)" tests/planted.sh
	@B=$(B) PROGRAM=$(PROGRAM) tests/check_page.sh
	@$(MAKE) test-threads
	@$(MAKE) test-sanitized CC=gcc
	@$(MAKE) test-sanitized CC=clang
	@if [ -n "$(NVCC)" ]; then $(MAKE) gpu-compile gpu-report; else echo "skipped: gpu-compile: nvcc not found"; fi
	@echo "check: all passed"

# random weights in the shape of the real model
full-size: $(B)/tests/full_size
	@awk '/^MemAvailable:/ && $$2 < 17e6 { print "full-size: needs 17 GB of free memory, " $$2 " kB are free"; exit 1 }' /proc/meminfo >&2
	@$<
