"""vlmprof.torch next to torch.profiler: ranges around the same modules in the same requests of eight made models. torch_stages.py [REQUESTS [MODEL..]]

A row a model: median request, stages against ranges, closure, and the ratio of the medians of requests with stages() (entering it included) and without,
which alternate in an order drawn anew. Goals: 1 % (connector 2 %), 0.99, 2 %. The ranges are inside our stamps, so entering and leaving one, 0.1 ms, counts."""
import random
import statistics
import sys
import time

import torch
import transformers as T

import vlmprof.torch

T.logging.set_verbosity_error()
torch.set_num_threads(1)
random_of, square = torch.rand, {"image_sizes": torch.tensor([[336, 336]])}
TEXT = dict(hidden_size=1024, intermediate_size=1536, num_hidden_layers=5, num_attention_heads=16, num_key_value_heads=4, head_dim=64, vocab_size=4096, bos_token_id=1, pad_token_id=0)
SEEN = dict(hidden_size=384, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=6, image_size=336, patch_size=14)
MADE = {  # vision_config, text_config, other members of the config, inputs if they are not one picture of 336 px
    "Llava": (T.CLIPVisionConfig(**SEEN), "llama", {}, {}),
    "LlavaOnevision": (T.SiglipVisionConfig(**SEEN), "qwen2", {"image_grid_pinpoints": [[336, 336]]}, {"pixel_values": random_of(1, 2, 3, 336, 336), **square}),
    "SmolVLM": (SEEN, "llama", {"scale_factor": 2}, {"pixel_values": random_of(1, 3, 3, 336, 336)}),
    "Qwen2_5_VL": (dict(depth=10, hidden_size=384, intermediate_size=1536, num_heads=6, out_hidden_size=1024, fullatt_block_indexes=[4, 9]),
                   {**TEXT, "rope_parameters": {"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 1e6}}, {},
                   {"pixel_values": random_of(1024, 1176), "image_grid_thw": torch.tensor([[1, 32, 32]])}),
    "InternVL": ({**SEEN, "image_size": [336, 336], "patch_size": [14, 14]}, "qwen2", {}, {"pixel_values": random_of(3, 3, 336, 336)}),
    "PaliGemma": ({**SEEN, "model_type": "siglip_vision_model"}, "gemma", {"projection_dim": 1024}, {"pixel_values": random_of(3, 3, 336, 336)}),
    "Gemma3": (SEEN, TEXT, {"mm_tokens_per_image": 144}, {"pixel_values": random_of(3, 3, 336, 336)}),
    "Mistral3": ({**SEEN, "patch_size": 16, "model_type": "pixtral"}, "mistral", {"spatial_merge_size": 1}, square)}


def made(name):
    """The model and its inputs, with as many placeholders as the connector gives tokens."""
    vision, text, config, more = MADE[name]
    text = text if isinstance(text, dict) else {**TEXT, "model_type": text}
    model = getattr(T, f"{name}ForConditionalGeneration")(getattr(T, f"{name}Config")(vision_config=vision, text_config=text, image_token_id=3, **config)).eval()
    with torch.no_grad():
        tokens = model.get_image_features(**{"pixel_values": random_of(1, 3, 336, 336), **more}).pooler_output
    ids = torch.tensor([[1] + [3] * sum(one[..., 0].numel() for one in tokens) + list(range(5, 45))])
    types = {"Gemma3": "token_type_ids", "PaliGemma": "token_type_ids", "Qwen2_5_VL": "mm_token_type_ids"}.get(name)
    return model, {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": random_of(1, 3, 336, 336), **more, **({types: (ids == 3).long()} if types else {})}


for name in sys.argv[2:] or MADE:
    torch.manual_seed(1)
    (model, inputs), requests, times, hooks = made(name), int(sys.argv[1]) if len(sys.argv) > 1 else 10, {False: [], True: []}, []
    how, stages, ranges = dict(inputs, max_new_tokens=8, min_new_tokens=8, do_sample=False), vlmprof.torch.stages(model), {}
    for stage, (module, _) in stages._modules.items():
        hooks += [module.register_forward_pre_hook(lambda *_, stage=stage: ranges.update({stage: torch.profiler.record_function(stage).__enter__()})),
                  module.register_forward_hook(lambda *_, stage=stage: ranges[stage].__exit__(None, None, None), prepend=True)]
    with stages, torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(requests + 1):
            model.generate(**how)
    for hook in hooks:
        hook.remove()
    for timed in (one for _ in range(3 * requests) for one in random.sample([False, True], 2)):
        began = time.perf_counter_ns()
        with vlmprof.torch.stages(model) if timed else torch.no_grad():
            model.generate(**how)
        times[timed].append(time.perf_counter_ns() - began)
    ours = {stage: sum(one.stages[stage] for one in stages.requests) / 1000 for stage in ("vit", "connector", "prefill")}
    ours["vit"] += ours["connector"] if name.startswith("Qwen") else 0  # the range of its tower has the merger inside
    row = f"{name:14} {statistics.median(times[False]) / 1e6:5.0f} ms"
    for stage, module, every in (("vit", "vit", 1), ("connector", "connector", 1), ("prefill", "language", 8)):
        theirs = sum([one.cpu_time_total for one in profile.events() if one.name == module][::every])
        row += f"  {stage} {100 * (ours[stage] / theirs - 1):+.2f} %"
    print(f"{row}  closure {min(1 - one.unaccounted_ns / one.total_ns for one in stages.requests[1:]):.4f}  overhead {100 * (statistics.median(times[True]) / statistics.median(times[False]) - 1):+.2f} %", flush=True)
