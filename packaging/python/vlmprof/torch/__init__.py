"""Stage times of any transformers vision-language model, on any device that torch has.

    import vlmprof.torch
    with vlmprof.torch.stages(model) as stages:
        model.generate(**inputs, max_new_tokens=32)
    print(stages)
    vlmprof.torch.sweep(model, processor, "questions.jsonl", output_dir="results", tiers={"low": 336, "high": 1008})

Needs torch and transformers: pip install "vlmprof[torch]"."""
from .families import FAMILIES, Family, UnknownStructure
from .sweep import sweep
from .timing import NAMES, Request, stages

__all__ = ["FAMILIES", "Family", "UnknownStructure", "NAMES", "Request", "stages", "sweep"]
