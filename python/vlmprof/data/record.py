"""A sample of a data set: prompt, pictures, references, and where it comes from."""
from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Row = Dict[str, Any]


class DataError(ValueError):
    """A file that cannot be read as a data set; the text gives what was expected."""


@dataclass
class Picture:
    """A picture embedded in the data (`data`), or a file that the data refer to (`path`)."""
    path: Optional[str] = None
    data: Optional[bytes] = None

    def find(self, folders: List[Path]) -> Union[bytes, Path]:
        """The bytes, or the file: by its whole name in one of the folders, otherwise by the last part of its name there."""
        if self.data is not None:
            return self.data
        if self.path is None:
            raise DataError("a picture has neither bytes nor a path")
        for folder in folders:
            for name in (self.path, Path(self.path).name):
                if (folder / name).is_file():
                    return folder / name
        where = " and in ".join(str(folder) for folder in folders)
        raise DataError(f"picture \"{self.path[:200]}\" was not found in {where}; --image_dir names another folder")


def picture_format(data: bytes) -> str:
    """The format of a picture file, by its first bytes: "png", "jpg", ...

    >>> picture_format(b"\\x89PNG\\r\\n\\x1a\\n...")
    'png'
    >>> picture_format(b"no picture")
    Traceback (most recent call last):
    vlmprof.data.record.DataError: not a PNG, JPEG, WebP, GIF or BMP file
    """
    for name, begin in (("png", rb"\x89PNG\r\n\x1a\n"), ("jpg", rb"\xff\xd8\xff"), ("webp", rb"RIFF.{4}WEBP"), ("gif", rb"GIF8[79]a"), ("bmp", rb"BM")):
        if re.match(begin, data, re.DOTALL):
            return name
    if data[:4] in (b"II*\0", b"MM\0*"):
        raise DataError("a TIFF file, which vlmprof does not decode: convert it to PNG")
    raise DataError("not a PNG, JPEG, WebP, GIF or BMP file")


@dataclass
class Sample:
    """The question, with the text that is sent after the pictures."""
    row: int
    id: Union[int, str]
    question: Optional[str] = None  # as in the data
    prompt: Optional[str] = None  # as sent; None if `content` has it
    pictures: List[Picture] = field(default_factory=list)
    content: List[Row] = field(default_factory=list)  # {"text": ..} and {"image": position}, if they alternate
    answers: Optional[List[str]] = None
    answer: Optional[str] = None
    options: Dict[str, str] = field(default_factory=dict)  # by letter
    hint: Optional[str] = None
    rule: Optional[str] = None  # how the tool scores it
    more: Row = field(default_factory=dict)  # further members: category, split, ...
    error: Optional[str] = None  # why it cannot be used

    def fail(self, reason: str) -> None:
        self.error = self.error or reason


def text_of(value: Any) -> Optional[str]:
    """A string or a number as text, as it is written; None for anything else.

    >>> text_of("a"), text_of(12), text_of(None), text_of(True)
    ('a', '12', None, None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return None


def texts_of(value: Any) -> List[str]:
    """The texts of a value: one, a list, or a list of {"answer": text}.

    >>> texts_of("a"), texts_of(["a", 2, None]), texts_of([{"answer": "net", "answer_id": 1}])
    (['a'], ['a', '2'], ['net'])
    """
    items = value if isinstance(value, (list, tuple)) else [value]
    found = (text_of(item.get("answer") if isinstance(item, dict) else item) for item in items)
    return [text for text in found if text is not None]


def id_of(row: Row, keys: List[str], otherwise: int) -> Union[int, str]:
    for key in keys:
        if isinstance(row.get(key), (int, str)) and not isinstance(row[key], bool):
            return row[key]
    return otherwise


def letters(options: List[Optional[str]]) -> Dict[str, str]:
    """Options by letter; None: the option is missing."""
    if len(options) > len(LETTERS):
        raise DataError(f"it has more than {len(LETTERS)} options")
    return {letter: text for letter, text in zip(LETTERS, options) if text is not None}


def decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise DataError("the picture is not base64") from None
