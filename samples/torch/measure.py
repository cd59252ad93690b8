"""What the scripts next to this one do with a model: stage times of one request, then a sweep of result files."""
import sys

import torch
from PIL import Image
from transformers import AutoProcessor

import vlmprof.torch


def measure(model_class, checkpoint, results, tiers, prune=("none", "stride:keep=0.5")):
    """model_class: transformers' class; checkpoint and results: a folder or a name, and the folder of the result files, unless the
    command line gives them; tiers and prune: as vlmprof.torch.sweep takes them."""
    checkpoint, results = (sys.argv[1:] + [checkpoint, results][len(sys.argv) - 1:])[:2]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model_class.from_pretrained(checkpoint, dtype=torch.bfloat16).to(device).eval()
    processor = AutoProcessor.from_pretrained(checkpoint)

    content = [{"type": "image"}, {"type": "text", "text": "What animal is this?"}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
    inputs = processor(images=[Image.open("samples/cat.jpg")], text=[text], return_tensors="pt").to(device, torch.bfloat16)
    with vlmprof.torch.stages(model) as stages:
        for _ in range(4):
            model.generate(**inputs, max_new_tokens=16, do_sample=False)
    print(stages)

    vlmprof.torch.sweep(model, processor, "samples/questions.jsonl", output_dir=results, tiers=tiers, prune=prune, max_new_tokens=8,
                        num_samples=3)
