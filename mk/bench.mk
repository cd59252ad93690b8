# Benchmarks, and the measured figures of README and guides.
.PHONY: bench bench-peers readme-figures numbers
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

# writes the figures of README: of the last make test, of make demo and make demo-policy, which it runs, and of README's Python program. Takes 6 minutes.
readme-figures: $(PROGRAM)
	@mkdir -p $(B)/readme
	@grep ' 0 failed' $(B)/tests/total.txt
	@$(MAKE) demo >$(B)/readme/demo
	@sed -n '/^```python$$/,/^```$$/p' README.md | grep -v '^```' | PYTHONPATH=python $(PYTHON3) - >$(B)/readme/torch
	@$(MAKE) demo-policy >$(B)/readme/policy
	@tests/readme_figures.sh $(B)/tests/total.txt $(addprefix $(B)/readme/,demo torch policy) >$(B)/readme/README.md && cp $(B)/readme/README.md .

# measures the guide `numbers` here: takes about 6 minutes; includes the real model's shape if 16 GB of memory are free. make then builds the program with the new page.
numbers: $(PROGRAM) $(BENCH_PROGRAMS) $(B)/tests/test_report
	@PROGRAM=$(PROGRAM) $(PYTHON3) tests/bench/write_numbers.py
