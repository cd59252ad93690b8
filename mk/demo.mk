# The demonstrations, which a new user runs first.
.PHONY: demo demo-pareto demo-policy demo-prune
# the small model, on drawings that it has never seen
SMALL_MODEL := --model samples/tiny/model --importance_scores_file samples/tiny/importance-scores.json --max_new_tokens 8
# One request, then a sweep whose questions ask only for a word or a number, because reading needs resolution. One run per sample leaves time for more
# samples; P95 needs 60. The budget is the P95 in the middle of the front.
DEMO_SAMPLES ?= 60
# Stopped and run again it goes on; after a whole demo it starts again. Other files in the folder stay.
demo: $(PROGRAM)
	@if [ -e $(B)/demo/report/report.html ]; then rm -rf $(B)/demo/report $(B)/demo/journal*.jsonl $(B)/demo/*imgsize*.json; fi; mkdir -p $(B)/demo
	@echo "1. One request: a small trained model reads the word in samples/tiny/pictures/000.png"
	@$(PROGRAM) run samples/tiny/pictures/000.png -p "Which word do you see?" $(SMALL_MODEL) --tier high | sed -n '/^answer/p; /^stage /,/^total/p'
	@echo; echo "2. A sweep: $(DEMO_SAMPLES) questions in 12 configurations, 3 image tiers x 2 values of top_k x 2 depths; under a minute"
	@grep -E '"kind": "(word|number|small print)"' samples/tiny/heldout.jsonl > $(B)/reading.jsonl
	@$(PROGRAM) sweep $(SMALL_MODEL) --data $(B)/reading.jsonl --image_dir samples/tiny --output_dir $(B)/demo --num_samples $(DEMO_SAMPLES) \
	    --num_runs_per_sample 1 --tier_list low medium high --top_k_list 1 2 --num_active_blocks_list 2 5
	@echo; echo "3. The report: $(B)/demo/report/report.html"
	@$(PROGRAM) report $(B)/demo --output_dir $(B)/demo/report --quiet
	@sed -n '/^Findings/,/^Measured/s/^  //p' $(B)/demo/report/report.txt | head -n 4
	@echo; echo "4. Can choosing a configuration for each question gain anything?"
	@budget=$$($(PROGRAM) report $(B)/demo --csv --quiet | awk -F, '\
	    NR == 1 { for (i = 1; i <= NF; i++) column[$$i] = i; next } \
	    $$column["front"] == 1 { print int($$column["T_total_p95"]) + 1 }' | sort -n | awk '{ at[NR] = $$1 } END { print at[int((NR + 1) / 2)] }'); \
	$(PROGRAM) policy $(B)/demo --budget_ms $$budget --by kind --quiet | sed -n '1s/^  //p'; \
	printf '%s\n' "" "More from these results:" "  $(PROGRAM) best $(B)/demo --budget_ms $$budget" "  $(PROGRAM) report $(B)/demo --by kind" \
	    "" "Next, your own model:" \
	    "  a checkpoint        $(PROGRAM) run PICTURE -p QUESTION --model FOLDER; then sweep, as above" \
	    "  in transformers     pip install \"./python[torch]\"; $(PROGRAM) help torch" \
	    "  on a server         $(PROGRAM) ask PICTURE -p QUESTION --endpoint URL" \
	    "  in your own engine  $(PROGRAM) help library"

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

# What choosing a configuration for each question can gain; then the lookup is run, and --check says if the promise is kept. The budget is 1.5 times the fastest configuration's mean, or POLICY_BUDGET.
POLICY_SAMPLES ?= 500
POLICY = $(B)/demo-policy
POLICY_GRID = $(SMALL_MODEL) --data samples/tiny/heldout.jsonl --metric em --num_samples $(POLICY_SAMPLES) --num_runs_per_sample 1 \
    --tier_list low medium high --top_k_list 1 2 --num_active_blocks_list 3 5
demo-policy: $(PROGRAM)
	@$(PROGRAM) sweep $(POLICY_GRID) --output_dir $(POLICY)
	@budget=$${POLICY_BUDGET:-$$($(PROGRAM) report $(POLICY) --csv --quiet | awk -F, '\
	    NR == 1 { for (i = 1; i <= NF; i++) if ($$i == "T_total_mean") mean = i; next } \
	    NR == 2 || $$mean < least { least = $$mean } END { printf "%.0f", 1.5 * least }')}; \
	$(PROGRAM) policy $(POLICY) --budget_ms $$budget --by kind --output_dir $(POLICY)/lookup && \
	$(PROGRAM) sweep $(POLICY_GRID) --choices $(POLICY)/lookup/choices.jsonl --output_dir $(POLICY)/measured && \
	$(PROGRAM) policy $(POLICY) --budget_ms $$budget --by kind --check $(POLICY)/measured --quiet | sed -n '1s/^  //p'

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
