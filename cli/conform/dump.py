"""Runs one request in transformers and writes what each stage computes, for `vlmprof conform --against dump:DIR`.

    python3 dump.py --model DIR --image cat.jpg -p "What is this?" --output DIR [--dtype float32] [--max_new_tokens 8]

Needs torch and transformers. A stage whose module is unknown is left out, with a message; --tower and --connector name
the modules (--modules lists the names)."""
import argparse
import os
import sys

import numpy
import torch
import transformers

# by class: the module whose output the connector reads (the tower, after its final norm if it has one), and the connector; <: the module's input
MODULES = {
    "LlavaForConditionalGeneration": ("vision_tower{.vision_model}.encoder.layers.-2", "multi_modal_projector"),
    "SmolVLMForConditionalGeneration": ("vision_model.post_layernorm", "connector"),
    "Idefics3ForConditionalGeneration": ("vision_model.post_layernorm", "connector"),
    "InternVLForConditionalGeneration": ("vision_tower.encoder.layer.-1", "multi_modal_projector"),
    "Gemma3ForConditionalGeneration": ("vision_tower{.vision_model}.post_layernorm", "multi_modal_projector"),
    "Qwen2_5_VLForConditionalGeneration": ("visual.blocks.-1", "visual"),
    "Qwen3VLForConditionalGeneration": ("visual.blocks.-1", "visual"),
    "Qwen3VLMoeForConditionalGeneration": ("visual.blocks.-1", "visual"),
    "Molmo2ForConditionalGeneration": ("<multi_modal_projector", "multi_modal_projector"),
}


def find(model, path):
    """the module of a path; None: there is none. A step -N counts from the end, a part in {} may be missing"""
    for start in (getattr(model, "model", model), model):
        for way in (path.replace("{", "").replace("}", ""), path.split("{")[0] + path.split("}")[-1] if "{" in path else path):
            module = start
            for step in way.split("."):
                if step.lstrip("-").isdigit():
                    module = module[int(step)] if module is not None and len(module) >= abs(int(step)) else None
                else:
                    module = getattr(module, step, None)
            if module is not None:
                return module
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--image")
    parser.add_argument("-p", "--prompt", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--max_new_tokens", type=int, default=8)
    parser.add_argument("--tower")
    parser.add_argument("--connector")
    parser.add_argument("--modules", action="store_true", help="print the model's modules and end")
    a = parser.parse_args()
    is_blind = not hasattr(transformers.AutoConfig.from_pretrained(a.model), "vision_config")
    if is_blind and a.image:
        sys.exit(f"{a.model} reads text only: leave --image out")
    loader = transformers.AutoModelForCausalLM if is_blind else transformers.AutoModelForImageTextToText
    processor = (transformers.AutoTokenizer if is_blind else transformers.AutoProcessor).from_pretrained(a.model)
    model = loader.from_pretrained(a.model, dtype=getattr(torch, a.dtype), attn_implementation="eager").eval()
    if a.modules:
        print("\n".join(name for name, _ in model.named_modules()))
        return
    os.makedirs(a.output, exist_ok=True)
    content = [{"type": "image", "path": a.image}] if a.image else []
    content = a.prompt if is_blind else content + [{"type": "text", "text": a.prompt}]
    inputs = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=True, return_dict=True,
                                           return_tensors="pt")
    inputs = {key: value.to(model.dtype) if value.is_floating_point() else value for key, value in inputs.items()}
    seen = {}

    def keep(name):
        def hook(_module, _inputs, output):
            output = getattr(output, "pooler_output", output)
            output = getattr(output, "last_hidden_state", output)
            seen.setdefault(name, (output[0] if isinstance(output, tuple) else output).detach())
        return hook

    def keep_given(name):
        def hook(_module, given, named):
            seen.setdefault(name, (given or tuple(named.values()))[0].detach())
        return hook

    visual, windows = find(model, "visual"), []
    if hasattr(visual, "permute_input_for_window_attn"):  # the tower computes window by window, not in the order of the picture
        permute = visual.permute_input_for_window_attn
        visual.permute_input_for_window_attn = lambda values, index, **more: (windows.append(index), permute(values, index, **more))[1]
    tower, connector = MODULES.get(type(model).__name__, (None, None))
    for name, path in (("tower", a.tower or tower), ("connector", a.connector or connector)):
        module = path and find(model, path.lstrip("<"))
        if a.image and module is not None and path.startswith("<"):
            module.register_forward_pre_hook(keep_given(name), with_kwargs=True)
        elif a.image and module is not None:
            module.register_forward_hook(keep(name))
        elif a.image:
            print(f"{type(model).__name__}: the module of the {name} is unknown; give it with --{name} PATH", file=sys.stderr)
    with torch.no_grad():
        done = model.generate(**inputs, max_new_tokens=a.max_new_tokens, min_new_tokens=a.max_new_tokens, do_sample=False,
                              output_logits=True, return_dict_in_generate=True)
    ids = inputs["input_ids"][0]
    values = {"prompt_ids": ids, "prefill": done.logits[0][0], "tokens": done.sequences[0, len(ids):]}
    if "pixel_values" in inputs:
        pixels = inputs["pixel_values"]
        values["pixels"] = pixels.reshape(-1, *pixels.shape[-3:]) if pixels.dim() > 3 else pixels
    if "tower" in seen:  # removes the class token, so that the tower's rows are patches
        rows = seen["tower"]
        side = round((rows.shape[1] - 1) ** 0.5) if rows.dim() == 3 else 0
        if windows:
            rows = rows.reshape(len(windows[0]), -1, rows.shape[-1])[torch.argsort(windows[0])].reshape(rows.shape)
        values["tower"] = rows[:, 1:] if side and rows.shape[1] == side**2 + 1 else rows
    if "connector" in seen:
        values["connector"] = seen["connector"].reshape(-1, seen["connector"].shape[-1])
    for name, value in values.items():
        value = value.float() if value.is_floating_point() else value
        numpy.save(os.path.join(a.output, f"{name}.npy"), value.contiguous().cpu().numpy())
        print(f"{name}: {tuple(value.shape)}", file=sys.stderr)


if __name__ == "__main__":
    main()
