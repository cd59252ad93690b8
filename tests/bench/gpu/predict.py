#!/usr/bin/env python3
"""predict.py LAUNCHES GATES [INT8 INT4 WGMMA]: what each kernel of each stage should take on H200 and H100, from counts, as a table in Markdown.

LAUNCHES is what `launches stages` prints (shapes, grids, FLOPs and bytes of each launch of the real model), GATES the counts from SASS of
`make gpu-report`; INT8 and INT4 are LAUNCHES of integer weights (`launches stages int8`), WGMMA those of `--gpu wgmma`. Nothing here is
measured. The constants are those of CONSTANTS; `--constants FIRST_RUN` takes those that a first run measured (first-gpu.jsonl) in their place, and
`--choose FIRST_RUN` prints what becomes of each word of --gpu (WAYS).
first_report.py uses time_of for the launches that a first run timed."""
import itertools
import json
import math
import sys

# name: value, least, most, unit, what it is and where the range comes from
CONSTANTS = {
    "memory_h200": (4.3e12, 4.0e12, 4.5e12, "B/s", "read by a kernel on H200; 4.8 by its data sheet, of which 83 to 94 % are usual"),
    "memory_h100": (3.0e12, 2.8e12, 3.15e12, "B/s", "the same on H100 SXM; 3.35 by its data sheet"),
    "rate": (790e12, 650e12, 820e12, "FLOP/s", "bf16 at the clock that power allows; 989 by the data sheet, cuBLAS shows 716, fast.cu 777 at n = 8192"),
    "l2": (5.9e12, 5.5e12, 8.1e12, "B/s", "second-level cache to all multiprocessors; fast.cu's 777 TFLOP/s at its tile needs about 8.1e12"),
    "cublas": (580e12, 520e12, 720e12, "FLOP/s", "what cuBLAS leaves of the rate on these shapes; published cuBLAS figures at n = 2048 to 8192"),
    "gap": (1.3e-6, 0.7e-6, 1.8e-6, "s", "between two launches of a graph that depend on each other; published figures for graphs on Hopper"),
    "gap_dependent": (0.4e-6, 0.2e-6, 1.3e-6, "s", "the same with dependent launches; what begins before the end hides the rest"),
    "start": (1.0e-6, 0.6e-6, 1.5e-6, "s", "until a kernel's first bytes are there: block launch and one latency of memory"),
    "stream": (0.85, 0.75, 0.92, "", "of the memory's rate that a kernel of rows reaches"),
    "decode": (0.84, 0.80, 0.88, "", "of the memory's rate that a kernel of 8 to 67 MB reaches: short kernels seldom reach the full one"),
    "ipc": (0.8, 0.6, 0.95, "", "instructions a cycle and scheduler"),
}
MULTIPROCESSORS = 132
ISSUE_CLOCK = 1.7e9                       # of kernels that issue instructions rather than tensor work


def set_constants(values):
    """from here on; names that are not in `values` have their value of CONSTANTS"""
    global CHIPS, RATE, CLOCK, L2, CUBLAS, GAP, GAP_DEPENDENT, START, STREAM, DECODE, IPC, MMA, QUANT_WIDENING
    value = {name: values.get(name, row[0]) for name, row in CONSTANTS.items()}
    CHIPS = {"H200": value["memory_h200"], "H100": value["memory_h100"]}
    RATE, L2, CUBLAS, GAP, START = (value[name] for name in ("rate", "l2", "cublas", "gap", "start"))
    GAP_DEPENDENT, STREAM, DECODE, IPC = (value[name] for name in ("gap_dependent", "stream", "decode", "ipc"))
    CLOCK = RATE / (MULTIPROCESSORS * 4096)  # 4096 FLOP a cycle and multiprocessor: the clock at which RATE is the peak
    MMA = min(64 * L2, 520e12)               # tiles of 128 x 128 by mma.sync: 64 FLOP for a byte of L2; HMMA of 16 x 8 x 16 end near 520
    # what widening adds to the tiles of experts: 4.5 operations a weight of 128 x 64 beside 512 HMMA of 8 warps
    QUANT_WIDENING = 128 * 64 * 4.5 / 32 / 4 / IPC / ISSUE_CLOCK / (2 * 128 * 128 * 64 / (MMA / MULTIPROCESSORS))


def first_run(path):
    """its lines; the last one may be cut off"""
    rows = []
    for line in open(path, errors="replace"):
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def measured_constants(rows):
    """of a first run; `memory` is that of the chip that was there"""
    found = {row["constant"]: row["value"] for row in rows if row.get("constant") and row.get("value")}
    if "memory" in found:
        found["memory_h200"] = found["memory_h100"] = found.pop("memory")
    return {name: value for name, value in found.items() if name in CONSTANTS}


# of integer weights: operations of a lane for a weight (decode: counted in the source: making it f32, its product, its share of unpacking x)
QUANT_OPERATIONS = {"int8": 3.4, "int4": 3.7}
# the decode kernels that wait for something else than bytes
LATENCY = {"k_decode_attention": 5e-6, "k_decode_router": 4e-6, "k_decode_out": 3e-6, "k_decode_pick": 2e-6}
# instructions of a warp at the end of a tile's 64 rows, counted in the straight lines of SASS (`make gpu-report` leaves build/gpu/sm_90a.sass)
END = {"gate_up": 1030, "down": 266}
# the floors of that reading, ms: stage, shape index, H200, H100
FLOORS = {"vision": {"H200": (1.33, 3.10, 5.76), "H100": (1.33, 3.10, 5.76)},
          "prefill": {"H200": (3.39, 3.86, 5.59), "H100": (4.71, 5.18, 5.99)},
          "decode": {"H200": (0.56, 0.58, 0.61), "H100": (0.81, 0.83, 0.87)}}
FIRST = {"vision": {"H200": (3.2, 6.1, 10.8), "H100": (3.3, 6.3, 11.5)},
         "prefill": {"H200": (6.2, 11.0, 16.0), "H100": (7.4, 11.7, 16.8)},
         "decode": {"H200": (0.99, 1.03, 1.06), "H100": (1.25, 1.30, 1.34)}}
# what this script said of commit 70519bb, whose linears went by wgmma
BEFORE = {"vision": {"H200": (4.31, 6.70, 12.83), "H100": (4.37, 6.85, 13.11)},
          "prefill": {"H200": (5.25, 8.84, 11.74), "H100": (6.25, 9.10, 12.20)},
          "decode": {"H200": (0.89, 0.89, 0.89), "H100": (1.13, 1.13, 1.15)}}

REASONS = """
Where a ratio is over 1.5, the reason:

- linears of towers and prefill go by cuBLAS, which is counted with 580 TFLOP/s, biases in the product and QuickGELU in a launch of its own:
  10.2 ms for 13 passes. Kernels of our own cannot win here by counts: a tile of 128 x 256 brings 384 rows for 32768 results, which at 5.9 TB/s
  of L2 stops at 503 of 790 TFLOP/s, and rounds of tiles cost more: the column "before", 12.83 ms.
- vision and prefill, attention: 1016 and 826 instructions a loop for 128 HMMA are issue-bound, 1.3 and 0.6 ms where 0.5 and 0.3 ms of products would do.
- prefill: experts by mma.sync stop at 64 FLOP for a byte of L2 (`--gpu wgmma` does not); their last tiles are partly empty (132 rows an expert at
  1058 tokens are 2 tiles of 128); the router, in f32 without tensor cores, is 0.55 ms as norms, a product of cuBLAS and a choice.
- decode: 99 launches with 1.3 us between them are 0.13 ms, attention and router wait 9 us a block. `--gpu dependent` (programmatic dependent launch,
  weights requested before the wait, attn_out brought into L2 during attention) has the same counts of bytes and launches; of the gaps it hides at
  most 0.13 ms, and 2 us a block of attn_out's reading: 0.73 ms (1.20 to 1.31) if all of it is hidden. It is off until somebody measures it.

The floors of prefill count its last block for all rows; the code computes one row of it, so these ratios flatter by up to a sixteenth."""


def loop_counts(path):
    counts = {}
    for line in open(path):
        words = line.split()
        if words and words[0] == "sm_90a":
            counts[words[1]] = float(words[6])
    return counts


def expected_tiles(pairs, experts, rows):
    """tiles of `rows` rows when `pairs` uniform choices fall on the experts"""
    p, total, q = 1.0 / experts, 0.0, 0.0
    for x in range(1, pairs + 1):
        log = (math.lgamma(pairs + 1) - math.lgamma(x + 1) - math.lgamma(pairs - x + 1) + x * math.log(p) + (pairs - x) * math.log1p(-p))
        if log < -40:
            continue
        total += math.exp(log) * math.ceil(x / rows)
    return experts * total


def tiles_time(name, l):
    """experts by wgmma: rounds of tiles; a slice takes what the tensor cores or L2 take, a tile's end what its instructions take"""
    rows = 128
    m, n, k, experts = l["d"]
    columns = 256
    row_tiles = expected_tiles(m, 64, rows)
    column_tiles = math.ceil(n / columns)
    steps = math.ceil(k / 64)
    tensor = rows * columns * 64 * 2 / 4096 / CLOCK
    bring = (rows + columns) * 64 * 2 * MULTIPROCESSORS / L2
    end = rows / 64 * END["gate_up" if "gate_up" in name else "down"] / IPC / CLOCK
    tile = steps * max(tensor, bring) + end
    return math.ceil(row_tiles * column_tiles / MULTIPROCESSORS) * tile + 1.5e-6


def attention_time(name, l, counts):
    """blocks of 4 warps that each hold 32 queries and walk tiles of keys; a scheduler issues for one warp of each of two resident blocks"""
    queries, keys = l["d"][1], l["d"][2]
    causal = name.endswith("128")
    key_tile = 32 if causal else 64  # VK_ATTEND_KEYS: 128 HMMA of a warp either way
    row_blocks = math.ceil(queries / 128)
    blocks = l["grid"]
    steps = [math.ceil(min(keys, (b + 1) * 128) / key_tile) if causal else math.ceil(keys / key_tile) for b in range(row_blocks)]
    total = blocks / row_blocks * sum(steps)
    cycle = counts[name] / IPC / ISSUE_CLOCK
    return max(total * cycle / MULTIPROCESSORS, max(steps) * cycle)


def time_of(l, bandwidth, counts):
    name = l["name"]
    memory = START + l["bytes"] / bandwidth
    if name.startswith("gemm"):
        # a product with 64 columns in f32 (the router): no tensor cores
        return max(memory, l["flops"] / (40e12 if l["d"][1] <= 64 else CUBLAS), 4e-6)
    if name == "copy":
        return l["bytes"] / (STREAM * bandwidth) + START
    if "wgmma" in name:
        return max(memory, tiles_time(name, l))
    if name.startswith("k_experts_") and name != "k_experts_sum":
        m, n, k, experts = l["d"]
        return max(memory, expected_tiles(m, 64, 128) * 128 * n * k * 2 / MMA)
    if name.startswith("k_quant_experts_"):
        m, n, k, experts = l["d"]
        return max(memory, expected_tiles(m, 64, 128) * 128 * n * k * 2 / MMA * (1 + QUANT_WIDENING))
    if name == "k_quant_widen":
        return max(2e-6, START + l["bytes"] / L2)
    if name.startswith("k_quant"):
        issue = l["flops"] / 2 * QUANT_OPERATIONS[l["kind"]] / 32 / (4 * MULTIPROCESSORS * IPC * ISSUE_CLOCK)
        return max(START + l["bytes"] / (DECODE * bandwidth), START + issue, LATENCY.get(name.replace("quant", "decode"), 0.0))
    if name.startswith("k_attention_head"):
        return max(memory, attention_time(name, l, counts))
    if name.startswith("k_decode"):
        return max(START + l["bytes"] / (DECODE * bandwidth), LATENCY.get(name, 0.0))
    return max(2e-6, START + l["bytes"] / (STREAM * bandwidth))


def read(path, kind="bf16"):
    launches = []
    for line in open(path):
        w = line.split()
        launches.append({"kind": kind, "shape": w[0], "stage": w[1], "part": w[2], "name": w[3], "calls": int(w[4]), "grid": int(w[5]), "threads": int(w[6]),
                         "d": [int(x) for x in w[8:12]], "flops": float(w[12]), "bytes": float(w[13])})
    return launches


def print_integers(paths, counts):
    """decode and prefill with weights of 8 and 4 bits, of blocks and head"""
    every = {kind: read(path, kind) for kind, path in paths.items()}
    last = every["bf16"][-1]["shape"]
    print("\nInteger weights, of blocks and head, the same shape: 8.5 and 4.5 bits a weight with their scales (bytes of one launch's weights / weights; one scale\n"
          "in bf16 for 32). A decode kernel takes what its bytes take, or the operations that make integers f32 (%.1f and %.1f a weight), if that is more.\n"
          "Dense linears of prefill are widened through the second-level cache (k_quant_widen, at L2's rate); experts go by mma.sync on every chip.\n"
          % (QUANT_OPERATIONS["int8"], QUANT_OPERATIONS["int4"]))
    print("| stage | weights | kernel | calls | GB | bytes a weight | H200 ms | H100 ms |")
    print("|---|---|---|---|---|---|---|---|")
    totals = {}
    for kind, launches in every.items():
        for stage in ("prefill", "decode"):
            rows = {}
            for l in launches:
                if l["shape"] != last or l["stage"] != stage:
                    continue
                row = rows.setdefault(l["name"], [0, 0.0, 0.0, 0.0, 0.0])
                weights = l["d"][1] * l["d"][2] * max(1, l["d"][3])
                row[0] += l["calls"]
                row[1] += l["calls"] * l["bytes"]
                row[2] += l["calls"] * weights
                row[3] += l["calls"] * (time_of(l, CHIPS["H200"], counts) + GAP) * 1e3
                row[4] += l["calls"] * (time_of(l, CHIPS["H100"], counts) + GAP) * 1e3
            totals[kind, stage] = [sum(r[i] for r in rows.values()) for i in (1, 3, 4)]
            for name, row in rows.items():
                if not name.startswith("k_quant"):
                    continue
                each = "-" if name == "k_quant_widen" else "%.3f" % (row[1] / row[2])
                print("| %s | %s | %s | %d | %.3f | %s | %.4f | %.4f |" % (stage, kind, name, row[0], row[1] * 1e-9, each, row[3], row[4]))
    print("\n| stage | weights | GB | H200 ms | H100 ms | of bf16 |")
    print("|---|---|---|---|---|---|")
    for (kind, stage), (size, h200, h100) in sorted(totals.items(), key=lambda item: item[0][1]):
        print("| %s | %s | %.3f | %.3f | %.3f | %.2f, %.2f |" % (stage, kind, size * 1e-9, h200, h100, h200 / totals["bf16", stage][1],
                                                                 h100 / totals["bf16", stage][2]))


# word of --gpu: the stage that it must shorten, by which factor to stay, and the code that goes if it does not
WAYS = {
    "tuned": ("vision", 1.02, "vk_lt_tune and its rounds"),
    "wgmma": ("prefill", 1.03, "wgmma.h, wgmma_launch.h, check_experts.h"),
    "dependent": ("decode", 1.03, "LAUNCH_STEP's attribute, vk_let_next_begin"),
}
# what can decide between two ways; the others move both alike
DECIDING = ("l2", "cublas", "rate", "gap", "gap_dependent", "ipc", "decode")
TUNED = (1.0, 1.08)  # the fastest of 8 algorithms of cuBLAS, over the first one: none known; up to 8 % on shapes of one wave and a half


def way_ms(word, files, counts, chip, shape):
    """the stage of WAYS by that word; None: the way as it is by default"""
    stage = WAYS[word][0] if word in WAYS else word
    launches = files.get(word, files["default"])
    mine = [l for l in launches if l["stage"] == stage and l["shape"] == shape]
    if word == "dependent":
        return sum(l["calls"] * (time_of(l, CHIPS[chip], counts) + GAP_DEPENDENT) for l in mine) * 1e3
    return stage_ms(launches, counts, chip, stage, shape)


def predicted_gains(files, counts, shape, values):
    """word: default / way, on H200, as the constants are and over all corners of their ranges"""
    gains = {}
    for word, (stage, _, _) in WAYS.items():
        if word == "tuned":
            part = sum(l["calls"] * time_of(l, CHIPS["H200"], counts) for l in files["default"]
                       if l["stage"] == stage and l["shape"] == shape and l["name"].startswith("gemm")) * 1e3
            whole = way_ms(stage, files, counts, "H200", shape)
            gains[word] = tuple(whole / (whole - part + part / gain) for gain in ((TUNED[0] + TUNED[1]) / 2,) + TUNED)
            continue
        all_gains = []
        for corner in itertools.product((1, 2), repeat=len(DECIDING)):
            set_constants(dict(values, **{name: CONSTANTS[name][end] for name, end in zip(DECIDING, corner)}))
            all_gains.append(way_ms(stage, files, counts, "H200", shape) / way_ms(word, files, counts, "H200", shape))
        set_constants(values)
        gains[word] = (way_ms(stage, files, counts, "H200", shape) / way_ms(word, files, counts, "H200", shape), min(all_gains), max(all_gains))
    return gains


def print_ways(files, counts, shape, values):
    print("\nWhat each word of `--gpu` must win to stay: the stage's time by default over its time with the word, the largest shape on H200; the range is over\n"
          "all corners of the constants' ranges (%s). A first run decides (`make gpu-choose`):\n" % ", ".join(DECIDING))
    print("| word | stage | must win | predicted | range | can win | goes if it does not |")
    print("|---|---|---|---|---|---|---|")
    for word, (now, least, most) in predicted_gains(files, counts, shape, values).items():
        stage, must, code = WAYS[word]
        print("| %s | %s | %.2f | %.2f | %.2f to %.2f | %s | %s |" % (word, stage, must, now, least, most, "yes" if most >= must else "no", code))


def choose(path, files, counts, shape, values):
    """what a first run says of each word. Ways run with few blocks; what does not belong to a block, such as the head of a decode step, is known from
    the default with all of them, and counts once"""
    times, blocks = {}, {}
    for row in first_run(path):
        if "stage_ns" in row and row.get("stage_shape") == shape:
            key = (row["case"].split()[1], row["way"], row["stage"])
            times.setdefault(key, []).append(row["stage_ns"])
            blocks[key[0]] = row["blocks"]
    mean = {key: sum(each) / len(each) for key, each in times.items()}
    print("%-11s %-8s %9s %9s %9s  %s" % ("word", "stage", "must win", "predicted", "measured", "so"))
    for word, (now, _, _) in predicted_gains(files, counts, shape, values).items():
        stage, must, code = WAYS[word]
        whole, few, mine = (mean.get(key) for key in (("all", "default", stage), ("few", "default", stage), ("few", word, stage)))
        if not few or not mine or (not whole and stage != "vision"):
            print("%-11s %-8s %9.2f %9.2f %9s  not measured: stays as it is" % (word, stage, must, now, "-"))
            continue
        gain = few / mine
        if whole and stage != "vision" and blocks["all"] > blocks["few"]:
            gain = whole / (whole - (few - mine) * blocks["all"] / blocks["few"])
        print("%-11s %-8s %9.2f %9.2f %9.2f  %s" % (word, stage, must, now, gain,
                                                    "becomes the default" if gain >= must else "can go: " + code))
    return 0


def stage_ms(launches, counts, chip, stage, shape):
    return sum(l["calls"] * (time_of(l, CHIPS[chip], counts) + GAP) * 1e3 for l in launches if l["stage"] == stage and l["shape"] == shape)


def print_sensitivities(launches, counts, shape, values):
    """what each constant alone moves, from end to end of its range"""
    print("\nWhat one constant moves, the others as they are: ratios to the floor of the largest shape on H200, at the least and the most of its range\n"
          "(`make gpu-choose FILE=..` puts a first run's constants in their place):\n")
    print("| constant | value | range | unit | vision | prefill | decode | what it is; the range's source |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (value, least, most, unit, words) in CONSTANTS.items():
        cells = []
        for stage in ("vision", "prefill", "decode"):
            ends = []
            for end in (least, most):
                set_constants(dict(values, **{name: end}))
                ends.append("%.2f" % (stage_ms(launches, counts, "H200", stage, shape) / FLOORS[stage]["H200"][-1]))
            cells.append(ends[0] if ends[0] == ends[1] else " to ".join(ends))
        print("| %s | %.3g | %.3g to %.3g | %s | %s | %s |" % (name, values.get(name, value), least, most, unit, " | ".join(cells), words))
    set_constants(values)


def main():
    arguments = sys.argv[1:]
    values = {}
    if "--constants" in arguments:
        at = arguments.index("--constants")
        values = measured_constants(first_run(arguments[at + 1]))
        del arguments[at:at + 2]
    chosen = None
    if "--choose" in arguments:
        at = arguments.index("--choose")
        chosen = arguments[at + 1]
        del arguments[at:at + 2]
    set_constants(values)
    files = arguments
    launches, counts = read(files[0]), loop_counts(files[1])
    shapes = []
    for l in launches:
        if l["shape"] not in shapes:
            shapes.append(l["shape"])
    ways = {"default": launches}
    if len(files) == 5:
        ways.update(wgmma=read(files[4]))
    if chosen:
        return choose(chosen, ways, counts, shapes[-1], values)
    kernels, sums = {}, {}
    for l in launches:
        for chip, bandwidth in CHIPS.items():
            ms = l["calls"] * (time_of(l, bandwidth, counts) + GAP) * 1e3
            key = (l["stage"], l["name"])
            row = kernels.setdefault(key, {}).setdefault(l["shape"], {"calls": 0, "flops": 0.0, "bytes": 0.0})
            row[chip] = row.get(chip, 0.0) + ms
            sums.setdefault(l["stage"], {}).setdefault(l["shape"], {}).setdefault(chip, 0.0)
            sums[l["stage"]][l["shape"]][chip] += ms
        row["calls"] += l["calls"]
        row["flops"] += l["calls"] * l["flops"]
        row["bytes"] += l["calls"] * l["bytes"]
    print("# What the GPU path should take, from counts\n\n"
          "`make gpu-predict` made this from the launches of molmoe-1b in bf16 (top_k 8, 16 blocks) on an emulated sm_90a with 132 multiprocessors, from\n"
          "counts of SASS, and from the constants in `tests/bench/gpu/predict.py`. Nothing here was measured on a GPU. Times are ms. Floors and the first\n"
          "reading are those of the reading by roofline of commit b7e87bf.\n")
    print("| stage | shape (views/tokens) | H200 floor | first reading | before | now | ratio | H100 floor | first reading | before | now | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for stage in ("vision", "prefill", "decode"):
        for i, shape in enumerate(shapes):
            cells = []
            for chip in CHIPS:
                floor, now = FLOORS[stage][chip][i], sums[stage][shape][chip]
                cells += ["%.2f" % floor, "%.2f" % FIRST[stage][chip][i], "%.2f" % BEFORE[stage][chip][i], "%.2f" % now, "**%.2f**" % (now / floor)]
            print("| %s | %s | %s |" % (stage, shape, " | ".join(cells)))
    print(REASONS)
    print("\nThe largest shape, kernel by kernel (calls, GFLOP and GB of all calls, ms with the gaps between launches):\n")
    print("| stage | kernel | calls | GFLOP | GB | H200 ms | H100 ms |")
    print("|---|---|---|---|---|---|---|")
    for (stage, name), by_shape in kernels.items():
        row = by_shape.get(shapes[-1])
        if row:
            print("| %s | %s | %d | %.1f | %.3f | %.4f | %.4f |" % (stage, name, row["calls"], row["flops"] * 1e-9, row["bytes"] * 1e-9, row["H200"],
                                                                   row["H100"]))
    print_sensitivities(launches, counts, shapes[-1], values)
    if len(files) == 5:
        print_ways(ways, counts, shapes[-1], values)
        print_integers({"bf16": files[0], "int8": files[2], "int4": files[3]}, counts)
    return 0


set_constants({})
if __name__ == "__main__":
    sys.exit(main())
