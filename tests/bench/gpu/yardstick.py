#!/usr/bin/env python3
"""yardstick.py: what torch's libraries take for the shapes of first_gpu, where torch is: one JSON line each, median of 30 after a warm-up."""
import json
import torch
import torch.nn.functional as F

SHAPES = ((3, 482), (7, 1058), (13, 1922))
LINEARS = (("vision", 3072, 1024), ("vision", 1024, 1024), ("vision", 4096, 1024), ("vision", 1024, 4096), ("prefill", 6144, 2048), ("prefill", 2048, 2048))


def timed(work):
    work()
    torch.cuda.synchronize()
    times = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[15] * 1e6


def say(shape, stage, work):
    print(json.dumps({"case": "yardstick", "status": "OK", "stage": stage, "yardstick_shape": shape, "yardstick_ns": timed(work)}), flush=True)


for views, tokens in SHAPES:
    for stage, n, k in LINEARS:
        m = 577 * views if stage == "vision" else tokens
        x, w = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
        say("%dx%dx%d" % (m, n, k), stage, lambda: F.linear(x, w))
    for stage, batch, rows, width, causal in (("vision", views, 577, 64, False), ("prefill", 1, tokens, 128, True)):
        q, k, v = (torch.randn(batch, 16, rows, width, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        say("%dx%dx16x%d" % (batch, rows, width), stage, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
    if hasattr(torch, "_grouped_mm"):
        pairs = tokens * 8
        x, w = torch.randn(pairs, 2048, device="cuda", dtype=torch.bfloat16), torch.randn(64, 2048, 2048, device="cuda", dtype=torch.bfloat16)
        ends = torch.arange(1, 65, device="cuda", dtype=torch.int32) * pairs // 64
        say("%dx2048x2048 of 64" % pairs, "prefill", lambda: torch._grouped_mm(x, w, offs=ends.to(torch.int32)))
