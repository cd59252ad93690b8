# The demonstrations, which a new user runs first.
.PHONY: demo demo-pareto demo-policy demo-prune
# the small model, on drawings that it has never seen
SMALL_MODEL := --model samples/tiny/model --importance_scores_file samples/tiny/importance-scores.json --max_new_tokens 8
# Asks only for a word or a number, because reading needs resolution. One run per sample leaves time for more samples; P95 needs 60.
DEMO_SAMPLES ?= 60
# Stopped and run again it goes on; after a whole demo it starts again. Other files in the folder stay.
demo: $(PROGRAM)
	@if [ -e $(B)/demo/report/report.html ]; then rm -rf $(B)/demo/report $(B)/demo/journal*.jsonl $(B)/demo/*imgsize*.json; fi; mkdir -p $(B)/demo
	@echo "A small model answers $(DEMO_SAMPLES) questions about drawings in 12 configurations, then a report: about a minute"
	@grep -E '"kind": "(word|number|small print)"' samples/tiny/heldout.jsonl > $(B)/reading.jsonl
	@$(PROGRAM) sweep $(SMALL_MODEL) --data $(B)/reading.jsonl --image_dir samples/tiny --output_dir $(B)/demo --num_samples $(DEMO_SAMPLES) \
	    --num_runs_per_sample 1 --tier_list low medium high --top_k_list 1 2 --num_active_blocks_list 2 5
	@$(PROGRAM) report $(B)/demo --output_dir $(B)/demo/report
	@sed -n '/^Findings/,/^Measured/s/^  //p' $(B)/demo/report/report.txt | head -n 4
	@echo "The page: $(B)/demo/report/report.html. Which kinds of questions need resolution: $(PROGRAM) report $(B)/demo --by kind"
	@echo "The small model can only read drawings. For your own model: $(PROGRAM) help sweeps"
	@$(PROGRAM) report $(B)/demo --csv 2>/dev/null | awk -F, '\
	    NR == 1 { for (i = 1; i <= NF; i++) column[$$i] = i; next } \
	    $$column["front"] == 1 { print int($$column["T_total_p95"]) + 1 }' | sort -n | awk '\
	    { budget[NR] = $$1 } END { print "The most accurate configuration whose P95 is within " budget[int((NR + 1) / 2)] " ms (the report'"'"'s front is by P50): " \
	    "$(PROGRAM) best $(B)/demo --budget_ms " budget[int((NR + 1) / 2)] }'

# continues when stopped and run again; opens the page if there is a program for that
PARETO_SAMPLES ?= 200
PARETO = $(B)/demo-pareto-$(PARETO_SAMPLES)
OPEN ?= $(if $(DISPLAY)$(WAYLAND_DISPLAY),$(shell command -v xdg-open),$(if $(filter Darwin,$(shell uname)),open))
demo-pareto: $(PROGRAM)
	@$(PROGRAM) sweep $(SMALL_MODEL) --num_runs_per_sample 2 --data samples/tiny/heldout.jsonl --output_dir $(PARETO) \
	    --tier_list low medium high --top_k_list 1 4 --num_active_blocks_list 2 5 --weights_list bf16 int8 int4 --num_samples $(PARETO_SAMPLES)
	@$(PROGRAM) report $(PARETO) --output_dir $(PARETO)/report
	@echo "the front and the knobs' effects: $(abspath $(PARETO))/report/report.html"
	@$(if $(OPEN),$(OPEN) $(PARETO)/report/report.html,echo "open that page in a browser: no display here")

# what choosing a configuration for each question can gain; then the lookup is run
POLICY_SAMPLES ?= 500
POLICY = $(B)/demo-policy
POLICY_GRID = $(SMALL_MODEL) --data samples/tiny/heldout.jsonl --metric em --num_samples $(POLICY_SAMPLES) --num_runs_per_sample 1 \
    --tier_list low medium high --top_k_list 1 2 --num_active_blocks_list 3 5
POLICY_BUDGET ?= 14
demo-policy: $(PROGRAM)
	@$(PROGRAM) sweep $(POLICY_GRID) --output_dir $(POLICY)
	@$(PROGRAM) policy $(POLICY) --budget_ms $(POLICY_BUDGET) --by kind --output_dir $(POLICY)/lookup
	@$(PROGRAM) sweep $(POLICY_GRID) --choices $(POLICY)/lookup/choices.jsonl --output_dir $(POLICY)/measured

# prunes image tokens with each method at 75, 50, 25 and 10 %, compared with no pruning and random tokens
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
	@sed -n '/accuracy against kept image tokens/,/^E/p' $(PRUNE)/report/report.txt | sed '$$d'
	@echo "The small model only knows drawings, so the best method here says nothing about large models."
