#!/usr/bin/env python3
"""wheel.py - the wheel and the source package, with Python's standard library alone.

    wheel.py wheel FOLDER PLATFORM OUTPUT    FOLDER has the program vlmprof and libvlmprof.so; PLATFORM is the wheel's tag: manylinux_2_28_x86_64
    wheel.py sdist OUTPUT

It is also the source package's build backend (PEP 517): pip builds the program with make and a C compiler. The same input gives the same bytes.
"""
import base64
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "packaging" / "python"
LICENCES = ["LICENSE", "packaging/THIRD-PARTY.txt"]
LEFT_OUT = ("tests/golden/", "tests/fuzz/", "tests/bench/results/", "samples/tiny/", "samples/page/", ".ci/")  # not needed for building
SOME_DAY = (2020, 1, 1, 0, 0, 0)


def version():
    return re.search(r'^#define VLMPROF_VERSION "(.*)"', (TOP / "vlmprof.h").read_text(encoding="utf-8"), re.M).group(1)


def metadata():
    described = (TOP / "README.md").read_text(encoding="utf-8")
    return f"""Metadata-Version: 2.1
Name: vlmprof
Version: {version()}
Summary: Profiler of vision-language models: stage times, image tokens, latency and accuracy, of checkpoints, servers and torch models
License: MIT
License-File: LICENSE
License-File: THIRD-PARTY.txt
Requires-Python: >=3.8
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Requires-Dist: matplotlib; extra == "pandas"
Provides-Extra: torch
Requires-Dist: torch>=2.1; extra == "torch"
Requires-Dist: transformers>=4.50; extra == "torch"
Requires-Dist: pillow; extra == "torch"
Description-Content-Type: text/markdown

{described}"""


def write_wheel(folder, tag, output):
    """Writes the wheel and returns its name."""
    info, name = f"vlmprof-{version()}.dist-info", f"vlmprof-{version()}-py3-none-{tag}.whl"
    files = {str(path.relative_to(PACKAGE)): path.read_bytes() for path in sorted(PACKAGE.glob("vlmprof/**/*"))
             if path.suffix == ".py" or path.name == "py.typed"}
    files["vlmprof/libvlmprof.so"] = (Path(folder) / "libvlmprof.so").read_bytes()
    files[f"vlmprof-{version()}.data/scripts/vlmprof"] = (Path(folder) / "vlmprof").read_bytes()
    for licence in LICENCES:
        files[f"{info}/licenses/{Path(licence).name}"] = (TOP / licence).read_bytes()
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: vlmprof\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode()
    record = f"{info}/RECORD"
    rows = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
            for path, data in files.items()] + [f"{record},,"]
    files[record] = ("\n".join(rows) + "\n").encode()
    os.makedirs(output, exist_ok=True)
    with zipfile.ZipFile(Path(output) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, SOME_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            wheel.writestr(entry, data)
    return name


def source_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        paths = listed.stdout.decode().split("\0")
    else:  # an unpacked source package
        paths = [str(path.relative_to(TOP)) for path in TOP.glob("**/*") if path.is_file()]
    return sorted(path for path in paths if path and not path.startswith(LEFT_OUT + ("build/", "dist/")) and (TOP / path).is_file())


def write_sdist(output):
    """Writes the source package and returns its name."""
    name = f"vlmprof-{version()}"
    os.makedirs(output, exist_ok=True)
    files = {path: (TOP / path).read_bytes() for path in source_files()}
    files["pyproject.toml"] = (PACKAGE / "pyproject.toml").read_bytes()
    files["PKG-INFO"] = metadata().encode()
    with tarfile.open(Path(output) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(data)
            entry.mode = 0o755 if (TOP / path).exists() and os.access(TOP / path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return f"{name}.tar.gz"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = Path(metadata_directory) / f"vlmprof-{version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata(), encoding="utf-8")
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise SystemExit(f"vlmprof builds on Linux for x86_64 and aarch64; this is {sys.platform} on {platform.machine()}")
    folder = TOP / "build" / "python"
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["make", "NVCC=", "PROGRAM=build/python/vlmprof", "build/python/vlmprof", "build/libvlmprof.so"],
                          cwd=TOP, stdout=sys.stderr, check=False)
    if made.returncode != 0:
        raise SystemExit("vlmprof: make failed; it needs GNU make, bash and a C compiler with OpenMP, and stb_image (Debian, Ubuntu: "
                         "apt install make gcc libstb-dev)")
    os.replace(TOP / "build" / "libvlmprof.so", folder / "libvlmprof.so")
    return write_wheel(folder, f"linux_{platform.machine()}", wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    return write_sdist(sdist_directory)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "wheel":
        print(Path(sys.argv[4]) / write_wheel(*sys.argv[2:]))
    elif len(sys.argv) == 3 and sys.argv[1] == "sdist":
        print(Path(sys.argv[2]) / write_sdist(sys.argv[2]))
    else:
        sys.exit(__doc__)
