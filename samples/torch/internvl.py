"""InternVL3 by transformers: stage times of one request, then a sweep that `vlmprof report results-internvl` reads.

    python3 samples/torch/internvl.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name (OpenGVLab/InternVL3-1B-hf)"""
import sys

import torch
from PIL import Image
from transformers import AutoProcessor, InternVLForConditionalGeneration

import vlmprof.torch

checkpoint = sys.argv[1] if len(sys.argv) > 1 else "OpenGVLab/InternVL3-1B-hf"
device = "cuda" if torch.cuda.is_available() else "cpu"
model = InternVLForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.bfloat16).to(device).eval()
processor = AutoProcessor.from_pretrained(checkpoint)

content = [{"type": "image"}, {"type": "text", "text": "What animal is this?"}]
text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
inputs = processor(images=[Image.open("samples/cat.jpg")], text=[text], return_tensors="pt").to(device, torch.bfloat16)
with vlmprof.torch.stages(model) as stages:
    for _ in range(4):
        model.generate(**inputs, max_new_tokens=16, do_sample=False)
print(stages)

vlmprof.torch.sweep(model, processor, "samples/questions.jsonl", output_dir=sys.argv[2] if len(sys.argv) > 2 else "results-internvl",
                    tiers={"low": {"max_patches": 1}, "medium": {"max_patches": 6}, "high": {"max_patches": 12}}, prune=("none", "stride:keep=0.5",), max_new_tokens=8, num_samples=3)
