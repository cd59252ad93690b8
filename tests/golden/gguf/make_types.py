"""Writes types.gguf, a row pair of each type with random bits, and types.npy, their values by the gguf package's dequantize.

    python3 make_types.py OUT_DIR

Needs gguf 0.19.0 and numpy. Scales are random finite halves: blocks hold what no quantiser would write, too."""
import os
import sys

import gguf
import numpy as np

ROWS, COLUMNS = 2, 512
HALVES = {"Q8_0": [0], "Q5_0": [0], "Q4_0": [0], "Q4_K": [0, 2], "Q6_K": [208]}  # where a block has scales
rng = np.random.default_rng(27)
out = sys.argv[1]
writer = gguf.GGUFWriter(os.path.join(out, "types.gguf"), "llama")
values = []
for name in ("F32", "F16", "BF16", "Q8_0", "Q5_0", "Q4_0", "Q4_K", "Q6_K"):
    kind = gguf.GGMLQuantizationType[name]
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    if name in HALVES:
        raw = rng.integers(0, 256, (ROWS * COLUMNS // block, block_bytes), dtype=np.uint8)
        for at in HALVES[name]:
            halves = (rng.standard_normal(len(raw)) * 10.0 ** rng.integers(-6, 3, len(raw))).astype(np.float16)
            raw[:, at:at + 2] = halves.view(np.uint8).reshape(-1, 2)
        raw = raw.reshape(ROWS, -1)
    else:
        plain = (rng.standard_normal((ROWS, COLUMNS)) * 10.0 ** rng.integers(-8, 4, (ROWS, COLUMNS))).astype(np.float32)
        raw = {"F32": plain, "F16": plain.astype(np.float16)}.get(name)
        if raw is None:
            raw = gguf.quants.quantize(plain, kind)
    writer.add_tensor(name.lower(), raw, raw_dtype=kind)
    values.append(gguf.quants.dequantize(raw, kind).astype(np.float32).reshape(ROWS, COLUMNS))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
np.save(os.path.join(out, "types.npy"), np.stack(values))
