"""vlmprof: a profiler of vision-language models.

    import vlmprof
    vlmprof.run(["run", "cat.jpg", "-p", "What?", "--synthetic", "tiny"])["T_total"]   # any command, as a dict
    configurations, samples = vlmprof.load("results")        # result files as pandas DataFrames
    vlmprof.count_tokens("qwen3-vl", 1920, 1080)             # image tokens by a family's rule

Modules (vlmprof help python): data reads other tools' data sets, scores lets other tools score answers, conform compares
two stacks stage by stage, results and plots show result files, torch times your own model. The package has no required
dependencies: a module that needs pandas, pyarrow, numpy, matplotlib or torch imports it."""
from typing import Any

from .commands import CommandError, compare, program, run, sweep, version
from .counts import count_tokens, families, tokens_of


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version()
    if name in ("front", "load", "load_trace"):
        from . import results  # it needs pandas only when it is used
        return getattr(results, name)
    raise AttributeError(f"module 'vlmprof' has no attribute {name!r}")


__all__ = ["CommandError", "compare", "count_tokens", "families", "front", "load", "load_trace", "program", "run", "sweep", "tokens_of", "version"]
