"""LLaVA-1.5 by transformers: stage times of one request, then a sweep that `vlmprof report results-llava` reads.

    python3 samples/torch/llava.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name"""
from transformers import LlavaForConditionalGeneration

from measure import measure

measure(LlavaForConditionalGeneration, "llava-hf/llava-1.5-7b-hf", "results-llava",
        prune=["none", "stride:keep=0.5"])
