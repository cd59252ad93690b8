"""vlmprof.conform: a stack with one planted difference is reported with the stage of that difference; stacks that only round pass; damaged files are errors.
The other stacks are copies of a golden checkpoint with one change, and dumps with one changed file."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import check, done, equal, refused, skip

try:
    import numpy as np
except ImportError:
    skip("conform", "no numpy")
    done("conform")
from vlmprof import conform

work = Path(tempfile.mkdtemp(dir=sys.argv[1]))
GOLDEN = "tests/golden/othermodels/{}/checkpoint"
LLAVA = GOLDEN.format("llava")
PICTURE = "tests/golden/othermodels/images/mix-200x150.png"
dumps = 0


def dump(model, *more, picture=PICTURE, prompt="What is this?", weights="fp32"):
    """A dump of `vlmprof run`; returns its folder."""
    global dumps
    dumps += 1
    folder = work / f"dump{dumps}"
    said = subprocess.run([os.environ["VLMPROF"], "run", *([picture] if picture else []), "-p", prompt, "--model", str(model), "--weights", weights, "--cold",
                           "--ignore_eos", "--max_new_tokens", "6", "--quiet", "--dump", str(folder), *more], capture_output=True, check=False)
    check("vlmprof run --dump", said.returncode == 0, said.stderr.decode())
    return folder


def parts_at(name, ours, theirs, stage, **more):
    result = conform.compare(ours, theirs, **more)
    equal(name, result.first_difference, stage)
    for one in result.stages:
        good = {"equal": one.distance == 0, "rounding": one.distance is not None and one.distance <= one.bound, "unseen": one.distance is None,
                "parted": one.distance is None or one.bound is None or one.distance > one.bound}[one.verdict]
        check(f"{name}: {one.stage} is consistent", good, one)
    return result


def copy_of(golden, changed):
    """A copy of a checkpoint whose file `changed` can be written."""
    folder = Path(tempfile.mkdtemp(dir=work))
    for path in Path(golden).iterdir():
        if path.name == changed:
            shutil.copy(path, folder)
            (folder / path.name).chmod(0o644)
        else:
            (folder / path.name).symlink_to(path.resolve())
    return folder


def change_weights(golden, tensor, how):
    """A copy with one bf16 tensor changed; None: all tensors."""
    folder = copy_of(golden, "model.safetensors")
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    header = int.from_bytes(data[:8], "little")
    offsets = [0, len(data) - 8 - header] if tensor is None else json.loads(data[8:8 + header])[tensor]["data_offsets"]
    first, last = 8 + header + offsets[0], 8 + header + offsets[1]
    values = np.frombuffer(bytes(data[first:last]), np.uint16).copy()
    data[first:last] = how(values).astype(np.uint16).tobytes()
    path.write_bytes(data)
    return folder


def swap_halves(values):
    return np.concatenate([values[len(values) // 2:], values[:len(values) // 2]])


def double(values):  # twice the weight, exact in bf16
    return np.where(values & 0x7F80, values + 0x80, values)


def round_otherwise(values):
    """One weight in twelve becomes the next bf16 number up or down: the mean square of a rounding error."""
    magnitude = values & 0x7FFF
    chosen = (draws.integers(0, 12, len(values)) == 0) & (magnitude >= 0x0100) & (magnitude <= 0x7E00)
    return np.where(chosen, values + np.where(draws.integers(0, 2, len(values)) == 1, 1, -1), values)


# ---- equal stacks
for model in ("llava", "smolvlm", "internvl", "molmo_7b_d"):
    one, low = dump(GOLDEN.format(model)), dump(GOLDEN.format(model), weights="bf16")
    result = parts_at(f"{model} against itself", one, dump(GOLDEN.format(model), "--gemm", "plain"), None)
    check(f"{model}: every stage is seen", all(stage.verdict != "unseen" for stage in result.stages), result)
    result = parts_at(f"{model} in bf16", one, low, None, rounded=low)
    equal(f"{model}: bf16 is detected", (result.precision, result.stages[5].verdict), ("bf16", "rounding"))
ours = dump(LLAVA)
result = parts_at("a text without an image", dump(LLAVA, picture=None), dump(LLAVA, picture=None), None)
equal("its tower is not seen", result.stages[3].verdict, "unseen")
parts_at("files of transformers", dump(LLAVA, prompt="Describe the picture in one short sentence."), "tests/golden/othermodels/llava/image-a", None,
         shape=conform.shape_of(LLAVA))
equal("the shape of a model", conform.shape_of(GOLDEN.format("own_qwen3_vl_moe_a")).has_experts, True)

# ---- planted in the weights
for tensor, how, stage in (("vision_tower.vision_model.embeddings.patch_embedding.weight", swap_halves, "tower"),
        ("vision_tower.vision_model.encoder.layers.0.mlp.fc2.bias", np.zeros_like, "tower"),
        ("vision_tower.vision_model.encoder.layers.2.self_attn.out_proj.bias", np.zeros_like, "tower"),
        ("multi_modal_projector.linear_1.bias", np.zeros_like, "connector"), ("multi_modal_projector.linear_2.bias", np.zeros_like, "connector"),
        ("language_model.model.layers.1.self_attn.v_proj.weight", swap_halves, "prefill"), ("language_model.lm_head.weight", swap_halves, "prefill"),
        ("vision_tower.vision_model.encoder.layers.1.self_attn.q_proj.weight", double, "tower"),
        ("language_model.model.layers.1.self_attn.q_proj.weight", double, "prefill")):
    parts_at(f"planted in {tensor}", ours, dump(change_weights(LLAVA, tensor, how)), stage)

# ---- planted in the settings
for file, behind, before, after, stage in (
        ("processor_config.json", "image_mean", "0.48145466", "0.5", "pixels"), ("processor_config.json", "image_std", "0.26130258", "0.25", "pixels"),
        ("config.json", "rope_theta", "10000.0", "20000.0", "prefill"), ("config.json", "rms_norm_eps", "1e-05", "1e-03", "prefill"),
        ("config.json", "vision_feature_layer", "-2", "-1", "tower"), ("config.json", '"vision_config"', "1e-05", "1e-02", "tower")):
    folder = copy_of(LLAVA, file)
    head, tail = (folder / file).read_text().split(behind, 1)
    check("the setting is there", before in tail)
    (folder / file).write_text(head + behind + tail.replace(before, after, 1))
    parts_at(f"planted setting {behind} {after}", ours, dump(folder), stage)


# ---- planted in the files of another stack
def changed(folder, name, how):
    """A copy of a dump with one array changed."""
    copy = Path(tempfile.mkdtemp(dir=work)) / "copy"
    shutil.copytree(folder, copy)
    np.save(copy / f"{name}.npy", how(np.load(copy / f"{name}.npy")))
    return copy


def swap_views(array):  # two views swap places
    array = array.copy()
    array[[0, 1]] = array[[1, 0]]
    return array


def shift_half_a_pixel(array):
    flat = array.reshape(-1)
    return np.append((flat[:-1] + flat[1:]) / 2, flat[-1]).reshape(array.shape).astype(array.dtype)


def last_other(array):
    return np.append(array[:-1], array[-1] ^ 1)


smolvlm = dump(GOLDEN.format("smolvlm"))
for of, name, how, stage in (
        (ours, "pixels", lambda array: array[:, ::-1].copy(), "pixels"), (ours, "pixels", shift_half_a_pixel, "pixels"), (smolvlm, "pixels", swap_views, "pixels"),
        (smolvlm, "tower", swap_views, "tower"), (smolvlm, "image_features", swap_views, "connector"),
        (ours, "input_ids", lambda array: np.append(array[0] ^ 2, array[1:]), "prompt_ids"), (ours, "input_ids", last_other, "prompt_ids"),
        (ours, "input_ids", lambda array: array[1:], "prompt_ids"), (ours, "tokens", last_other, "tokens")):
    parts_at(f"planted in {name}.npy", of, changed(of, name, how), stage)
result = parts_at("unseen stages before the first difference are possible causes", ours, changed(ours, "logits", lambda array: array[:, ::-1].copy()), "prefill")
lacking = changed(ours, "logits", lambda array: array[:, ::-1].copy())
(lacking / "tower.npy").unlink()
equal("and named", conform.compare(ours, lacking).possible_stages, ["tower", "prefill"])
parts_at("a dump of another model", ours, smolvlm, "prompt_ids")


# ---- damaged files
def damaged(name, how):
    copy = Path(tempfile.mkdtemp(dir=work)) / "copy"
    shutil.copytree(ours, copy)
    path = copy / f"{name}.npy"
    how(path, np.load(path))
    return copy


for words, name, how in (
        ("not a finite number", "logits", lambda path, array: np.save(path, np.where(array == array.max(), np.nan, array))), ("logits.npy", "logits", lambda path, array: os.truncate(path, path.stat().st_size - 5)),
        ("more data", "tower", lambda path, array: path.write_bytes(path.read_bytes() + b"more")), ("the type is", "pixels", lambda path, array: np.save(path, array.astype(complex))),
        ("not a .npy file", "image_features", lambda path, array: path.write_bytes(b"GIF89a" + path.read_bytes()[6:])),
        ("Fortran", "tower", lambda path, array: np.save(path, np.asfortranarray(array))),
        ("expected integers", "tokens", lambda path, array: np.save(path, array.astype(float)))):
    folder = damaged(name, how)
    refused(f"damaged: {words}", conform.ConformError, words, lambda folder=folder: conform.compare(ours, folder))
refused("no folder", conform.ConformError, "expected a folder", lambda: conform.compare(ours, work / "nowhere"))
refused("no file of a stage", conform.ConformError, "no stage has a file", lambda: conform.compare(ours, "tests/tools"))
refused("transformers without a prompt", conform.ConformError, "give -p TEXT",
        lambda: conform._other(conform.argparse.Namespace(theirs="transformers:x", prompt=None, model=None)))

# ---- only rounding: weights rounded otherwise, against the distance of bf16 from fp32
draws = np.random.default_rng(20261124)
for number, model in enumerate(("llava", "smolvlm", "internvl", "molmo_7b_d", "molmo_7b_o")):
    golden = GOLDEN.format(model)
    picture = f"tests/golden/othermodels/images/{('mix-200x150', 'stripes-333x517')[number % 2]}.png"
    one, low = dump(golden, picture=picture), dump(golden, picture=picture, weights="bf16")
    parts_at(f"{model}: weights rounded otherwise", one, dump(change_weights(golden, None, round_otherwise), picture=picture), None, rounded=low, precision="bf16")

# ---- the program
environment = {**os.environ, "PYTHONWARNINGS": "error"}
said = subprocess.run([sys.executable, "-m", "vlmprof.conform", str(ours), str(lacking)], capture_output=True, check=False, env=environment)
equal("python -m vlmprof.conform: exit code 1", said.returncode, 1)
check("it names the stage", b"They diverge at prefill" in said.stdout and b"also possible: tower" in said.stdout, said)
said = subprocess.run([sys.executable, "-m", "vlmprof.conform", str(ours), str(ours), "--json"], capture_output=True, check=False, env=environment)
equal("--json", (said.returncode, json.loads(said.stdout)["first_difference"]), (0, None))
equal("an error", subprocess.run([sys.executable, "-m", "vlmprof.conform", str(ours), "nowhere"], capture_output=True, check=False).returncode, 3)
done("conform")
