"""Stage times of any transformers vision-language model, on any device that torch has.

    import vlmprof.torch
    with vlmprof.torch.stages(model) as stages:
        model.generate(**inputs, max_new_tokens=32)
    print(stages)
    vlmprof.torch.sweep(model, processor, "questions.jsonl", output_dir="results", tiers={"low": 336, "high": 1008})

Needs torch and transformers: pip install "vlmprof[torch]"."""
try:
    import torch as _torch
    import transformers as _transformers
except ImportError as error:
    raise ImportError(f"vlmprof.torch needs torch and transformers: pip install \"vlmprof[torch]\" ({error})") from None
from .families import FAMILIES, Family, UnknownStructure
from .sweep import sweep
from .timing import NAMES, Request, stages

del _torch, _transformers
__all__ = ["FAMILIES", "Family", "UnknownStructure", "NAMES", "Request", "stages", "sweep"]
