#!/usr/bin/env python3
"""wheel.py - the wheel with the program and the source package, with Python's standard library alone.

    wheel.py wheel FOLDER PLATFORM OUTPUT    FOLDER has the program vlmprof; PLATFORM is the wheel's tag: manylinux_2_28_x86_64
    wheel.py sdist OUTPUT

It is also the source package's build backend (PEP 517): pip builds the program with make and a C compiler. The same input gives the same bytes.
"""
import io
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "python"))
from backend import metadata, package_files, version, write_wheel  # noqa: E402

LICENCES = ["LICENSE", "packaging/THIRD-PARTY.txt"]
LEFT_OUT = ("tests/golden/", "tests/fuzz/", "tests/bench/results/", "samples/tiny/", "samples/page/", ".ci/")  # not needed for building
PYPROJECT = """[build-system]
requires = []
build-backend = "wheel"
backend-path = ["packaging"]
"""


def write_program_wheel(folder, tag, output):
    """Writes the wheel with the program and returns its name."""
    files = {**package_files(), f"vlmprof-{version()}.data/scripts/vlmprof": (Path(folder) / "vlmprof").read_bytes()}
    files.update({f"vlmprof-{version()}.dist-info/licenses/{Path(licence).name}": (TOP / licence).read_bytes() for licence in LICENCES})
    return write_wheel(output, f"py3-none-{tag}", files, licences=True)


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
    files["pyproject.toml"] = PYPROJECT.encode()
    files["PKG-INFO"] = metadata(licences=True).encode()
    with tarfile.open(Path(output) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(data)
            entry.mode = 0o755 if (TOP / path).exists() and os.access(TOP / path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return f"{name}.tar.gz"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise SystemExit(f"vlmprof builds on Linux for x86_64 and aarch64; this is {sys.platform} on {platform.machine()}")
    folder = TOP / "build" / "python"
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["make", "NVCC=", "PROGRAM=build/python/vlmprof", "build/python/vlmprof"],
                          cwd=TOP, stdout=sys.stderr, check=False)
    if made.returncode != 0:
        raise SystemExit("vlmprof: make failed; it needs GNU make, bash and a C compiler with OpenMP, and stb_image (Debian, Ubuntu: "
                         "apt install make gcc libstb-dev)")
    return write_program_wheel(folder, f"linux_{platform.machine()}", wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    return write_sdist(sdist_directory)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "wheel":
        print(Path(sys.argv[4]) / write_program_wheel(*sys.argv[2:]))
    elif len(sys.argv) == 3 and sys.argv[1] == "sdist":
        print(Path(sys.argv[2]) / write_sdist(sys.argv[2]))
    else:
        sys.exit(__doc__)
