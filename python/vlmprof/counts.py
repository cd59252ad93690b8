"""Vision tokens by family, as `vlmprof tile` counts them."""
from __future__ import annotations

import functools
import os
from typing import Any, Iterable, List, Tuple, Union

from . import commands


@functools.cache
def families() -> List[str]:
    """The names of all families, in the order of `vlmprof tile --list_families`."""
    return [row["family"] for row in commands.run(["tile", "--list_families"])]


@functools.lru_cache(maxsize=65536)
def _tile(images: Tuple[str, ...], family: str, settings: Tuple[Tuple[str, Any], ...]) -> List[Any]:
    if not isinstance(family, str):
        raise TypeError(f"family: expected a name, not {family!r}")
    words = [word for key, value in settings for word in (f"--{key}", str(value).lower() if isinstance(value, bool) else str(value))]
    try:
        rows = commands.run(["tile", *images, "--family", family, *words])
    except commands.CommandError as error:
        raise ValueError(str(error)) from None
    for image, row in zip(images, rows):
        if row["error"]:
            raise ValueError(f"{image}: {row['error']}")
    return rows


def count_tokens(family: str, width_px: int, height_px: int, **settings: Any) -> int:
    """Tokens of one image in a family's prompt: count_tokens("qwen3-vl", 1920, 1080, max_pixels=1003520). For many, use tokens_of: it starts the program only once.
    All numbers of an image: vlmprof.run(["tile", "1920x1080", "--family", "qwen3-vl"]).

    family:   a name, alias or model_type (families())
    settings: keys of the model's own configuration; the defaults are those of the published checkpoints
    Raises ValueError with the reason: an unknown family or key, or a value or size that the rule rejects."""
    return tokens_of([(width_px, height_px)], family, **settings)[0]


def _operand(image: Any) -> str:
    """A path, or WIDTHxHEIGHT for a pair, a picture with `size` (PIL) or an array [height, width(, channels)]."""
    if isinstance(image, (str, os.PathLike)):
        return os.fspath(image)
    shape, size = getattr(image, "shape", None), getattr(image, "size", None)
    if isinstance(image, (tuple, list)) and len(image) == 2:
        size = image
    elif shape is not None and len(shape) in (2, 3):
        size = shape[1], shape[0]
    if isinstance(size, (tuple, list)) and len(size) == 2:
        if not all(hasattr(side, "__index__") and 0 < side < 2**31 for side in size):
            raise ValueError(f"{size[0]!r} x {size[1]!r}: expected width and height in pixels, whole numbers from 1 to {2**31 - 1}")
        return f"{size[0]}x{size[1]}"
    raise TypeError(f"{type(image).__name__}: expected a path, (width, height), a PIL picture or an array [height, width, channels]")


def tokens_of(images: Iterable[Union[str, os.PathLike[str], Any]], family: str, **settings: Any) -> List[int]:
    """Tokens of each image: paths of files (read by the program, with EXIF orientation), (width, height) pairs, PIL pictures, arrays [height, width, ..]."""
    operands = tuple(_operand(image) for image in images)
    return [row["total_tokens"] for row in _tile(operands, family, tuple(settings.items()))] if operands else []
