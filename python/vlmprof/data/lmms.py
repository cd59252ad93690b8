"""Tasks of lmms-eval: its own task objects supply the images, prompts and references. Nothing is copied from it."""
from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Iterator, List

from .record import DataError, Picture, Sample, texts_of


def load_task(name: str) -> Any:
    """The task object, by name or PATH/NAME.yaml; lmms-eval finds or downloads the data set."""
    try:
        from lmms_eval.tasks import TaskManager, get_task_dict
    except ImportError as error:
        raise DataError(f"lmms:{name} needs lmms-eval in this Python: pip install lmms-eval ({error})") from None
    path = Path(name) if name.endswith((".yaml", ".yml")) else None
    manager = TaskManager(include_path=str(path.parent), include_defaults=False) if path else TaskManager()
    found = get_task_dict([path.stem if path else name], manager)
    while isinstance(found, dict):  # a group of one
        if len(found) != 1:
            raise DataError(f"lmms:{name} is a group: choose one of {', '.join(sorted(str(key) for key in found))}")
        found = next(iter(found.values()))
    return found


def docs_of(task: Any) -> Any:
    return task.test_docs() if task.has_test_docs() else task.validation_docs()


def _file_of(picture: Any) -> bytes:
    """A PIL picture as a PNG file, in the mode that lmms-eval passes to models."""
    if not hasattr(picture, "save"):
        raise DataError(f"its visual is {type(picture).__name__}, not a picture: video and audio are not supported")
    out = io.BytesIO()
    picture.convert("RGB").save(out, "PNG")
    return out.getvalue()


def lmms_samples(name: str) -> Iterator[Sample]:
    task = load_task(name)
    tokens = (getattr(task.config, "generation_kwargs", None) or {}).get("max_new_tokens")
    for number, doc in enumerate(docs_of(task)):
        sample = Sample(number, number, prompt=str(task.doc_to_text(doc)), rule=f"lmms:{name}")
        if tokens:
            sample.more["max_new_tokens"] = tokens
        try:
            visuals: List[Any] = task.doc_to_visual(doc) or []
            sample.pictures = [Picture(data=_file_of(visual)) for visual in visuals]
            sample.answers = texts_of(task.doc_to_target(doc))
        except (DataError, KeyError, TypeError, ValueError) as error:
            sample.fail(f"{type(error).__name__}: {error}")
        yield sample
