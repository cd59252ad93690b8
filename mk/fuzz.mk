# Fuzzers: the seeds and old findings of each as a test, with any compiler; and libFuzzer.
.PHONY: fuzz fuzz-deps instrumented FORCE

$(B)/tests/corpus_%: tests/fuzz/fuzz_%.c tests/fuzz/run_files.c $(LIBRARIES) | $(PROBED)
	@echo "cc  $< (its corpus)"; mkdir -p $(@D); rm -f $@
	@$(CC) $(HEADER_FLAGS) -O0 -fopenmp $(DEPENDENCIES) $(filter %.c,$^) $(filter %.a,$^) $(LDFLAGS) -o $@ $(SYSTEM)

# ---- libFuzzer (clang), with an instrumented library; its findings are in build/fuzz
F := $(B)/fuzz
FUZZ_FLAGS := -O2 -fsanitize=address,undefined -fno-sanitize-recover=all
# the sanitizers' checks are also comparisons: tracing them would take more than half of the time and find nothing
COVERAGE := -fno-sanitize-coverage=trace-cmp
INSTRUMENTED := $(F)/instrumented/librooms.a $(F)/instrumented/libvlmprof.a
$(F)/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(INSTRUMENTED)
	@echo "fuzz $<"
	@clang $(STD) -g $(INCLUDES) -ffp-contract=off -fopenmp $(FUZZ_FLAGS) -fsanitize=fuzzer $(COVERAGE) $< $(INSTRUMENTED) -o $@ $(SYSTEM)
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
