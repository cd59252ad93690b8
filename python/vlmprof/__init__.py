"""vlmprof: a profiler of vision-language models.

    import vlmprof
    vlmprof.count_tokens("qwen3-vl", 1920, 1080)                      # image tokens by a family's rule
    configurations, samples = vlmprof.load("results")                  # pandas DataFrames of result files or load trials
    vlmprof.run(["run", "cat.jpg", "-p", "What?", "--synthetic", "tiny"])["T_total"]   # any command, as a dict

vlmprof.torch times the stages of transformers models. No dependency; load needs pandas, vlmprof.torch needs torch and transformers."""
from .commands import CommandError, audit, compare, program, run, sweep
from .counts import Count, PlatformError, count, count_tokens, families, tokens_of, version
from .results import front, load, load_results, load_trace, load_trials


def __getattr__(name: str) -> str:
    if name == "__version__":
        return version()  # of the library, which is opened when it is first needed
    raise AttributeError(f"module 'vlmprof' has no attribute {name!r}")


__all__ = ["CommandError", "Count", "PlatformError", "audit", "compare", "count", "count_tokens", "families", "front", "load", "load_results",
           "load_trace", "load_trials", "program", "run", "sweep", "tokens_of", "version"]
