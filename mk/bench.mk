# Benchmarks, and the measured figures of README and guides.
.PHONY: bench bench-peers readme-count numbers
PYTHON3 ?= python3
bench: $(PROGRAM) $(BENCH_PROGRAMS)
	@if [ -z "$(BENCH_PROGRAMS)" ]; then echo "bench: no tests/bench/*.c" >&2; exit 1; fi
	@set -e; export OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000; for program in $(BENCH_PROGRAMS); do echo "== $$program"; $$program; done
	@echo "== tests/bench/torch_stages.py"; \
	    if $(PYTHON3) -c 'import torch, transformers' 2>/dev/null; then PYTHONPATH=python $(PYTHON3) tests/bench/torch_stages.py 2>/dev/null; \
	    else echo "skipped: PYTHON3 has no torch and transformers"; fi

# tests/bench/peers.py lists the variables that name the other programs
bench-peers: $(B)/bench/bench_peers
	@$(PYTHON3) tests/bench/peers.py

# writes the count of tests from the last make test into README
readme-count:
	@B=$(B) tests/readme_count.sh write

# measures the guide `numbers` here: takes about 6 minutes; includes the real model's shape if 16 GB of memory are free. make then builds the program with the new page.
numbers: $(PROGRAM) $(BENCH_PROGRAMS) $(B)/tests/test_report
	@PROGRAM=$(PROGRAM) $(PYTHON3) tests/bench/write_numbers.py
