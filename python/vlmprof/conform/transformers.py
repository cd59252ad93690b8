"""Runs one request in transformers and writes the output of each stage as .npy files. Needs torch and transformers."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy

# by class: the module whose output the connector reads (the tower, after its final norm if it has one), and the
# connector; <: the module's input, -N: from the end, {}: may be missing
MODULES = {"LlavaForConditionalGeneration": ("vision_tower{.vision_model}.encoder.layers.-2", "multi_modal_projector"),
    "SmolVLMForConditionalGeneration": ("vision_model.post_layernorm", "connector"), "Idefics3ForConditionalGeneration": ("vision_model.post_layernorm", "connector"),
    "InternVLForConditionalGeneration": ("vision_tower.encoder.layer.-1", "multi_modal_projector"),
    "Gemma3ForConditionalGeneration": ("vision_tower{.vision_model}.post_layernorm", "multi_modal_projector"),
    "Qwen2_5_VLForConditionalGeneration": ("visual.blocks.-1", "visual"), "Qwen3VLForConditionalGeneration": ("visual.blocks.-1", "visual"),
    "Qwen3VLMoeForConditionalGeneration": ("visual.blocks.-1", "visual"), "Molmo2ForConditionalGeneration": ("<multi_modal_projector", "multi_modal_projector")}


def _watch(model: Any, seen: Dict[str, Any], windows: List[Any]) -> None:
    """Stores the values of tower and connector in `seen`, and the order of a tower that computes window by window."""
    from ..torch.families import find_module

    def keep(name: str, is_input: bool) -> Any:
        def hook(_module: Any, given: Any, named: Any, output: Any) -> None:
            output = getattr(output, "pooler_output", output)
            output = (given or tuple(named.values())) if is_input else getattr(output, "last_hidden_state", output)
            seen.setdefault(name, (output[0] if isinstance(output, tuple) else output).detach())
        return hook

    visual = find_module(model, "visual")
    if hasattr(visual, "permute_input_for_window_attn"):
        permute = visual.permute_input_for_window_attn

        def kept(values: Any, index: Any, **more: Any) -> Any:
            windows.append(index)
            return permute(values, index, **more)
        visual.permute_input_for_window_attn = kept
    for name, path in zip(("tower", "connector"), MODULES.get(type(model).__name__, (None, None))):
        ways = (path or "<").lstrip("<").replace("}", "{").split("{")
        module = find_module(model, "".join(ways)) or find_module(model, ways[0] + ways[-1] * (len(ways) > 1))
        if path and module is not None:
            module.register_forward_hook(keep(name, path.startswith("<")), with_kwargs=True)
        else:
            print(f"{type(model).__name__}: the module of the {name} is unknown, so its values cannot be captured", file=sys.stderr)


def dump(model: str, image: Optional[str], prompt: str, output: str, dtype: str = "float32", max_new_tokens: int = 8) -> None:
    """Writes the files of one request to the folder `output`."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ImportError(f"transformers:DIR needs torch and transformers: pip install torch transformers ({error})") from None
    is_blind = not hasattr(transformers.AutoConfig.from_pretrained(model), "vision_config")
    if is_blind and image:
        raise ValueError(f"{model} accepts only text: omit --image")
    loader = transformers.AutoModelForCausalLM if is_blind else transformers.AutoModelForImageTextToText
    processor = (transformers.AutoTokenizer if is_blind else transformers.AutoProcessor).from_pretrained(model)
    network = loader.from_pretrained(model, dtype=getattr(torch, dtype), attn_implementation="eager").eval()
    content: Any = [{"type": "image", "path": image}] if image else []
    content = prompt if is_blind else [*content, {"type": "text", "text": prompt}]
    inputs = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt")
    inputs = {key: value.to(network.dtype) if value.is_floating_point() else value for key, value in inputs.items()}
    seen: Dict[str, Any] = {}
    windows: List[Any] = []
    if image:
        _watch(network, seen, windows)
    with torch.no_grad():
        done = network.generate(**inputs, max_new_tokens=max_new_tokens, min_new_tokens=max_new_tokens, do_sample=False, output_logits=True, return_dict_in_generate=True)
    ids = inputs["input_ids"][0]
    values = {"prompt_ids": ids, "prefill": done.logits[0][0], "tokens": done.sequences[0, len(ids):]}
    if "pixel_values" in inputs:
        pixels = inputs["pixel_values"]
        values["pixels"] = pixels.reshape(-1, *pixels.shape[-3:]) if pixels.dim() > 3 else pixels
    if "tower" in seen:  # without the class token, so that the tower's rows are patches
        rows = seen["tower"]
        side = round((rows.shape[1] - 1) ** 0.5) if rows.dim() == 3 else 0
        if windows:
            rows = rows.reshape(len(windows[0]), -1, rows.shape[-1])[torch.argsort(windows[0])].reshape(rows.shape)
        values["tower"] = rows[:, 1:] if side and rows.shape[1] == side**2 + 1 else rows
    if "connector" in seen:
        values["connector"] = seen["connector"].reshape(-1, seen["connector"].shape[-1])
    Path(output).mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        value = value.float() if value.is_floating_point() else value
        numpy.save(Path(output) / f"{name}.npy", value.contiguous().cpu().numpy())
