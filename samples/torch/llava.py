"""LLaVA-1.5 by transformers: stage times of one request, then a sweep that `vlmprof report results-llava` reads.

    python3 samples/torch/llava.py [CHECKPOINT [RESULTS]]    CHECKPOINT: a folder or a name (llava-hf/llava-1.5-7b-hf)"""
import sys

import torch
from PIL import Image
from transformers import AutoProcessor, LlavaForConditionalGeneration

import vlmprof.torch

checkpoint = sys.argv[1] if len(sys.argv) > 1 else "llava-hf/llava-1.5-7b-hf"
device = "cuda" if torch.cuda.is_available() else "cpu"
model = LlavaForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.bfloat16).to(device).eval()
processor = AutoProcessor.from_pretrained(checkpoint)

content = [{"type": "image"}, {"type": "text", "text": "What animal is this?"}]
text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
inputs = processor(images=[Image.open("samples/cat.jpg")], text=[text], return_tensors="pt").to(device, torch.bfloat16)
with vlmprof.torch.stages(model) as stages:
    for _ in range(4):
        model.generate(**inputs, max_new_tokens=16, do_sample=False)
print(stages)

vlmprof.torch.sweep(model, processor, "samples/questions.jsonl", output_dir=sys.argv[2] if len(sys.argv) > 2 else "results-llava",
                    tiers={"low": 336, "high": 1008}, prune=("none", "stride:keep=0.5",), max_new_tokens=8, num_samples=3)
