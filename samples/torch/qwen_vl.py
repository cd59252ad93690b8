"""Qwen2.5-VL by transformers: stage times of one request, then a sweep that `vlmprof report results-qwen_vl` reads.

    python3 samples/torch/qwen_vl.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name"""
from transformers import Qwen2_5_VLForConditionalGeneration

from measure import measure

measure(Qwen2_5_VLForConditionalGeneration, "Qwen/Qwen2.5-VL-3B-Instruct", "results-qwen_vl",
        max_pixels=[200704, 1003520])
