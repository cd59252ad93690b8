#!/usr/bin/env python3
"""A small PyTorch model under torch.profiler: its Chrome trace, and key_averages() of the same run, for tests/test_profile.c.

usage: make_torch_trace.py OUT_DIR        (needs torch, CPU only)

OUT_DIR/torch_cpu.pt.trace.json   the trace as torch writes it
OUT_DIR/torch_cpu.csv             key_averages():                        name, calls, self_cpu_us, cpu_us, cpu_bytes, self_cpu_bytes
OUT_DIR/torch_cpu_shapes.csv      key_averages(group_by_input_shape=True), with the shapes as the last column
OUT_DIR/torch_cpu.txt             key_averages().table(sort_by="self_cpu_time_total", row_limit=12)
"""
import csv
import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.hidden = torch.nn.Linear(8 * 64, 32)
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x):
        with record_function("stage::vision"):
            x = torch.relu(self.vision(x)).flatten(1)
        with record_function("stage::head"):
            return self.head(torch.nn.functional.gelu(self.hidden(x))).log_softmax(-1)


def rows(averages, shapes):
    for event in averages:
        row = [event.key, event.count, f"{event.self_cpu_time_total:.3f}", f"{event.cpu_time_total:.3f}",
               event.cpu_memory_usage, event.self_cpu_memory_usage]
        yield row + [str(event.input_shapes)] if shapes else row


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                 schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as profiler:
        for _ in range(4):
            loss = net(torch.randn(2, 3, 8, 8)).sum()  # one forward and backward pass a step
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(os.path.join(out, "torch_cpu.pt.trace.json"))
    for name, shapes in (("torch_cpu.csv", False), ("torch_cpu_shapes.csv", True)):
        with open(os.path.join(out, name), "w", newline="") as f:
            writer = csv.writer(f, lineterminator="\n")
            writer.writerow(["name", "calls", "self_cpu_us", "cpu_us", "cpu_bytes", "self_cpu_bytes"] + ["shapes"] * shapes)
            writer.writerows(rows(profiler.key_averages(group_by_input_shape=shapes), shapes))
    with open(os.path.join(out, "torch_cpu.txt"), "w") as f:
        f.write(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))


if __name__ == "__main__":
    main()
