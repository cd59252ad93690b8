"""Stage times of torch models (stages), sweeps over your own knobs (sweep), and A/B comparisons (ab), on any device that torch supports: vlmprof help torch.

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
