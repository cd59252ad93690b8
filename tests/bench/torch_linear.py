"""torch_linear.py: PyTorch's linear layer at the shapes that bench_marks asks for, in its turn of each round.
Reads lines `m n k` from stdin, answers with the nanoseconds of one torch.nn.functional.linear in bf16 (weights rotate through 512 MB)."""
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(1)

torch.set_num_threads(int(sys.argv[1]))
print(torch.__version__, flush=True)
weights, turn = {}, {}
with torch.inference_mode():
    for line in sys.stdin:
        m, n, k = (int(word) for word in line.split())
        key = (n, k)
        if key not in weights:
            weights[key] = [torch.randn(n, k).to(torch.bfloat16) for _ in range(max(1, min(32, (512 << 20) // (2 * n * k))))]
            turn[key] = 0
            F.linear(torch.randn(m, k).to(torch.bfloat16), weights[key][-1])
        x = torch.randn(m, k).to(torch.bfloat16)
        w = weights[key][turn[key] % len(weights[key])]
        turn[key] += 1
        start = time.perf_counter_ns()
        F.linear(x, w)
        print(time.perf_counter_ns() - start, flush=True)
        if len(weights) > 6:  # memory: the shapes come in order, round by round
            weights.clear()
