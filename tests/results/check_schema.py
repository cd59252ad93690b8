"""check_schema.py SCHEMA FOLDER: every result file below FOLDER fits the schema, but those below FOLDER/bad do not, and the schema is one of draft 2020-12
whose properties are all described. Prints what is wrong; exits with 77 without jsonschema. test_schema writes the files."""
import json
import sys
from pathlib import Path

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)

# the reference's keys, from a file of its combined profiler: of the file, of a row, and of the statistics under both names
FILE = """tier tier_range max_crops selected_crops_distribution selected_crops_mean selected_crops_std target_vision_tokens_mean target_vision_tokens_std
 actual_vision_tokens_mean actual_vision_tokens_std top_k num_active_blocks num_total_blocks active_block_indices num_samples accuracy accuracy_std latency_stats
 aggregate_stats per_sample_results"""
ROW = """sample_id tier top_k num_active_blocks output_tokens content_tokens ends_with_eos actual_image_size actual_num_crops actual_tiling target_vision_tokens
 actual_vision_tokens actual_text_tokens total_sequence_length accuracy pred metadata T_vision_total T_LLM_prefill T_LLM_decode T_total T_decode_per_token
 T_decode_per_step"""
TIMES = "T_vision_total T_LLM_prefill T_LLM_decode T_total T_decode_per_token".split()


def lacks(result):
    yield from set(FILE.split()) - set(result)
    yield from set(ROW.split()) - set(result["per_sample_results"][0])
    for statistics in result["latency_stats"], result["aggregate_stats"]:
        yield from {f"{time}_{what}" for time in TIMES for what in ("mean", "std", "p50", "p95", "p99")} - set(statistics)
        yield from {"mean", "std", "p50", "p95", "p99", "count"} - set(statistics["T_decode_per_step_stats"]["pos_1"])


def undescribed(schema, path="#"):
    for name, part in schema.items() if isinstance(schema, dict) else ():
        if name == "properties":
            yield from (f"{path}/{key} has no description" for key, value in part.items() if "description" not in value)
        yield from undescribed(part, f"{path}/{name}")


schema = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
Draft202012Validator.check_schema(schema)
wrong = list(undescribed(schema))
files = sorted(Path(sys.argv[2]).rglob("*_imgsize*.json"))
for file in files:
    errors = [f"{error.json_path}: {error.message:.80}" for error in Draft202012Validator(schema).iter_errors(json.loads(file.read_text(encoding="utf-8")))]
    if (file.parent.name == "bad") != bool(errors):
        wrong.append(f"{file}: {errors[0] if errors else 'passes'} (a new key is a row of cli/results/fields.h)")
wrong += [f"{name} is a key of the reference's files" for name in lacks(json.loads(min((Path(sys.argv[2]) / "out0").glob("*_imgsize*.json")).read_text(encoding="utf-8")))]
print("\n".join(wrong[:20]))
sys.exit(bool(wrong) or len(files) < 20)
