# The two demonstrations: what a new user runs first.
.PHONY: demo demo-pareto demo-prune
# the small model and its knobs, on drawings that it never saw
SMALL_MODEL := --model samples/tiny/model --importance_scores_file samples/tiny/importance-scores.json --max_new_tokens 8 --num_runs_per_sample 2
DEMO_SAMPLES ?= 26
demo: $(PROGRAM)
	@rm -rf $(B)/demo && mkdir -p $(B)/demo
	@$(PROGRAM) sweep $(SMALL_MODEL) --data samples/tiny/heldout.jsonl --output_dir $(B)/demo --tier_list low medium high \
	    --top_k_list 1 2 --num_active_blocks_list 3 5 --num_samples $(DEMO_SAMPLES)
	@$(PROGRAM) report $(B)/demo --output_dir $(B)/demo/report
	@$(if $(NO_GPU_CODE),echo "No GPU driver here: $(PROGRAM) may lack the GPU code. make builds it with $(NVCC).")
	@echo "The small model answers questions about drawings, which these are. On your own checkpoint: $(PROGRAM) help sweeps"
	@awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($$i == "T_total_p50") column = i; next } { print $$column }' $(B)/demo/report/report.csv | sort -n | \
	    awk '{ total[NR] = $$1 } END { print "The best configuration within " int(total[int((NR + 1) / 2)]) + 1 " ms, the median of these: " \
	    "$(PROGRAM) best $(B)/demo --budget_ms " int(total[int((NR + 1) / 2)]) + 1 }'

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

# image tokens left out: each method at 75, 50, 25 and 10 %, beside none and random tokens
PRUNE_SAMPLES ?= 100
PRUNE = $(B)/demo-prune-$(PRUNE_SAMPLES)
PRUNE_SHARES := 0.75 0.5 0.25 0.1
PRUNE_PYRAMIDS := 0.909/0.825/0.75 0.794/0.63/0.5 0.63/0.397/0.25 0.464/0.215/0.1
comma := ,
demo-prune: $(PROGRAM)
	@$(PROGRAM) sweep --model samples/tiny/model --data samples/tiny/heldout.jsonl --metric em --output_dir $(PRUNE) --tier_list low \
	    --max_new_tokens 8 --num_samples $(PRUNE_SAMPLES) --num_runs_per_sample 1 --prune_list none \
	    $(foreach method,random stride divprune visionzip fastv dart,$(PRUNE_SHARES:%=$(method):keep=%)) \
	    $(PRUNE_SHARES:%=random:keep=%$(comma)layer=2) $(PRUNE_PYRAMIDS:%=pdrop:layers=1/2/3,ratios=%)
	@$(PROGRAM) report $(PRUNE) --output_dir $(PRUNE)/report
	@sed -n '/accuracy against kept image tokens/,/^## E/p' $(PRUNE)/report/report.md | sed '$$d'
	@echo "The small model knows drawings only: which method is best here says nothing about large models."
