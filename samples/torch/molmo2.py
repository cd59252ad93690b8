"""Molmo2 by transformers: stage times of one request, then a sweep that `vlmprof report results-molmo2` reads.

    python3 samples/torch/molmo2.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name"""
from transformers import Molmo2ForConditionalGeneration

from measure import measure

measure(Molmo2ForConditionalGeneration, "allenai/Molmo2-4B", "results-molmo2",
        longest_edge=[378, 1512])
