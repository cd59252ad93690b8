"""Stage times of torch models, sweeps over any knob of yours, and A/B comparisons, on any device that torch has (vlmprof help python).

    import vlmprof.torch
    with vlmprof.torch.stages(model) as stages:
        model.generate(**inputs, max_new_tokens=32)
    print(stages)
    vlmprof.torch.sweep(model, processor, "questions.jsonl", knobs={"attn": ["eager", "sdpa"], "longest_edge": [224, 336]}, output_dir="results")
    print(vlmprof.torch.ab(run_a, run_b))

Needs torch and transformers: pip install "vlmprof[torch]"."""
try:
    import torch as _torch
    import transformers as _transformers
except ImportError as error:
    raise ImportError(f"vlmprof.torch needs torch and transformers: pip install \"vlmprof[torch]\" ({error})") from None
from .ab import AB, ab
from .families import FAMILIES, Family, UnknownStructure
from .sweep import default_inputs, sweep
from .timing import NAMES, NeverBegan, Request, stages

del _torch, _transformers
__all__ = ["AB", "FAMILIES", "Family", "UnknownStructure", "NAMES", "NeverBegan", "Request", "ab", "default_inputs", "stages", "sweep"]
