"""What the scripts next to this one do with a model: stage times of one request, an A/B comparison, then a sweep of result files."""
import sys

import torch
from PIL import Image
from transformers import AutoProcessor

import vlmprof.torch


def measure(model_class, checkpoint, results, pairs=12, **knobs):
    """model_class: transformers' class; checkpoint and results: a folder or a name, and the folder of the result files, unless the
    command line gives them; knobs: as vlmprof.torch.sweep takes them, next to the number of decoder blocks, a knob of our own."""
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

    def answer(tokens):
        model.generate(**inputs, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
    print(vlmprof.torch.ab(lambda: answer(8), lambda: answer(4), pairs=pairs))

    decoder = model.model.language_model if hasattr(model.model, "language_model") else getattr(model.model, "text_model", None)

    def leave_out_blocks(_model, knobs):
        """The first `blocks` of the decoder run; what is returned puts the others back."""
        whole, count = decoder.layers, decoder.config.num_hidden_layers
        decoder.layers, decoder.config.num_hidden_layers = whole[:knobs["blocks"]], knobs["blocks"]

        class Back:
            def close(self):
                decoder.layers, decoder.config.num_hidden_layers = whole, count
        return Back()
    if decoder is not None and hasattr(decoder, "layers"):
        knobs["blocks"] = [len(decoder.layers), len(decoder.layers) - 1]
    vlmprof.torch.sweep(model, processor, "samples/questions.jsonl", output_dir=results, knobs=knobs, num_samples=3, max_new_tokens=8,
                        apply=leave_out_blocks if "blocks" in knobs else None)
