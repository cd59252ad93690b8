#!/usr/bin/env python3
"""load_results.py - result files and traces as pandas DataFrames, by the Python package of this checkout (packaging/python).

    python3 -m pip install pandas matplotlib
    python3 samples/load_results.py build/demo --png front.png
    python3 samples/load_results.py --trace build/trace.json

With the package installed the same is `python3 -m vlmprof.results`, and vlmprof.load("build/demo") returns the two tables.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "packaging" / "python"))
from vlmprof.results import main  # noqa: E402

main()
