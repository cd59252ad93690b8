"""InternVL3 by transformers: stage times of one request, then a sweep that `vlmprof report results-internvl` reads.

    python3 samples/torch/internvl.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name"""
from transformers import InternVLForConditionalGeneration

from measure import measure

measure(InternVLForConditionalGeneration, "OpenGVLab/InternVL3-1B-hf", "results-internvl",
        max_patches=[1, 12])
