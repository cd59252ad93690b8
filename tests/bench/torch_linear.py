"""torch_linear.py: PyTorch's linear layer at the shapes that bench_marks asks for, in its turn of each round.
Reads lines `m n k` from stdin, answers with the nanoseconds of one torch.nn.functional.linear in bf16, its weights read from a pool of
512 MiB behind those of the product before, as the program that asks does it."""
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(1)

torch.set_num_threads(int(sys.argv[1]))
POOL_VALUES = 256 << 20
pool = torch.zeros(POOL_VALUES, dtype=torch.bfloat16)
pool.fill_(0.01)
x = torch.randn(1058 * 4096).to(torch.bfloat16)
print(torch.__version__, flush=True)
at = 0
with torch.inference_mode():
    for line in sys.stdin:
        m, n, k = (int(word) for word in line.split())
        if at + n * k > POOL_VALUES:
            at = 0
        weights, rows = pool[at:at + n * k].view(n, k), x[:m * k].view(m, k)
        at += n * k
        start = time.perf_counter_ns()
        F.linear(rows, weights)
        print(time.perf_counter_ns() - start, flush=True)
