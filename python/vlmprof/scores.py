"""Scores the answers of a sweep with lmms-eval, for `vlmprof score RESULTS --scores FILE`.

    python -m vlmprof.scores results --lmms mmmu_val -o scores.jsonl
    vlmprof score results --scores scores.jsonl -o scored

A line of the output is {"id", "config", "score"}, with a score from 0 to 1. Any other scorer reads the lines of
`vlmprof score --predictions results` and writes such lines (vlmprof help scores)."""
from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from . import commands


class ScoreError(ValueError):
    """Predictions that a tool cannot score, with the reason."""


def _number_in(value: Any, name: str) -> Optional[float]:
    """The score in a value of process_results: a number, or an object's number under one of the usual names."""
    if isinstance(value, dict):
        known = [value[key] for key in (name, "score", "acc", "accuracy", "correct") if key in value]
        value = known[0] if known else None
    return float(value) if isinstance(value, (int, float)) else None


def score_of(results: Dict[str, Any], metric: Optional[str] = None) -> float:
    """The one score of lmms-eval's process_results; with several, `metric` names it.

    >>> score_of({"exact_match": True}), score_of({"mme_cognition_score": {"score": 0.0}, "submission": {"id": 1}})
    (1.0, 0.0)
    >>> score_of({"bleu": 0.1, "rouge": 0.2})
    Traceback (most recent call last):
    vlmprof.scores.ScoreError: this task has several scores: choose one with --metric: bleu, rouge
    """
    known = {key: number for key, value in results.items() if (number := _number_in(value, key)) is not None}
    if metric is not None and metric in known:
        return known[metric]
    if metric is not None or not known:
        raise ScoreError(f"this task has no score {metric or 'per sample'}; it has {', '.join(known or results)}")
    if len(set(known.values())) > 1:
        raise ScoreError(f"this task has several scores: choose one with --metric: {', '.join(known)}")
    return next(iter(known.values()))


def by_lmms(folder: Union[str, os.PathLike[str]], name: str, metric: Optional[str] = None, scale: float = 1) -> List[Dict[str, Any]]:
    """Scores from a task of lmms-eval. The id of an answer is the index of its document, as vlmprof.data numbers them."""
    from .data import lmms
    task = lmms.load_task(name)
    docs = lmms.docs_of(task)
    scores = []
    for one in commands.run(["score", "--predictions", folder], lines=True):
        place = one["id"] if isinstance(one["id"], int) else one["sample_id"]
        if not isinstance(place, int) or place >= len(docs):
            raise ScoreError(f"sample {one['id']}: lmms:{name} has only {len(docs)} documents; were the data made by python -m vlmprof.data lmms:{name}?")
        value = score_of(task.process_results(docs[place], [one["prediction"]]), metric) / scale
        if not 0 <= value <= 1:  # NaN too
            raise ScoreError(f"sample {one['id']} of {one['config']}: the score is {value:g}; expected 0 to 1 (--scale divides it)")
        scores.append({"id": one["id"], "config": one["config"], "score": value})
    return scores


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vlmprof.scores", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="a folder of result files, or one of them")
    parser.add_argument("--lmms", metavar="TASK", required=True, help="the task of lmms-eval that scores")
    parser.add_argument("--metric", help="which of the task's scores")
    parser.add_argument("--scale", type=float, default=1, help="largest score, by which scores are divided (default 1)")
    parser.add_argument("-o", "--output", required=True, help="JSONL file to write")
    given = parser.parse_args(arguments)
    try:
        scores = by_lmms(given.results, given.lmms, given.metric, given.scale)
        Path(given.output).write_text("".join(json.dumps(score, ensure_ascii=False) + "\n" for score in scores), encoding="utf-8")
    except (ValueError, OSError, commands.CommandError) as error:  # DataError and ScoreError are ValueErrors
        print(f"vlmprof.scores: {error}", file=sys.stderr)
        return 3
    print(f"{len(scores)} scores, mean {sum(one['score'] for one in scores) / max(1, len(scores)):.4f}", file=sys.stderr)
    return 0 if scores else 1


if __name__ == "__main__":
    sys.exit(main())
