"""SmolVLM by transformers: stage times of one request, then a sweep that `vlmprof report results-smolvlm` reads.

    python3 samples/torch/smolvlm.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name"""
from transformers import SmolVLMForConditionalGeneration

from measure import measure

measure(SmolVLMForConditionalGeneration, "HuggingFaceTB/SmolVLM2-500M-Video-Instruct", "results-smolvlm",
        longest_edge=[512, 1024])
