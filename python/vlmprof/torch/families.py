"""The modules of each transformers family's stages: one row per class. A path starts at the model, or at its member `model`.
"A..B" means modules that run one after the other, from the start of A to the end of B. An inner module's time counts only for
itself: Qwen's merger runs inside `visual`, and is not part of the tower's time."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple


class Family(NamedTuple):
    name: str
    vit: str  # the vision tower
    connector: str
    language: str  # the decoder's blocks
    views: bool = False  # the connector's output is [views, tokens, width]: tokens can be pruned there


_LLAVA = ("vision_tower", "multi_modal_projector", "language_model")
_QWEN = ("visual", "visual.merger", "language_model")
_IDEFICS = ("vision_model", "connector", "text_model")
_MOLMO = ("vision_backbone.image_vit", "vision_backbone", "transformer.blocks.0..transformer.ln_f")
FAMILIES: Dict[str, Family] = {"LlavaForConditionalGeneration": Family("LLaVA", *_LLAVA, views=True), "LlavaNextForConditionalGeneration": Family("LLaVA-NeXT", *_LLAVA),
    "LlavaOnevisionForConditionalGeneration": Family("LLaVA-OneVision", *_LLAVA), "InternVLForConditionalGeneration": Family("InternVL", *_LLAVA, views=True),
    "Gemma3ForConditionalGeneration": Family("Gemma3", *_LLAVA, views=True), "PaliGemmaForConditionalGeneration": Family("PaliGemma", *_LLAVA),
    "Mistral3ForConditionalGeneration": Family("Mistral3", *_LLAVA), "Molmo2ForConditionalGeneration": Family("Molmo2", *_LLAVA),
    "MolmoForCausalLM": Family("Molmo", *_MOLMO), "SmolVLMForConditionalGeneration": Family("SmolVLM", *_IDEFICS, views=True),
    "Idefics3ForConditionalGeneration": Family("Idefics3", *_IDEFICS, views=True), "Qwen2VLForConditionalGeneration": Family("Qwen2-VL", *_QWEN),
    "Qwen2_5_VLForConditionalGeneration": Family("Qwen2.5-VL", *_QWEN), "Qwen3VLForConditionalGeneration": Family("Qwen3-VL", *_QWEN),
    "Qwen3VLMoeForConditionalGeneration": Family("Qwen3-VL-MoE", *_QWEN)}
STAGES = ("vit", "connector", "language")


class UnknownStructure(ValueError):
    """A stage's module was not found; the text lists the paths that were tried, and explains how to name it."""


def find_module(model: Any, path: str) -> Any:
    """The module at a path (-1: the last of a list), or None if it does not exist."""
    module: Any
    for module in (getattr(model, "model", None), model):
        for step in path.split("."):
            if step.lstrip("-").isdigit():
                module = module[int(step)] if -len(module) <= int(step) < len(module) else None
            else:
                module = getattr(module, step, None)
            if module is None:
                break
        if module is not None:
            return module
    return None


def find_modules(model: Any, named: Optional[Dict[str, Optional[str]]] = None) -> Tuple[str, bool, Dict[str, Tuple[Any, Any]]]:
    """(family's name, whether its connector's output has views, {stage: (first module, last module)}) of a model.

    named: paths of stages that are missing or different in the table: {"vit": "encoder.vision", "connector": None}; None: the model has no such stage."""
    named = dict(named or {})
    unknown = sorted(set(named) - set(STAGES))
    if unknown:
        raise ValueError(f"modules: {unknown[0]!r} is not a stage; the stages are {', '.join(STAGES)}")
    if not hasattr(model, "named_modules"):
        raise TypeError(f"expected a torch.nn.Module, such as AutoModelForImageTextToText.from_pretrained gives; got {type(model).__name__}")
    row = FAMILIES.get(type(model).__name__)
    candidates = [row] if row else list(FAMILIES.values())
    found: Dict[str, Tuple[Any, Any]] = {}
    for stage in STAGES:
        path = named.get(stage)
        if stage in named and path is None:
            continue
        paths = [path] if path is not None else list(dict.fromkeys(getattr(one, stage) for one in candidates))
        for path in paths:
            ends = [find_module(model, end) for end in (path.split("..") if ".." in path else (path, path))]
            if all(end is not None for end in ends):
                found[stage] = (ends[0], ends[1])
                break
        else:
            children = ", ".join(name for name, _ in model.named_modules() if name and name.count(".") <= 1) or "none, this model has no modules"
            raise UnknownStructure(
                f"{type(model).__name__}: no module of the stage {stage!r}; looked for {', '.join(paths)} in the model and its member model. "
                f"{'Name another' if stage in named else 'Name it'}: stages(model, modules={{{stage!r}: \"PATH\"}}), where PATH is one of: {children}; or None if the model has none")
    is_pixtral = getattr(getattr(getattr(model, "config", None), "vision_config", None), "model_type", "") == "pixtral"  # pictures of any size in one row
    return row.name if row else type(model).__name__, bool(row and row.views and not is_pixtral), found
