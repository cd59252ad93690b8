"""Molmo2 by transformers: stage times of one request, then a sweep that `vlmprof report results-molmo2` reads.

    python3 samples/torch/molmo2.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name (allenai/Molmo2-4B)"""
import sys

import torch
from PIL import Image
from transformers import AutoProcessor, Molmo2ForConditionalGeneration

import vlmprof.torch

checkpoint = sys.argv[1] if len(sys.argv) > 1 else "allenai/Molmo2-4B"
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Molmo2ForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.bfloat16).to(device).eval()
processor = AutoProcessor.from_pretrained(checkpoint)

content = [{"type": "image"}, {"type": "text", "text": "What animal is this?"}]
text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
inputs = processor(images=[Image.open("samples/cat.jpg")], text=[text], return_tensors="pt").to(device, torch.bfloat16)
with vlmprof.torch.stages(model) as stages:
    for _ in range(4):
        model.generate(**inputs, max_new_tokens=16, do_sample=False)
print(stages)

vlmprof.torch.sweep(model, processor, "samples/questions.jsonl", output_dir=sys.argv[2] if len(sys.argv) > 2 else "results-molmo2",
                    tiers={"low": 378, "high": 1512}, prune=("none",), max_new_tokens=8, num_samples=3)
