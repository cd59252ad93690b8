"""Qwen2.5-VL by transformers: stage times of one request, then a sweep that `vlmprof report results-qwen_vl` reads.

    python3 samples/torch/qwen_vl.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name (Qwen/Qwen2.5-VL-3B-Instruct)"""
import sys

import torch
from PIL import Image
from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration

import vlmprof.torch

checkpoint = sys.argv[1] if len(sys.argv) > 1 else "Qwen/Qwen2.5-VL-3B-Instruct"
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Qwen2_5_VLForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.bfloat16).to(device).eval()
processor = AutoProcessor.from_pretrained(checkpoint)

content = [{"type": "image"}, {"type": "text", "text": "What animal is this?"}]
text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
inputs = processor(images=[Image.open("samples/cat.jpg")], text=[text], return_tensors="pt").to(device, torch.bfloat16)
with vlmprof.torch.stages(model) as stages:
    for _ in range(4):
        model.generate(**inputs, max_new_tokens=16, do_sample=False)
print(stages)

vlmprof.torch.sweep(model, processor, "samples/questions.jsonl", output_dir=sys.argv[2] if len(sys.argv) > 2 else "results-qwen_vl",
                    tiers={"low": {"max_pixels": 200704}, "medium": {"max_pixels": 501760}, "high": {"max_pixels": 1003520}}, prune=("none",), max_new_tokens=8, num_samples=3)
