"""The build backend of `pip install ./python` (PEP 517, 660): a wheel of the Python files. It needs the standard library alone.

packaging/wheel.py writes the wheel that contains the program, with these functions."""
import base64
import hashlib
import os
import re
import zipfile
from pathlib import Path
from typing import Any, Dict

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
SOME_DAY = (2020, 1, 1, 0, 0, 0)  # the same input gives the same bytes
EXTRAS = {"pandas": ["pandas", "matplotlib"], "data": ["pandas", "pyarrow"], "conform": ["numpy"],
          "torch": ["torch>=2.1", "transformers>=4.50", "pillow", "torchvision", "num2words"]}  # SmolVLM's processor needs the last two


def version() -> str:
    found = re.search(r'^#define VLMPROF_VERSION "(.*)"', (TOP / "vlmprof.h").read_text(encoding="utf-8"), re.M)
    if not found:
        raise SystemExit(f"{TOP}/vlmprof.h has no version")
    return found.group(1)


def metadata(licences: bool = False) -> str:
    lines = ["Metadata-Version: 2.1", "Name: vlmprof", f"Version: {version()}",
             "Summary: Profiler of vision-language models: stage times, image tokens, latency and accuracy, of checkpoints, servers and torch models", "License: MIT"]
    lines += ["License-File: LICENSE", "License-File: THIRD-PARTY.txt"] if licences else []
    lines.append("Requires-Python: >=3.9")
    for extra, needs in EXTRAS.items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    described = (TOP / "README.md").read_text(encoding="utf-8") if licences else "vlmprof"
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", described]) + "\n"


def package_files() -> Dict[str, bytes]:
    return {str(path.relative_to(HERE)): path.read_bytes() for path in sorted(HERE.glob("vlmprof/**/*")) if path.suffix == ".py" or path.name == "py.typed"}


def write_wheel(output: Any, tag: str, files: Dict[str, bytes], licences: bool = False) -> str:
    """Writes a wheel with these files, of Python's tag PYTHON-ABI-PLATFORM, and returns its name."""
    info, name = f"vlmprof-{version()}.dist-info", f"vlmprof-{version()}-{tag}.whl"
    pure = "true" if tag.endswith("-any") else "false"
    files = {**files, f"{info}/METADATA": metadata(licences).encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: vlmprof\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()}
    rows = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    os.makedirs(output, exist_ok=True)
    with zipfile.ZipFile(Path(output) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, SOME_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            wheel.writestr(entry, data)
    return name


def build_wheel(wheel_directory: str, *_: Any, **_more: Any) -> str:
    """The Python files, and the path of the checkout, where the program is once it is built."""
    return write_wheel(wheel_directory, "py3-none-any", {**package_files(), "vlmprof/checkout": f"{TOP}\n".encode()})


def build_editable(wheel_directory: str, *_: Any, **_more: Any) -> str:
    return write_wheel(wheel_directory, "py3-none-any", {"vlmprof.pth": f"{HERE}\n".encode()})
