"""vlmprof.torch next to torch.profiler: the times of the same modules in the same requests, and the closure. torch_stages.py CHECKPOINT [REQUESTS]

Goals: within 2 %, closure at least 0.98. Prints a row for each module; needs a quiet machine. The profiler's ranges are inside our stamps: what entering
and leaving one takes is in our times and not in theirs, is measured on empty ranges, and matters where a module takes less than a millisecond."""
import statistics
import sys
import time

import torch
import transformers
from PIL import Image

import vlmprof.torch

transformers.logging.set_verbosity_error()
model = transformers.AutoModelForImageTextToText.from_pretrained(sys.argv[1]).eval()
processor = transformers.AutoProcessor.from_pretrained(sys.argv[1])
content = [{"type": "image"}, {"type": "text", "text": "What animal is this?"}]
text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
inputs = {key: value for key, value in processor(images=[Image.open("samples/cat.jpg")], text=[text], return_tensors="pt").items() if torch.is_tensor(value)}
with vlmprof.torch.stages(model) as stages:
    # ranges inside our stamps, around the same modules
    ranges = {}
    for stage, (first, last) in stages._modules.items():
        first.register_forward_pre_hook(lambda *_, stage=stage: ranges.setdefault(stage, []).append(torch.profiler.record_function(stage).__enter__()))
        last.register_forward_hook(lambda *_, stage=stage: ranges[stage].pop().__exit__(None, None, None), prepend=True)
    model.generate(**inputs, max_new_tokens=8, do_sample=False)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
            model.generate(**inputs, max_new_tokens=8, do_sample=False)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as empty:
        since = time.perf_counter_ns()
        for _ in range(1000):
            with torch.profiler.record_function("empty"):
                pass
        all_ns = time.perf_counter_ns() - since
range_ns = all_ns / 1000 - next(row.cpu_time_total for row in empty.key_averages() if row.key == "empty")
theirs = {row.key: row.cpu_time_total * 1000 for row in profile.key_averages() if row.key in stages._modules}
ours = {name: sum(one.stages[name] for one in stages.requests) for name in ("vit", "connector")}
if "visual" in vlmprof.torch.FAMILIES[type(model).__name__].connector:
    ours["vit"] += ours["connector"]  # the profiler's range of the tower has the connector inside
calls = {row.key: row.count for row in profile.key_averages() if row.key in stages._modules}
for name in ("vit", "connector"):
    without = ours[name] - range_ns * calls[name]
    print(f"{name:10} vlmprof {ours[name] / 1e6:9.3f} ms  torch.profiler {theirs[name] / 1e6:9.3f} ms  {100 * (ours[name] / theirs[name] - 1):+.2f} %, "
          f"{100 * (without / theirs[name] - 1):+.2f} % without its {calls[name]} ranges of {range_ns / 1e3:.1f} us")
print(f"closure {statistics.median(one.closure for one in stages.requests):.4f}")
