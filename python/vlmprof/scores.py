"""Predictions of a sweep for other tools' scorers, and their scores for `vlmprof score RESULTS --scores FILE`.

    python -m vlmprof.scores results --lmms mmmu_val -o scores.jsonl         # lmms-eval's process_results
    python -m vlmprof.scores results --function mine.py:score -o scores.jsonl
    vlmprof score results --scores scores.jsonl -o scored

A line of the output is {"id", "config", "score"}, the score from 0 to 1: `config` is the result file's name without
.json, `id` the record's own, else its sample_id. A function gets a prediction and the references, and returns a
number."""
from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Union

from .results import PathLike, files_of


class ScoreError(ValueError):
    """Predictions that a tool cannot score, with the reason."""


class Prediction(NamedTuple):
    """An answer of a configuration to a sample."""
    id: Union[int, str]
    sample_id: Union[int, str]
    config: str
    question: str
    answers: List[str]
    prediction: str


class Score(NamedTuple):
    id: Union[int, str]
    config: str
    score: float


def predictions(folder: PathLike) -> List[Prediction]:
    """The answers in result files; failed samples have none. Raises FileNotFoundError if there is no result file."""
    found: List[Prediction] = []
    files = 0
    for path, result in files_of(folder):
        files += 1
        for row in result["per_sample_results"]:
            metadata = row.get("metadata") or {}
            if row.get("status", "ok") != "ok" or row.get("pred") is None:
                continue
            keys = ("answers", "source_answers", "references", "answer")
            answers: object = next((metadata[key] for key in keys if key in metadata), [])
            found.append(Prediction(metadata.get("id", row["sample_id"]), row["sample_id"], path.stem,
                                    str(metadata.get("question", "")),
                                    [str(text) for text in (answers if isinstance(answers, list) else [answers])],
                                    row["pred"]))
    if not files:
        raise FileNotFoundError(f"{folder}: there is no result file of vlmprof sweep in it")
    return found


def _checked(score: Any, of: Prediction) -> Score:
    value = float(score)
    if not 0 <= value <= 1:  # NaN too
        raise ScoreError(f"sample {of.id} of {of.config}: the score is {value:g}; expected 0 to 1 (--scale divides it)")
    return Score(of.id, of.config, value)


def by_function(of: List[Prediction], function: Callable[[str, List[str]], float], scale: float = 1) -> List[Score]:
    """Scores of a function of prediction and references.

    >>> one = Prediction("q1", 0, "low", "What?", ["cat"], "cat")
    >>> by_function([one], lambda prediction, references: prediction in references)
    [Score(id='q1', config='low', score=1.0)]
    """
    return [_checked(float(function(one.prediction, one.answers)) / scale, one) for one in of]


def _number_in(value: Any, name: str) -> Optional[float]:
    """The score in a value of process_results: a number, or the number under a usual name of an object."""
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


def by_lmms(of: List[Prediction], name: str, metric: Optional[str] = None, scale: float = 1) -> List[Score]:
    """Scores of a task of lmms-eval. A prediction belongs to the document at its id, as vlmprof.data numbers them."""
    from .data import lmms
    task = lmms.load_task(name)
    docs = lmms.docs_of(task)
    scores = []
    for one in of:
        place = one.id if isinstance(one.id, int) else one.sample_id
        if not isinstance(place, int) or place >= len(docs):
            raise ScoreError(f"sample {one.id}: lmms:{name} has only {len(docs)} documents; was the data made "
                             f"by python -m vlmprof.data lmms:{name}?")
        scores.append(_checked(score_of(task.process_results(docs[place], [one.prediction]), metric) / scale, one))
    return scores


def load_function(name: str) -> Callable[[str, List[str]], float]:
    """The function FILE.py:NAME or MODULE:NAME."""
    where, _, function = name.rpartition(":")
    if not where:
        raise ScoreError(f"--function {name}: expected FILE.py:NAME or MODULE:NAME")
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(where).stem, where)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
        return getattr(module, function)
    except (ImportError, AttributeError, FileNotFoundError) as error:
        raise ScoreError(f"--function {name}: {error}") from None


def write(scores: List[Score], output: PathLike) -> None:
    with Path(output).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(score._asdict(), ensure_ascii=False) + "\n" for score in scores)


def _lines(scores: List[Score]) -> Iterator[str]:
    for config in dict.fromkeys(score.config for score in scores):
        mine = [score.score for score in scores if score.config == config]
        yield f"{config}: {len(mine)} scores, mean {sum(mine) / len(mine):.4f}"


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vlmprof.scores", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="a folder of result files, or one of them")
    by = parser.add_mutually_exclusive_group(required=True)
    by.add_argument("--lmms", metavar="TASK", help="a task of lmms-eval scores")
    by.add_argument("--function", metavar="FILE.py:NAME", help="a function of prediction and references scores")
    parser.add_argument("--metric", help="--lmms: which of the task's scores")
    parser.add_argument("--scale", type=float, default=1, help="largest score, by which scores are divided (default 1)")
    parser.add_argument("-o", "--output", required=True, help="JSONL file to write")
    given = parser.parse_args(arguments)
    try:
        found = predictions(given.results)
        scores = (by_lmms(found, given.lmms, given.metric, given.scale) if given.lmms else
                  by_function(found, load_function(given.function), given.scale))
        write(scores, given.output)
    except (ValueError, OSError) as error:  # DataError and ScoreError are ValueErrors
        print(f"vlmprof.scores: {error}", file=sys.stderr)
        return 3
    print("\n".join(_lines(scores)), file=sys.stderr)
    return 0 if scores else 1


if __name__ == "__main__":
    sys.exit(main())
