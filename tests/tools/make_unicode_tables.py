#!/usr/bin/env python3
"""Prints the Unicode tables of parts/vlmprof_unicode.h.

usage: make_unicode_tables.py [UCD_DIRECTORY]      (default /usr/share/unicode: Debian's package unicode-data)

Two versions of Unicode meet in the reference tokenizer, so two are cut out of one newer UCD by the property Age:
letters, numbers and white space as of 14.0 (the regular expression engine), NFC as of 9.0 (the normaliser's crate).
"""
import os
import sys

CLASS_AGE, NFC_AGE = (14, 0), (9, 0)
WIDTH = 150


def ranges(path):
    """(first, last, fields) of every data line of a UCD property file"""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            fields = [f.strip() for f in line.split("#")[0].split(";")]
            if len(fields) >= 2:
                first, _, last = fields[0].partition("..")
                yield int(first, 16), int(last or first, 16), fields[1:]
            elif fields[0]:
                yield int(fields[0], 16), int(fields[0], 16), []


def read(ucd):
    age, general, ccc, decomposition, white, excluded = {}, {}, {}, {}, set(), set()
    for first, last, fields in ranges(os.path.join(ucd, "DerivedAge.txt")):
        for c in range(first, last + 1):
            age[c] = tuple(int(x) for x in fields[0].split("."))
    start = None
    with open(os.path.join(ucd, "UnicodeData.txt"), encoding="utf-8") as lines:
        for line in lines:
            f = line.rstrip("\n").split(";")
            c = int(f[0], 16)
            if f[1].endswith(", First>"):
                start = c
                continue
            for x in range(start if start is not None else c, c + 1):
                general[x] = f[2]
            start = None
            if f[3] != "0":
                ccc[c] = int(f[3])
            if f[5] and not f[5].startswith("<"):
                decomposition[c] = [int(x, 16) for x in f[5].split()]
    for first, last, fields in ranges(os.path.join(ucd, "PropList.txt")):
        if fields[0] == "White_Space":
            white.update(range(first, last + 1))
    for first, last, fields in ranges(os.path.join(ucd, "DerivedNormalizationProps.txt")):
        if fields[0] == "Full_Composition_Exclusion":
            excluded.update(range(first, last + 1))
    return age, general, ccc, decomposition, white, excluded


def runs(values):
    """sorted {code point: value} -> (gap to the end of the run before, length, value) of runs of equal values"""
    out, end = [], 0
    for c in sorted(values):
        if out and c == end and out[-1][2] == values[c]:
            out[-1][1] += 1
        else:
            out.append([c - end, 1, values[c]])
        end = c + 1
    return out


def show(name, comment, numbers):
    print(f"/* {comment} */")
    print(f"static const uint32_t vp_impl_unicode_{name}[{len(numbers)}] = {{")
    line = "   "
    for i, n in enumerate(numbers):
        word = f"{n}," if i + 1 < len(numbers) else f"{n}"
        if len(line) + len(word) + (line == "   ") > WIDTH:
            print(line)
            line = "   "
        line += (" " if line == "   " else "") + word
    print(line)
    print("};")


def main():
    ucd = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode"
    age, general, ccc, decomposition, white, excluded = read(ucd)
    classes = {c: 3 for c in white if age[c] <= CLASS_AGE}
    for c, g in general.items():
        if age.get(c, (99, 0)) <= CLASS_AGE and g[0] in "LN":
            assert c not in classes
            classes[c] = 1 if g[0] == "L" else 2
    old = {c for c in age if age[c] <= NFC_AGE}
    marks = sorted({d[1] for c, d in decomposition.items() if c in old and len(d) == 2})
    assert len(marks) < 128 and not any(m in decomposition for m in marks)  # the C code packs the one and relies on the other
    show("classes", "gap, length * 4 + class; class 1 letter, 2 number, 3 white space",
         [n for gap, length, value in runs(classes) for n in (gap, length * 4 + value)])
    show("combining", "gap, length, canonical combining class (all others 0)",
         [n for run in runs({c: v for c, v in ccc.items() if c in old}) for n in run])
    print(f"enum {{ VP_IMPL_UNICODE_DECOMPOSITION_COUNT = {sum(c in old for c in decomposition)} }};")
    show("seconds", "the second halves of canonical decompositions; number 0: there is none", [0] + marks)
    numbers = []
    pairs = {c: d[0] * 128 + (marks.index(d[1]) + 1 if len(d) == 2 else 0) for c, d in decomposition.items() if c in old}
    for gap, length, _ in (consecutive := runs(dict.fromkeys(pairs, 0))):
        first = (numbers and end or 0) + gap
        end = first + length
        numbers += [gap, length] + [pairs[c] for c in range(first, end)]
    show("decompositions", "runs: gap, length, then for each code point first * 128 + number of the second half", numbers)
    # singletons need no mention: they have no second half, so nothing composes to them
    show("excluded", "gap, length: pairs that composition does not restore",
         [n for run in runs({c: 0 for c in excluded & set(pairs) if len(decomposition[c]) == 2}) for n in run[:2]])
    sys.stderr.write(f"{len(runs(classes))} class runs, {len(pairs)} decompositions in {len(consecutive)} runs, {len(marks)} second halves\n")


main()
