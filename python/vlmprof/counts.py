"""Vision tokens by family, through the library's own code (libvlmprof.so) by ctypes."""
from __future__ import annotations

import ctypes
import operator
import os
import platform
import sys
from pathlib import Path
from typing import Any, Iterable, List, NamedTuple, Optional, Tuple, Union

_library: Optional[ctypes.CDLL] = None


class PlatformError(OSError):
    """This system or processor is not one that vlmprof's binaries are for."""


def _wrong_platform(what: str) -> PlatformError:
    return PlatformError(f"{what}; vlmprof has binaries for Linux with glibc 2.28 or later on x86_64 and aarch64, and "
                         f"this is {sys.platform} on {platform.machine()}. Build it from source: make, make "
                         "build/libvlmprof.so, then set VLMPROF=.../vlmprof, VLMPROF_LIBRARY=.../build/libvlmprof.so")


def _library_path() -> Path:
    """VLMPROF_LIBRARY, the library of this package's wheel, or the one in the build folder of the checkout."""
    named = os.environ.get("VLMPROF_LIBRARY")
    package = Path(__file__).resolve().parent
    tops = [package.parent.parent]
    if (package / "checkout").is_file():
        tops.append(Path((package / "checkout").read_text(encoding="utf-8").strip()))
    places = [Path(named)] if named else [package / "libvlmprof.so", *(top / "build" / "libvlmprof.so" for top in tops)]
    return next((place for place in places if place.is_file()), places[0])


def _load() -> ctypes.CDLL:
    global _library
    if _library is None:
        path = _library_path()
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise _wrong_platform(f"{path} cannot be loaded ({error})") from None
        texts = ctypes.POINTER(ctypes.c_char_p)
        library.vlmprof_version.restype = library.vlmprof_family_name.restype = ctypes.c_char_p
        library.vlmprof_family_name.argtypes = [ctypes.c_int32]
        library.vlmprof_count.argtypes = [ctypes.c_char_p, texts, texts, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32,
                                          ctypes.POINTER(ctypes.c_int64), ctypes.c_char_p]
        _library = library
    return _library


class Count(NamedTuple):
    """What an image costs in a family; None: the rule has no such number."""
    total_tokens: int  # what the processor puts in the place of the image
    feature_tokens: Optional[int]  # from the vision tower
    separator_tokens: Optional[int]
    marker_tokens: Optional[int]
    views: Optional[int]  # images that the vision tower sees, the global view included
    rows: Optional[int]  # of patches, tokens or tiles
    cols: Optional[int]
    resized_width_px: Optional[int]
    resized_height_px: Optional[int]


def version() -> str:
    """The library's version, "0.2.0"."""
    return _load().vlmprof_version().decode()


def families() -> List[str]:
    """The names of all families, in the order of `vlmprof tile --list_families`."""
    names: List[str] = []
    while True:
        name = _load().vlmprof_family_name(len(names))
        if name is None:
            return names
        names.append(name.decode())


def count(family: str, width_px: int, height_px: int, **settings: Any) -> Count:
    """All numbers of one image. Arguments as of count_tokens."""
    keys = (ctypes.c_char_p * len(settings))(*[key.encode() for key in settings])
    words = [str(value).lower() if isinstance(value, bool) else str(value) for value in settings.values()]
    values = (ctypes.c_char_p * len(settings))(*[word.encode() for word in words])
    numbers, text = (ctypes.c_int64 * 9)(), ctypes.create_string_buffer(1024)
    for name, side in (("width_px", width_px), ("height_px", height_px)):
        try:
            operator.index(side)
        except TypeError:
            raise TypeError(f"{name}: expected a whole number, not {side!r}") from None
        if not 0 < side < 2**31:
            raise ValueError(f"{name}: expected 1 to {2**31 - 1}, not {side}")
    if not isinstance(family, str):
        raise TypeError(f"family: expected a name, not {family!r}")
    if _load().vlmprof_count(family.encode(), keys, values, len(settings), width_px, height_px, numbers, text) != 0:
        raise ValueError(text.value.decode(errors="replace"))
    known = [None if number < 0 else number for number in numbers]
    return Count(numbers[8], known[5], known[6], known[7], known[4], known[2], known[3], known[0], known[1])


def count_tokens(family: str, width_px: int, height_px: int, **settings: Any) -> int:
    """Tokens of one image in a family's prompt: count_tokens("qwen3-vl", 1920, 1080, max_pixels=1003520).

    family:   a name, alias or model_type (families())
    settings: keys of the model's own configuration; the published checkpoints' values are the default
    Raises ValueError with the reason: an unknown family or key, a value or size that the rule refuses."""
    return count(family, width_px, height_px, **settings).total_tokens


def size_of(image: Any) -> Tuple[int, int]:
    """(width, height) px of a pair, a picture with `size` (PIL), or an array [height, width(, channels)]."""
    if isinstance(image, (tuple, list)) and len(image) == 2:
        return int(image[0]), int(image[1])
    shape = getattr(image, "shape", None)
    if shape is not None and len(shape) in (2, 3):
        return int(shape[1]), int(shape[0])
    size = getattr(image, "size", None)
    if isinstance(size, tuple) and len(size) == 2:
        return int(size[0]), int(size[1])
    raise TypeError(f"{type(image).__name__}: expected a path, (width, height), a PIL picture or an array [height, "
                    "width, channels]")


def tokens_of(images: Iterable[Union[str, os.PathLike[str], Any]], family: str, **settings: Any) -> List[int]:
    """Tokens of each image: paths of files (read by the program, turned as EXIF says), (width, height) pairs, PIL
    pictures, arrays [height, width, ..]."""
    from . import commands
    images = list(images)
    paths = [os.fspath(image) for image in images if isinstance(image, (str, os.PathLike))]
    of_path = {}
    if paths:
        options = [word for key, value in settings.items() for word in (f"--{key}", str(value).lower()
                                                                        if isinstance(value, bool) else str(value))]
        rows = commands.run(["tile", *paths, "--family", family, *options])
        for path, row in zip(paths, rows):
            if row["error"]:
                raise ValueError(f"{path}: {row['error']}")
            of_path[path] = row["total_tokens"]
    return [of_path[os.fspath(image)] if isinstance(image, (str, os.PathLike))
            else count_tokens(family, *size_of(image), **settings)
            for image in images]
