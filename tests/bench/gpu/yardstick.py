#!/usr/bin/env python3
"""yardstick.py: what torch's libraries take for the shapes of first_gpu, where torch is: one JSON line each, median of 30 after a warm-up. Operands of
linears are as cold as those of first_gpu: sets of them, in turn, over three times the second-level cache. For trials: with FIRST_GPU_TINY=1 the small shapes of `first_gpu --tiny`, on the CPU where torch finds no GPU."""
import json
import os
import sys
import time

import torch
import torch.nn.functional as F

TINY = bool(os.environ.get("FIRST_GPU_TINY"))
DEVICE = "cpu" if TINY and not torch.cuda.is_available() else "cuda"
# (images, tokens); (stage, columns, depth); (stage, heads, head_dim, causal); experts of width and depth, each token's choices
SHAPES = ((1, 40),) if TINY else ((3, 482), (7, 1058), (13, 1922))
LINEARS = (("vision", 3072, 1024), ("vision", 1024, 1024), ("vision", 4096, 1024), ("vision", 1024, 4096), ("prefill", 6144, 2048), ("prefill", 2048, 2048))
HEADS = 2 if TINY else 16
DIM, WIDTH = (160, 320) if TINY else (1024, 2048)
EXPERTS, TOP_K = 64, 8


def timed(work):
    """work(i): by set i of its operands, if it has several"""
    for i in range(16):
        work(i)
    times = []
    for i in range(3 if TINY else 30):
        if DEVICE == "cpu":
            since = time.perf_counter()
            work(i)
            times.append((time.perf_counter() - since) * 1e3)
            continue
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work(i)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2] * 1e6


def say(shape, stage, work):
    print(json.dumps({"case": "yardstick", "status": "OK", "stage": stage, "yardstick_shape": shape, "yardstick_ns": timed(work)}), flush=True)


def drawn(*shape):
    return torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16)


def linear(m, n, k, stage):
    cache = 0 if DEVICE == "cpu" else torch.cuda.get_device_properties(0).L2_cache_size
    sets = min(16, 3 * cache // (2 * (m * n + m * k + n * k)) + 1)
    x, w = drawn(sets, m, k), drawn(sets, n, k)
    say("%dx%dx%d" % (m, n, k), stage, lambda i: F.linear(x[i % sets], w[i % sets]))


def attention(batch, rows, head_dim, causal, stage):
    q, k, v = (drawn(batch, HEADS, rows, head_dim) for _ in range(3))
    say("%dx%dx%dx%d" % (batch, rows, HEADS, head_dim), stage, lambda _: F.scaled_dot_product_attention(q, k, v, is_causal=causal))


def experts(tokens):
    """both products, the activation between them and the sum over a token's choices, as first_gpu's case has them"""
    pairs = tokens * TOP_K
    x, up, down = drawn(pairs, WIDTH), drawn(EXPERTS, WIDTH, 2 * DIM), drawn(EXPERTS, DIM, WIDTH)
    ends = (torch.arange(1, EXPERTS + 1, device=DEVICE) * pairs // EXPERTS).to(torch.int32)

    def work(_):
        hidden = torch._grouped_mm(x, up, offs=ends)
        hidden = F.silu(hidden[:, :DIM]) * hidden[:, DIM:]
        torch._grouped_mm(hidden, down, offs=ends).view(tokens, TOP_K, WIDTH).sum(1)

    say("%dx%dx%d of %d" % (pairs, 2 * DIM, WIDTH, EXPERTS), "prefill", work)


def main():
    for views, tokens in SHAPES:
        for stage, n, k in LINEARS:
            linear(150 if TINY else 577 * views if stage == "vision" else tokens, n // 8 if TINY else n, k // 4 if TINY else k, stage)
        attention(views, 130 if TINY else 577, 64, False, "vision")
        attention(1, 130 if TINY else tokens, 128, True, "prefill")
        if hasattr(torch, "_grouped_mm"):
            experts(tokens)


if __name__ == "__main__":
    sys.exit(main())
