"""Gemma 3 by transformers: stage times of one request, then a sweep that `vlmprof report results-gemma3` reads.

    python3 samples/torch/gemma3.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name"""
from transformers import Gemma3ForConditionalGeneration

from measure import measure

measure(Gemma3ForConditionalGeneration, "google/gemma-3-4b-it", "results-gemma3",
        attn=["eager", "sdpa"])
