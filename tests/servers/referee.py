"""Who is right where two stacks part: the greedy answer of transformers in float64.

    python3 referee.py FOLDER IMAGE PROMPT [--tokens 8] [--class_last]

PROMPT is the text itself, with the processor's placeholder where the image is. --class_last: a tower with a class token has it behind the
patches, with the positions in their order, and what is dropped in front of the connector is what stands where the class token was:
llama.cpp's LLaVA drops the first row, its InternVL the last. Needs torch and transformers."""
import argparse
import sys

import torch
import transformers
from PIL import Image


def behind(module, name, is_last_dropped):
    """gives the class token of a tower's embeddings the last place"""
    if name == "CLIPVisionEmbeddings":
        def forward(pixel_values, interpolate_pos_encoding=False):
            patches = module.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
            rows = torch.cat([patches, module.class_embedding.expand(len(patches), 1, -1)], dim=1)
            return rows + module.position_embedding(module.position_ids)
    else:
        def forward(pixel_values, bool_masked_pos=None):
            patches = module.patch_embeddings(pixel_values)
            patches = patches[0] if isinstance(patches, tuple) else patches
            rows = torch.cat([patches, module.cls_token.expand(len(patches), -1, -1)], dim=1) + module.position_embeddings
            return rows
    module.forward = forward
    return is_last_dropped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("image")
    parser.add_argument("prompt")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--class_last", action="store_true")
    a = parser.parse_args()
    processor = transformers.AutoProcessor.from_pretrained(a.folder)
    model = transformers.AutoModelForImageTextToText.from_pretrained(a.folder, dtype=torch.float64, attn_implementation="eager").eval()
    inputs = processor(text=[a.prompt], images=[Image.open(a.image).convert("RGB")], return_tensors="pt")
    inputs = {key: value.to(torch.float64) if value.is_floating_point() else value for key, value in inputs.items()}
    if a.class_last:
        found = [behind(m, type(m).__name__, type(m).__name__ != "CLIPVisionEmbeddings") for _, m in model.named_modules()
                 if type(m).__name__ in ("CLIPVisionEmbeddings", "InternVLVisionEmbeddings")]
        if not found:
            sys.exit("no tower of a known kind has a class token")
        if found[0]:  # the last row goes to the front, where transformers drops it
            tower = model.model.vision_tower
            plain = tower.forward

            def turned(*given, **more):
                out = plain(*given, **more)
                out.last_hidden_state = torch.cat([out.last_hidden_state[:, -1:], out.last_hidden_state[:, :-1]], dim=1)
                return out
            tower.forward = turned
    count = inputs["input_ids"].shape[1]
    with torch.no_grad():
        done = model.generate(**inputs, max_new_tokens=a.tokens, min_new_tokens=a.tokens, do_sample=False)
    print(" ".join(str(int(i)) for i in done[0, count:]))


if __name__ == "__main__":
    main()
