#!/usr/bin/env python3
"""Prints the tables of parts/vlmprof_unicode.h that follow Python's str: what str.upper makes of characters whose capital is not the lower
case table read backwards, and the characters that decide whether a capital sigma is final. Run with Python 3.11 (Unicode 14.0):
python3 tests/tools/make_case_tables.py"""

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def runs(holds):
    """gap, length of every run of characters that hold"""
    out, end, start = [], 0, None
    for code in range(0x110001):
        good = code < 0x110000 and not 0xD800 <= code < 0xE000 and holds(chr(code))
        if good and start is None:
            start = code
        if not good and start is not None:
            out += [start - end, code - start]
            end, start = code, None
    return out


def show(name, values):
    lines = ["    "]
    for value in values:
        if len(lines[-1]) + len(f"{value},") > 149:
            lines.append("    ")
        lines[-1] += f"{value},"
    print(name + "\n" + "\n".join(lines).rstrip(","))


def final(text):
    return (text + "Σ").lower()[-1] == "ς"


show("cased", runs(final))
show("ignorable", runs(lambda c: final("a" + c) and not final(c)))
back = {}
for code in CODES:
    lower = chr(code).lower()
    if len(lower) == 1 and lower != chr(code):
        back.setdefault(ord(lower), chr(code))  # the first in code order, as the search finds it
for code in CODES:
    upper = chr(code).upper()
    if upper != back.get(code, chr(code)) and not 0x1F80 <= code <= 0x1FAF:
        print("{" + ", ".join(f"0x{ord(c):X}" for c in chr(code) + upper) + "}", end=", ")
print()
