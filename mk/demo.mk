# The two demonstrations: what a new user runs first.
.PHONY: demo demo-pareto
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
