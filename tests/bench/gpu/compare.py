#!/usr/bin/env python3
"""compare.py RESULT PREDICTIONS: what `make bench-gpu` measured next to what counts predict, kernel by kernel.

RESULT is bench_gpu's JSON, whose "launches" are of one request of 13 passes and 1922 tokens and 4 decode steps; PREDICTIONS is what
`predict.py --json` printed. Measured is the sum of event pairs around each launch, so a launch has its latency in it; predicted has the gap to the next
launch. Stages' totals are those of timing by stages. Prints a table; exits 1 when a file has none of the numbers."""
import json
import re
import sys

STAGES = {"vit": "vision", "sample": "head"}  # bench_gpu's name -> that of the predictions
STEPS = 4


def chip_of(device):
    return "H200" if "H200" in device else "H100" if "H100" in device or "GH200" in device else None


def row(name, calls, measured, predicted):
    ratio = "%8.2f" % (measured / predicted) if predicted else "%8s" % "-"
    print("%-10s %-26s %7s %11.4f %11s %s" % (name[0], name[1], calls, measured, "%.4f" % predicted if predicted else "-", ratio))


def main():
    result, predictions = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
    chip = chip_of(result["device"])
    if chip is None:
        print("%s: predictions are of H200 and H100; those of H100 stand next to it" % result["device"])
        chip = "H100"
    full = predictions["13/1922"]
    print("\nmeasured against predicted (%s): one request of 13 passes and 1922 tokens, %d decode steps, ms\n%-10s %-26s %7s %11s %11s %8s"
          % (chip, STEPS, "stage", "kernel", "calls", "measured", "predicted", "ratio"))
    seen, sums = set(), {}
    for launch in result["launches"]:
        stage = STAGES.get(launch["stage"], launch["stage"])
        key = "%s %s" % (stage, launch["launch"])
        times = STEPS if stage == "decode" else 1
        predicted = full[key][chip] * times if key in full else None
        seen.add(key)
        row((stage, launch["launch"]), launch["calls"], launch["ms"], predicted)
        total = sums.setdefault(stage, [0.0, 0.0])
        total[0] += launch["ms"]
        total[1] += predicted or 0.0
    for stage, (measured, predicted) in sums.items():
        row((stage, "all kernels"), "", measured, predicted)
    missing = [key for key in full if key not in seen]
    if missing:
        print("predicted, and not sent here (another way was taken): " + ", ".join(missing))
    count = 0
    print("\nstages, by events at their borders:")
    for name in ("vision", "prefill", "decode"):
        for measured in result[name]:
            numbers = [int(x) for x in re.findall(r"\d+", measured["shape"])]
            if name != "vision" and (numbers[1] != 8 or numbers[2] != 16):
                continue
            shape = [s for s in predictions if str(numbers[0]) == s.split("/")[0 if name == "vision" else 1]]
            if not shape:
                continue
            predicted = sum(v[chip] for k, v in predictions[shape[0]].items() if k.split()[0] == name)
            row((name, measured["shape"][:26]), measured["launches"], measured["measured_ms"], predicted)
            count += 1
    return 0 if sums or count else 1


sys.exit(main())
