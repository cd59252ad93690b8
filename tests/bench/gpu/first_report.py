#!/usr/bin/env python3
"""first_report.py FIRST_RUN..: at most 40 lines that say what a first run (first-gpu.jsonl, one or more) found: defects, each with the command that repeats it; the
kernels that took longest, measured against predicted; the constants of predict.py as measured.

Predicted is what predict.py says of the launches that were timed, by its constants and by the measured ones: where only the first miss, a constant is
wrong, where both do, the kernel is worse than its model. Replays of a graph have a gap after each launch, CUPTI's times of single kernels none."""
import os
import re
import sys

import predict

GATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gates.txt")
SLOW, FAST = 1.3, 0.8
LINES = 40


def read(*paths):
    return [row for path in paths for row in predict.first_run(path)]


def chip_of(rows):
    name = next((row["gpu"] for row in rows if "gpu" in row), "")
    return ("H200" if "H200" in name else "H100"), name


def launch_of(row, launch):
    name, grid, d, flops, size = launch
    return {"name": name.split(":")[0], "grid": grid, "d": d, "flops": flops, "bytes": size, "stage": row["stage"], "kind": row.get("way", "bf16")}


def predicted_ns(row, counts, chip):
    """of an operation that a graph replayed, or of one kernel by CUPTI; None: predict.py has no model of it"""
    total = 0.0
    for launch in row.get("launches", []):
        l = launch_of(row, launch)
        if l["name"].startswith("copy") or "_masked" in l["name"]:
            return None
        total += predict.time_of(l, predict.CHIPS[chip], counts) + (predict.GAP if "ns" in row else 0.0)
    return total * 1e9 or None


def measured_ns(row):
    return row.get("ns") or row.get("kernel_ns")


def kernel_of(row):
    """the launch that computes most; of a fault, what its error names last; of a wrong value, the kernel that wrote it"""
    named = re.findall(r"\b(k_[a-z0-9_]+): ", row.get("text", ""))
    if named:
        return named[-1]
    if row.get("launches") and "kernel" not in row:
        return max(row["launches"], key=lambda l: (l[3], l[4]))[0]
    return row.get("kernel") or row["case"]


def compare(rows, counts, chip, values):
    """row: measured, predicted by predict.py's constants, by the measured ones"""
    found = []
    for row in rows:
        measured = measured_ns(row)
        if not measured or row["status"] != "OK":
            continue
        predict.set_constants({})
        first = predicted_ns(row, counts, chip)
        predict.set_constants(values)
        again = predicted_ns(row, counts, chip)
        if first and again:
            found.append((row, measured, first, again))
    return found


def defects(rows, compared):
    lines = []
    for row in rows:
        if row["status"] in ("HANG", "FAULT", "WRONG", "NONDETERMINISTIC"):
            error = row.get("text") or ("error %s of its tolerance" % row.get("error"))
            seed = "--seed %s " % row["seed"] if "seed" in row else ""
            lines.append("%s %s %s %s %s | first_gpu %s%s" % (row["status"], kernel_of(row), row.get("shape", "-"), row.get("way", "-"), error, seed, row["case"]))
    for row, measured, first, again in once_each(sorted(compared, key=lambda c: -c[1] / max(c[2:]))):
        if measured > SLOW * again and measured > SLOW * first:
            lines.append("SLOW %s %s %s %.2f x predicted | first_gpu --seed %s %s" % (kernel_of(row), row.get("shape", "-"), row.get("way", "-"), measured / again,
                                                                                   row.get("seed"), row["case"]))
    return lines


def once_each(compared):
    """the first row of each kernel and way"""
    seen = set()
    for c in compared:
        key = (kernel_of(c[0]).split(":")[0], c[0].get("way"))
        if key not in seen:
            seen.add(key)
            yield c


def flag(measured, first, again):
    if measured > SLOW * again and measured > SLOW * first:
        return "kernel worse than its model"
    if measured > SLOW * first or measured < FAST * first:
        return "constant wrong" if FAST * again <= measured <= SLOW * again else "model wrong"
    return ""


def main():
    rows = read(*sys.argv[1:])
    counts = predict.loop_counts(GATES)
    chip, name = chip_of(rows)
    values = predict.measured_constants(rows)
    compared = compare(rows, counts, chip, values)
    found = defects(rows, compared)
    yard = {(row["stage"], row["yardstick_shape"]): row["yardstick_ns"] for row in rows if "yardstick_ns" in row}
    skipped = [row["case"] for row in rows if row["status"] == "SKIPPED"]
    print("first run: %s, %d lines, %d defects%s" % (name or "no GPU", len(rows), len(found), "" if chip in name else "; predictions are those of " + chip))
    for line in found[:14]:
        print(line)
    if len(found) > 14:
        print("and %d more defects: first-gpu.jsonl" % (len(found) - 14))
    room = max(3, LINES - 4 - min(len(found), 15) - len(values) - bool(skipped))
    print("%-28s %-22s %-9s %9s %9s %6s %6s %7s %s" % ("kernel", "shape", "way", "us", "predicted", "ratio", "again", "ceiling", "yardstick"))
    rate, memory = values.get("rate", predict.CONSTANTS["rate"][0]), values.get("memory_h100", predict.CHIPS[chip])
    worst = list(once_each(sorted(compared, key=lambda c: (not flag(*c[1:]), -c[1]))))
    for row, measured, first, again in worst[:room]:
        flops, size = sum(l[3] for l in row["launches"]), sum(l[4] for l in row["launches"])
        share = max(flops / rate, size / memory) / (measured * 1e-9)
        reference = yard.get((row["stage"], row.get("shape")))
        print("%-28s %-22s %-9s %9.1f %9.1f %6.2f %6.2f %6.0f%% %s %s" % (kernel_of(row)[:28], row.get("shape", "")[:22], row.get("way", "")[:9], measured * 1e-3,
                                                                        first * 1e-3,
                                                                        measured / first, measured / again, 100 * share,
                                                                        "%.2f x" % (measured / reference) if reference else "-", flag(measured, first, again)))
    print("%-16s %12s %12s %6s   range" % ("constant", "assumed", "measured", "ratio"))
    for key, value in values.items():
        assumed, least, most = predict.CONSTANTS[key][:3]
        if key != ("memory_h100" if chip == "H200" else "memory_h200"):
            print("%-16s %12.4g %12.4g %6.2f   %s" % (key, assumed, value, value / assumed, "" if least <= value <= most else "outside %.3g to %.3g" % (least, most)))
    if skipped:
        print("skipped: " + ", ".join(skipped)[:150])
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
