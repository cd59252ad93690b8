"""peers.py: this project next to the programs that a user would take instead, on the CPU: PyTorch, OpenVINO, ONNX Runtime, vLLM, llama.cpp, the
reference implementation, Hugging Face's tokenizers, torchvision and PIL.

    make bench-peers PEERS_TORCH=~/venv/bin/python PEERS_LLAMA=~/llama/bin/python PEERS_FOLDER=~/peers

A peer takes part where a python has its modules; which ones are missing is printed. Nothing is downloaded. Printed: medians, each run, and how many
times longer than this project a peer takes (a median of the ratios of each round). Weights are random, in the shapes of SHAPES. Towers are measured in this
project, PyTorch and the reference; the others get the language model alone. MolmoE's language model is an OLMoE of its widths for all but the reference.

    PEERS_TORCH      a python with torch and transformers; torchao, torchvision, PIL and tokenizers where it has them
    PEERS_OPENVINO   a python with openvino, nncf, torch and transformers (default PEERS_TORCH)
    PEERS_ONNX       a python with onnxruntime_genai and onnx_ir, and torch and transformers to make its files (default PEERS_TORCH)
    PEERS_VLLM       a python with vLLM for the CPU
    PEERS_LLAMA      a python with xllamacpp, gguf and numpy: bf16, Q8_0, Q4_0, Q4_K_M, heads in bf16
    PEERS_REFERENCE  a checkout of ChulanZhang/molmo_hf; PEERS_REFERENCE_PYTHON: a python with torch and transformers 4.45 (default PEERS_TORCH)
    PEERS_WEIGHTS    weights of this project next to bf16; +head: the head, too, as in OpenVINO and ONNX Runtime (default "int8 int4 int8+head int4+head")
    PEERS_SHAPE      of SHAPES (default molmoe-1b, the only one that can be cut)
    PEERS_ROUNDS (5), PEERS_BLOCKS (2; 0: all), PEERS_TOWER (of the tower, if others), PEERS_VIEWS (the shape's), PEERS_TOKENS (451), PEERS_THREADS (all),
    PEERS_TOKENIZER, PEERS_TEXT, PEERS_PHOTO
    PEERS_VIEWS=0    the language model alone: this project opens the peers' folder in PEERS_FOLDER, so that its memory has no tower either
    PEERS_ONLY       rows to run: of "crops tokenizer model" (default all)
    PEERS_ALONE=1    models are opened one after another in each round, not all at once: large ones do not fit together. Each has PEERS_TURNS (1) turns then
    PEERS_FOLDER     a folder that keeps the models' files (MolmoE whole: 27 GB); without it they are made again
    PEERS_CALM       per cent, such as 4: a turn in which other programs used more of the cores than this is taken again, 8 times at most (Linux)
    PEERS_MODELS     which of the models take part, such as "vlmprof bf16,vlmprof int4,llama.cpp q4_0" (default all); the first one is compared with
    PEERS_PREPARE=1  makes the models' files in PEERS_FOLDER and ends: first, so that no opening has it

Rows: open, a program's start until its model is ready; first, the first request, in which some compile; memory, the most that was resident, in MB.
Called with a worker's name, this file is the other side: it loads a peer, and answers each line with a line of JSON, in milliseconds."""
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NEW = 17
# language models: architecture of transformers and GGUF; views: of the tower in one request (of Qwen3-VL windows of 2x2 patches, a picture of 448x448)
SHAPES = {
    "molmoe-1b": {"kind": "olmoe", "width": 2048, "heads": 16, "kv": 16, "head": 128, "mlp": 1024, "blocks": 16, "vocabulary": 50304, "theta": 1e4, "eps": 1e-5,
                  "experts": 64, "used": 8, "views": 3},
    "smolvlm-500m": {"kind": "llama", "width": 960, "heads": 15, "kv": 5, "head": 64, "mlp": 2560, "blocks": 32, "vocabulary": 49280, "theta": 1e5, "eps": 1e-5,
                     "views": 3},
    "qwen3-vl-2b": {"kind": "qwen3", "width": 2048, "heads": 16, "kv": 8, "head": 128, "mlp": 6144, "blocks": 28, "vocabulary": 151936, "theta": 5e6,
                    "eps": 1e-6, "views": 196},
}


# ---- workers: each runs in a peer's own python
def answer(ready, turn):
    """Says what is ready, then takes a turn for each line."""
    print(ready, flush=True)
    for _ in sys.stdin:
        print(json.dumps(turn()), flush=True)


def ms_since(start):
    return (time.perf_counter() - start) * 1e3


def work_tokenizers(tokenizer_file, text_file):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    lines = open(text_file, encoding="utf-8", newline="").read().split("\n")

    def turn():
        start = time.perf_counter()
        tokens = 0
        for line in lines:
            tokens += len(tokenizer.encode(line, add_special_tokens=False).ids)
        one_by_one = ms_since(start)
        start = time.perf_counter()
        tokenizer.encode_batch(lines, add_special_tokens=False)
        return {"encode": one_by_one, "encode_batch": ms_since(start), "tokens": tokens}
    answer("tokenizers " + tokenizers.__version__, turn)


MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def sizes(photo, rows, columns):
    """What the crops are cut from, and the image in it: as vp_layout_compute has them, by Molmo's rule."""
    from PIL import Image
    image = Image.open(photo).convert("RGB")
    canvas = (columns * 224 + 112, rows * 224 + 112)
    scale = min(canvas[0] / image.width, canvas[1] / image.height)
    return image, canvas, (int(image.width * scale), int(image.height * scale)), \
        tuple(int(side * min(336 / image.width, 336 / image.height)) for side in image.size)


def work_torchvision(photo, rows, columns, threads):
    import torch
    import torchvision
    from torchvision.transforms.v2 import functional as F
    torch.set_num_threads(int(threads))
    rows, columns = int(rows), int(columns)
    image, canvas, large, small = sizes(photo, rows, columns)
    rgb = F.pil_to_tensor(image)

    def fitted(side, to):
        resized = F.resize(rgb.float().div(255.0), [side[1], side[0]], F.InterpolationMode.BILINEAR, antialias=True).clamp(0.0, 1.0)
        left, top = (to[0] - side[0]) // 2, (to[1] - side[1]) // 2
        resized = F.pad(resized, [left, top, to[0] - side[0] - left, to[1] - side[1] - top])
        return F.normalize(resized, MEAN, STD)

    def patches(view):
        return view.reshape(3, 24, 14, 24, 14).permute(1, 3, 2, 4, 0).reshape(576, 588)

    def turn():
        start = time.perf_counter()
        with torch.inference_mode():
            whole = fitted(large, canvas)
            views = [patches(fitted(small, (336, 336)))]
            views += [patches(whole[:, r * 224:r * 224 + 336, c * 224:c * 224 + 336]) for r in range(rows) for c in range(columns)]
            torch.stack(views)
        return {"crops": ms_since(start)}
    answer("torchvision " + torchvision.__version__, turn)


def work_pil(photo, rows, columns, threads):
    import numpy
    import PIL
    from PIL import Image
    rows, columns = int(rows), int(columns)
    image, canvas, large, small = sizes(photo, rows, columns)
    mean, std = numpy.array(MEAN, numpy.float32), numpy.array(STD, numpy.float32)

    def fitted(side, to):
        whole = numpy.zeros((to[1], to[0], 3), numpy.float32)
        left, top = (to[0] - side[0]) // 2, (to[1] - side[1]) // 2
        whole[top:top + side[1], left:left + side[0]] = numpy.asarray(image.resize(side, Image.Resampling.BILINEAR), numpy.float32) / 255.0
        return (whole - mean) / std

    def patches(view):
        return view.reshape(24, 14, 24, 14, 3).transpose(0, 2, 1, 3, 4).reshape(576, 588)

    def turn():
        start = time.perf_counter()
        whole = fitted(large, canvas)
        views = [patches(fitted(small, (336, 336)))]
        views += [patches(whole[r * 224:r * 224 + 336, c * 224:c * 224 + 336]) for r in range(rows) for c in range(columns)]
        numpy.stack(views)
        return {"crops": ms_since(start)}
    answer("PIL " + PIL.__version__, turn)


def reference_model(repository, tower, blocks):
    """The reference's own model file with random bf16 weights; its package's __init__ would import what only training needs."""
    import importlib
    import types
    import torch
    for name, path in (("molmo", "/molmo"), ("molmo.models", "/molmo/models")):
        module = types.ModuleType(name)
        module.__path__ = [repository + path]
        sys.modules[name] = module
    modeling = importlib.import_module("molmo.models.modeling_molmoe")
    settings = json.load(open(repository + "/configs/model/config.json"))
    settings.pop("auto_map", None)
    settings["n_layers"] = blocks
    settings["vision_backbone"]["image_num_layers"] = tower
    if tower < 8:
        settings["vit_layers"] = [-2, -1]
    config = importlib.import_module("molmo.models.config_molmoe").MolmoConfig(**settings)
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16)
    model = modeling.MolmoForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    pool = (torch.randn(1 << 22) * 0.02).to(torch.bfloat16)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            flat = parameter.data.view(-1)
            if "norm" in name or "pre_ln" in name or "ln_f" in name:
                flat.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            for at in range(0, flat.numel(), 1 << 22):
                piece = flat[at:at + (1 << 22)]
                piece.copy_(pool[:piece.numel()])
    return model


def work_reference(repository, tower, blocks, views, tokens, threads):
    import torch
    import transformers
    torch.set_num_threads(int(threads))
    views, tokens = int(views), int(tokens)
    model = reference_model(repository, int(tower), int(blocks))
    images, masks = torch.randn(1, views, 576, 588).to(torch.bfloat16), torch.ones(1, views, 576)
    ids, seen = torch.randint(0, 50000, (1, tokens)), torch.ones(1, tokens + NEW, dtype=torch.long)

    def step(ids, positions, **more):
        out = model(input_ids=ids, attention_mask=seen, position_ids=positions, use_cache=True, last_logits_only=True, **more)
        token = out.logits[:, -1].float().argmax(-1)
        int(token)
        return token.view(1, 1), out.past_key_values

    def turn():
        with torch.inference_mode():
            start = time.perf_counter()
            model.model.vision_backbone(images, masks)
            vision = ms_since(start)
            start = time.perf_counter()
            token, cache = step(ids, torch.arange(tokens).view(1, -1), append_last_valid_logits=torch.tensor([tokens - 1]))
            prefill = ms_since(start)
            start = time.perf_counter()
            for made in range(NEW - 1):
                token, cache = step(token, torch.tensor([[tokens + made]]), past_key_values=cache)
            return {"vision": vision, "prefill": prefill, "decode": ms_since(start) / (NEW - 1)}
    answer(f"torch {torch.__version__}, transformers {transformers.__version__}", turn)


PROMPT = [(i * 379 + 7) % 49000 for i in range(2048)]


def cached(folder, name, make):
    """A file or folder that make(path) makes once."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        make(path + ".part")
        os.rename(path + ".part", path)
    return path


# ---- llama.cpp
def gguf_tensors(shape, blocks):
    """(name, shape, part) of a language model; part: norm and router are f32, outer is bf16 in all files, down and v are wider in Q4_K_M"""
    width, heads, kv, head, mlp = (shape[key] for key in ("width", "heads", "kv", "head", "mlp"))
    tensors = [("token_embd", (shape["vocabulary"], width), "outer"), ("output", (shape["vocabulary"], width), "outer"), ("output_norm", (width,), "norm")]
    for block in range(blocks):
        at = f"blk.{block}."
        tensors += [(at + "attn_norm", (width,), "norm"), (at + "ffn_norm", (width,), "norm"), (at + "attn_q", (heads * head, width), "inner"),
                    (at + "attn_k", (kv * head, width), "inner"), (at + "attn_v", (kv * head, width), f"wide {block}"),
                    (at + "attn_output", (width, heads * head), "inner")]
        if shape["kind"] != "llama":
            whole = shape["kind"] == "olmoe"
            tensors += [(at + "attn_q_norm", (heads * head if whole else head,), "norm"), (at + "attn_k_norm", (kv * head if whole else head,), "norm")]
        if shape["kind"] == "olmoe":
            experts = shape["experts"]
            tensors += [(at + "ffn_gate_inp", (experts, width), "router"), (at + "ffn_gate_exps", (experts, mlp, width), "inner"),
                        (at + "ffn_up_exps", (experts, mlp, width), "inner"), (at + "ffn_down_exps", (experts, width, mlp), f"wide {block}")]
        else:
            tensors += [(at + "ffn_gate", (mlp, width), "inner"), (at + "ffn_up", (mlp, width), "inner"), (at + "ffn_down", (width, mlp), f"wide {block}")]
    return tensors


def gguf_type(types, kind, part, columns, blocks):
    """What llama.cpp's own quantisation chooses; Q4_K_M: some blocks have wider tensors, and rows that are no multiple of 256 another type."""
    if part == "outer" or kind == "bf16":
        return types.BF16
    if kind != "q4_k_m":
        return {"q8_0": types.Q8_0, "q4_0": types.Q4_0}[kind]
    block = int(part.split()[1]) if part != "inner" else None
    wide = block is not None and (block < blocks // 8 or block >= 7 * blocks // 8 or (block - blocks // 8) % 3 == 2)
    return (types.Q8_0 if wide else types.Q5_0) if columns % 256 else types.Q6_K if wide else types.Q4_K


def gguf_numbers(gguf, numpy, kind, numbers):
    """Random bytes of a type: numbers of about 0.02"""
    types, random = gguf.GGMLQuantizationType, numpy.random.default_rng(2)
    if kind not in (types.Q4_K, types.Q6_K):
        return gguf.quants.quantize(numbers, kind).view(numpy.uint8).reshape(-1)
    raw = random.integers(0, 256, (8192, 144 if kind == types.Q4_K else 210), dtype=numpy.uint8)
    if kind == types.Q4_K:
        raw[:, :4] = numpy.array([1e-4, 7.5e-4], numpy.float16).view(numpy.uint8)
    else:
        raw[:, 192:208] = random.integers(-32, 32, (8192, 16)).astype(numpy.int8).view(numpy.uint8)
        raw[:, 208:] = numpy.array([6e-5], numpy.float16).view(numpy.uint8)
    return raw.reshape(-1)


def write_gguf(path, shape, blocks, kind):
    import gguf
    import numpy
    types = gguf.GGMLQuantizationType
    numbers = (numpy.random.default_rng(1).standard_normal((2048, 2048), dtype=numpy.float32) * numpy.float32(0.02))
    writer = gguf.GGUFWriter(path, shape["kind"])
    writer.add_vocab_size(shape["vocabulary"]); writer.add_context_length(4096); writer.add_embedding_length(shape["width"]); writer.add_block_count(blocks)
    writer.add_feed_forward_length(shape["mlp"]); writer.add_head_count(shape["heads"]); writer.add_head_count_kv(shape["kv"])
    writer.add_key_length(shape["head"]); writer.add_value_length(shape["head"]); writer.add_rope_dimension_count(shape["head"])
    writer.add_rope_freq_base(shape["theta"]); writer.add_layer_norm_rms_eps(shape["eps"])
    if "experts" in shape:
        writer.add_expert_count(shape["experts"]); writer.add_expert_used_count(shape["used"]); writer.add_expert_feed_forward_length(shape["mlp"])
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>"] + [f"t{i}" for i in range(3, shape["vocabulary"])])
    writer.add_token_scores([0.0] * shape["vocabulary"])
    writer.add_token_types([2, 3, 3] + [1] * (shape["vocabulary"] - 3))
    raw, made = {}, {}  # blocks share their numbers: a file of 13 GB takes no more memory than one block
    for name, sides, part in gguf_tensors(shape, blocks):
        if part == "norm":
            writer.add_tensor(name + ".weight", numpy.ones(sides, numpy.float32))
        elif part == "router":
            writer.add_tensor(name + ".weight", numbers.reshape(-1)[:sides[0] * sides[1]].reshape(sides))
        else:
            type_of = gguf_type(types, kind, part, sides[-1], blocks)
            elements, size = gguf.GGML_QUANT_SIZES[type_of]
            if type_of not in raw:
                raw[type_of] = gguf_numbers(gguf, numpy, type_of, numbers)
            if (sides, type_of) not in made:
                made[sides, type_of] = numpy.resize(raw[type_of], (*sides[:-1], sides[-1] // elements * size))
            writer.add_tensor(name + ".weight", made[sides, type_of], raw_dtype=type_of)
    writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()


def prepare_llama(folder, name, blocks, kind):
    return cached(folder, f"{name}-{blocks}-{kind}.gguf", lambda path: write_gguf(path, SHAPES[name], int(blocks), kind))


def work_llama(folder, name, blocks, tokens, threads, kind):
    import xllamacpp
    tokens, threads = int(tokens), int(threads)
    settings = xllamacpp.CommonParams()
    settings.model.path = prepare_llama(folder, name, blocks, kind)
    settings.n_ctx = 1024; settings.n_batch = settings.n_ubatch = 512; settings.n_gpu_layers = 0; settings.warmup = True
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(settings)

    def turn():
        out = server.handle_completions({"prompt": PROMPT[:tokens], "n_predict": NEW, "temperature": 0.0, "ignore_eos": True, "cache_prompt": False})
        times = (json.loads(out) if isinstance(out, (str, bytes)) else out)["timings"]
        return {"prefill": times["prompt_ms"], "decode": times["predicted_per_token_ms"], "tokens": times["prompt_n"]}
    answer(f"xllamacpp {xllamacpp.__version__}, {kind}", turn)


# ---- a folder of transformers: PyTorch and vLLM read it, OpenVINO's and ONNX Runtime's files are made of it
def write_folder(path, shape, blocks):
    import tokenizers
    import torch
    import transformers
    settings = {"vocab_size": shape["vocabulary"], "hidden_size": shape["width"], "intermediate_size": shape["mlp"], "num_hidden_layers": blocks,
                "num_attention_heads": shape["heads"], "num_key_value_heads": shape["kv"], "head_dim": shape["head"], "rms_norm_eps": shape["eps"],
                "max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default", "rope_theta": shape["theta"]}, "tie_word_embeddings": False,
                "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    if "experts" in shape:
        settings.pop("head_dim")
        settings |= {"num_experts": shape["experts"], "num_experts_per_tok": shape["used"]}
    config = transformers.AutoConfig.for_model(shape["kind"], **settings)
    torch.manual_seed(1)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model = model.to_empty(device="cpu")
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # all differ: OpenVINO would store equal tensors once
            parameter.fill_(1.0) if "norm" in name else parameter.normal_(0.0, 0.02)
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=2)
    model.save_pretrained(path)
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    raw = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={c: i for i, c in enumerate(["<unk>", "<s>", "</s>"] + letters)}, merges=[]))
    raw.pre_tokenizer, raw.decoder = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False), tokenizers.decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", bos_token="<s>", eos_token="</s>").save_pretrained(path)


def prepare_folder(folder, name, blocks, _kind=None):
    return cached(folder, f"{name}-{blocks}", lambda path: write_folder(path, SHAPES[name], int(blocks)))


def tower(name, views):
    """A request of random pixels through a random tower and connector of transformers; None: it has no such class"""
    import torch
    if name == "smolvlm-500m":
        from transformers import SmolVLMConfig
        from transformers.models.smolvlm import modeling_smolvlm as smolvlm
        config = SmolVLMConfig(scale_factor=4, vision_config={"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12, "intermediate_size": 3072,
                                                              "patch_size": 16, "image_size": 512}, text_config={"model_type": "llama", "hidden_size": 960})
        vision = smolvlm.SmolVLMVisionTransformer._from_config(config.vision_config, dtype=torch.bfloat16).eval()
        connector, pixels = smolvlm.SmolVLMConnector(config).to(torch.bfloat16).eval(), torch.randn(views, 3, 512, 512).to(torch.bfloat16)
        return lambda: connector(vision(pixel_values=pixels).last_hidden_state), vision
    if name == "qwen3-vl-2b":
        from transformers.models.qwen3_vl import configuration_qwen3_vl, modeling_qwen3_vl
        config = configuration_qwen3_vl.Qwen3VLVisionConfig(depth=24, hidden_size=1024, intermediate_size=4096, num_heads=16, patch_size=16, out_hidden_size=2048,
                                                            deepstack_visual_indexes=[5, 11, 17])
        vision = modeling_qwen3_vl.Qwen3VLVisionModel._from_config(config, dtype=torch.bfloat16).eval()
        side = 2 * int(views ** 0.5)
        pixels, grid = torch.randn(4 * views, 3 * 2 * 16 * 16).to(torch.bfloat16), torch.tensor([[1, side, side]])
        return lambda: vision(pixels, grid_thw=grid), vision
    return None, None


def work_torch(folder, name, blocks, tokens, threads, views, how):
    import torch
    import transformers
    torch.set_num_threads(int(threads))
    tokens = int(tokens)
    model = transformers.AutoModelForCausalLM.from_pretrained(prepare_folder(folder, name, blocks), dtype=torch.bfloat16).eval()
    vision, module = tower(name, int(views)) if int(views) else (None, None)
    said = f"torch {torch.__version__}, transformers {transformers.__version__}, {how}"
    if how == "torchao int8":
        import torchao.quantization as ao
        ao.quantize_(model, ao.Int8DynamicActivationInt8WeightConfig(), lambda part, at: isinstance(part, torch.nn.Linear) and "lm_head" not in at)
        said += f", torchao {ao.__name__ and __import__('torchao').__version__}"
    if how != "eager":
        model.forward = torch.compile(model.forward, dynamic=False)
        if module is not None:
            module.forward = torch.compile(module.forward, dynamic=False)
    prompt = torch.tensor([PROMPT[:tokens]])
    cache = transformers.StaticCache(config=model.config, max_cache_len=tokens + NEW) if how != "eager" else None

    def step(ids, positions, past):
        out = model(input_ids=ids, position_ids=positions.view(1, -1), cache_position=positions, past_key_values=past, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1].argmax(-1).view(1, 1), out.past_key_values

    def turn():
        times = {}
        with torch.inference_mode():
            if vision:
                start = time.perf_counter()
                vision()
                times["vision"] = ms_since(start)
            if cache:
                cache.reset()
            start = time.perf_counter()
            token, past = step(prompt, torch.arange(tokens), cache)
            times["prefill"] = ms_since(start)
            start = time.perf_counter()
            for made in range(NEW - 1):
                token, past = step(token, torch.tensor([tokens + made]), past)
            return times | {"decode": ms_since(start) / (NEW - 1)}
    answer(said, turn)


def work_vllm(folder, name, blocks, tokens, threads):
    os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": threads,
                   "VLLM_NO_USAGE_STATS": "1", "VLLM_TARGET_DEVICE": "cpu",
                   "VLLM_LOGGING_STREAM": "ext://sys.stderr"}
    out = os.dup(1)
    os.dup2(2, 1)  # vLLM and its processes write to stdout
    sys.stdout = os.fdopen(out, "w")
    import vllm
    model = vllm.LLM(model=os.path.join(folder, f"{name}-{blocks}"), dtype="bfloat16", max_model_len=1024, max_num_seqs=1, enable_prefix_caching=False,
                     enforce_eager=True, disable_log_stats=True)
    prompt = {"prompt_token_ids": PROMPT[:int(tokens)]}

    def of(count):
        start = time.perf_counter()
        model.generate(prompt, vllm.SamplingParams(max_tokens=count, ignore_eos=True, temperature=0.0, detokenize=False), use_tqdm=False)
        return ms_since(start)

    def turn():
        prefill = of(1)
        return {"prefill": prefill, "decode": (of(NEW) - prefill) / (NEW - 1)}
    answer(f"vllm {vllm.__version__}, bf16, eager", turn)


# ---- OpenVINO: the language model traced with its cache as a state, weights compressed by NNCF
def decoder(folder):
    """A module of the folder's llama or qwen3: ids, positions, the cache's keys and values by block -> logits of the last token, keys and values"""
    import torch
    import transformers
    from torch.nn import functional as F
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    config = model.config
    heads, kv, head = config.num_attention_heads, config.num_key_value_heads, config.head_dim

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = model.model, model.lm_head
            self.register_buffer("turns", 1.0 / config.rope_parameters["rope_theta"] ** (torch.arange(0, head, 2).float() / head))

        def forward(self, ids, positions, *past):
            x = self.inner.embed_tokens(ids)
            angles = positions[:, :, None].float() * self.turns
            cosine, sine = torch.cat([angles, angles], -1).cos()[:, None].to(x.dtype), torch.cat([angles, angles], -1).sin()[:, None].to(x.dtype)
            present = []

            def turned(v):
                return v * cosine + torch.cat([-v[..., head // 2:], v[..., :head // 2]], -1) * sine

            def heads_of(v, count, norm):
                v = v.view(1, -1, count, head)
                return (norm(v) if norm else v).transpose(1, 2)

            def spread(v):  # as transformers' repeat_kv, which OpenVINO knows
                return v[:, :, None].expand(1, kv, heads // kv, v.shape[2], head).reshape(1, heads, v.shape[2], head)
            for at, block in enumerate(self.inner.layers):
                part, y = block.self_attn, block.input_layernorm(x)
                q = turned(heads_of(part.q_proj(y), heads, getattr(part, "q_norm", None)))
                k = torch.cat([past[2 * at], turned(heads_of(part.k_proj(y), kv, getattr(part, "k_norm", None)))], 2)
                v = torch.cat([past[2 * at + 1], heads_of(part.v_proj(y), kv, None)], 2)
                present += [k, v]
                seen = torch.arange(k.shape[2])[None, None, None] <= positions[:, None, :, None]
                y = F.scaled_dot_product_attention(q, spread(k), spread(v), attn_mask=seen)
                x = x + part.o_proj(y.transpose(1, 2).reshape(1, -1, heads * head))
                x = x + block.mlp(block.post_attention_layernorm(x))
            return (self.head(self.inner.norm(x[:, -1:])), *present)
    return Decoder().eval(), config.num_hidden_layers, kv, head


def write_openvino(path, folder, kind):
    import nncf
    import openvino
    import torch
    from openvino._offline_transformations import apply_make_stateful_transformation
    from openvino.frontend.pytorch import patch_model
    module, blocks, kv, head = decoder(folder)
    patch_model.__make_16bit_traceable(module)
    past = [torch.zeros(1, kv, 3, head) for _ in range(2 * blocks)]
    names = [f"past.{i}" for i in range(2 * blocks)]
    with torch.no_grad():
        model = openvino.convert_model(module, example_input=(torch.ones(1, 2, dtype=torch.long), torch.tensor([[3, 4]]), *past))
    for port, name in zip(model.inputs, ["ids", "positions", *names]):
        port.get_tensor().set_names({name})
        port.get_node().set_partial_shape(openvino.PartialShape([1, -1] if not name.startswith("past") else [1, kv, -1, head]))
    for port, name in zip(model.outputs, ["logits", *("present" + name[4:] for name in names)]):
        port.get_tensor().set_names({name})
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, {name: "present" + name[4:] for name in names})
    if kind == "int8":
        model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
    elif kind == "int4":
        model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT4_SYM, group_size=64, ratio=1.0)
    os.makedirs(path, exist_ok=True)
    openvino.save_model(model, os.path.join(path, "model.xml"), compress_to_fp16=False)


def prepare_openvino(folder, name, blocks, kind):
    return cached(folder, f"{name}-{blocks}-openvino-{kind}", lambda path: write_openvino(path, prepare_folder(folder, name, blocks), kind))


def work_openvino(folder, name, blocks, tokens, threads, kind):
    import numpy
    import openvino
    tokens = int(tokens)
    settings = {"INFERENCE_NUM_THREADS": int(threads), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "bf16"}
    request = openvino.Core().compile_model(os.path.join(prepare_openvino(folder, name, blocks, kind), "model.xml"), "CPU", settings).create_infer_request()

    def step(ids, first):
        out = request.infer({"ids": numpy.array([ids], numpy.int64), "positions": numpy.arange(first, first + len(ids), dtype=numpy.int64)[None]})
        return [int(out["logits"][0, -1].argmax())]

    def turn():
        request.reset_state()
        start = time.perf_counter()
        token = step(PROMPT[:tokens], 0)
        prefill, start = ms_since(start), time.perf_counter()
        for made in range(NEW - 1):
            token = step(token, tokens + made)
        return {"prefill": prefill, "decode": ms_since(start) / (NEW - 1)}
    answer(f"openvino {openvino.__version__.split('-')[0]}, weights {kind}, products in bf16", turn)


# ---- ONNX Runtime, by onnxruntime-genai's own builder
def prepare_onnx(folder, name, blocks, kind):
    made_of = prepare_folder(folder, name, blocks)

    def build(path):
        subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", made_of, "-o", path, "-p", kind, "-e", "cpu", "-c", folder],
                       check=True, stdout=sys.stderr)
    return cached(folder, f"{name}-{blocks}-onnx-{kind}", build)


def work_onnx(folder, name, blocks, tokens, threads, kind):
    import onnxruntime_genai
    tokens, config = int(tokens), onnxruntime_genai.Config(prepare_onnx(folder, name, blocks, kind))
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": int(threads)}}}}))
    model = onnxruntime_genai.Model(config)

    def turn():
        settings = onnxruntime_genai.GeneratorParams(model)
        settings.set_search_options(max_length=tokens + NEW + 1, min_length=tokens + NEW + 1, do_sample=False)
        generator = onnxruntime_genai.Generator(model, settings)
        start = time.perf_counter()
        generator.append_tokens(PROMPT[:tokens])
        generator.generate_next_token()
        prefill, start = ms_since(start), time.perf_counter()
        for _ in range(NEW - 1):
            generator.generate_next_token()
        return {"prefill": prefill, "decode": ms_since(start) / (NEW - 1)}
    answer(f"onnxruntime-genai {onnxruntime_genai.__version__}, {kind}", turn)


# One row a peer: name, the variable of its python, modules that it needs, worker, its last arguments, how its files are made, why it lacks a shape
DENSE = {"molmoe-1b": "this file traces dense blocks alone"}
PEERS = [
    *(("PyTorch " + how, "PEERS_TORCH", "torch, transformers" + (", torchao" if "torchao" in how else ""), "torch", ["views", how], prepare_folder, {})
      for how in ("eager", "compile", "torchao int8")),
    *(("OpenVINO " + kind, "PEERS_OPENVINO", "openvino, nncf, torch, transformers", "openvino", [kind], prepare_openvino, DENSE)
      for kind in ("bf16", "int8", "int4")),
    *(("ONNX Runtime " + kind, "PEERS_ONNX", "onnxruntime_genai, onnx_ir, torch, transformers", "onnx", [kind], prepare_onnx, {}) for kind in ("fp32", "int4")),
    ("vLLM bf16", "PEERS_VLLM", "vllm", "vllm", [], None, {}),
    *(("llama.cpp " + kind, "PEERS_LLAMA", "xllamacpp, gguf, numpy", "llama", [kind], prepare_llama, {}) for kind in ("bf16", "q8_0", "q4_0", "q4_k_m")),
]


# ---- the turns
def children(process):
    """child processes, of all threads"""
    return [child for thread in os.listdir(f"/proc/{process}/task") for child in open(f"/proc/{process}/task/{thread}/children").read().split()]


def cpu_s(process=None):
    """seconds of CPU that a process and its children, or all of them, have used"""
    ticks = open(f"/proc/{process}/stat" if process else "/proc/stat").read()
    fields = ticks.rsplit(")", 1)[1].split()[11:13] if process else [v for i, v in enumerate(ticks.split("\n")[0].split()[1:9]) if i not in (3, 4)]
    return sum(map(int, fields)) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_s, children(process) if process else []))


def resident_mb(process):
    """the most that a process and its children have had in memory, files that are mapped included"""
    kilobytes = int(open(f"/proc/{process}/status").read().split("VmHWM:")[1].split()[0])
    return kilobytes * 1024 / 1e6 + sum(map(resident_mb, children(process)))


class Peer:
    def __init__(self, name, command):
        self.name, self.turns, self.command, self.once = name, [], command, {"open": [], "first": [], "memory": []}

    def open(self):
        start = time.perf_counter()
        environment = dict(os.environ, TOKENIZERS_PARALLELISM="true", HF_HUB_OFFLINE="1")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.ready = self.line()
        self.once["open"].append(ms_since(start))
        return self

    def first(self):
        """The first turn after opening, which is not counted: some programs compile then"""
        start = time.perf_counter()
        self.turn()
        self.once["first"].append(ms_since(start))

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(self.name)
        return line.strip()

    def turn(self):
        most = float(os.environ.get("PEERS_CALM", "0")) / 100.0
        for _ in range(8 if most else 1):
            start, everyone, own = time.time(), cpu_s() if most else 0.0, cpu_s(self.process.pid) if most else 0.0
            times = self.one_turn()
            if not most or cpu_s() - everyone - (cpu_s(self.process.pid) - own) <= most * os.cpu_count() * (time.time() - start) + 0.02:
                return times
            time.sleep(1.0)
        print(f"  {self.name}: other programs used the cores in 8 turns; the last one counts")
        return times

    def one_turn(self):
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()
        line = self.line()
        while not line.startswith("{"):
            line = self.line()
        return json.loads(line)

    def close(self):
        if os.path.exists("/proc/self/status"):
            self.once["memory"].append(resident_mb(self.process.pid))
        self.process.stdin.close()
        self.process.wait()


def take_turns(title, peers, rounds, rows, alone=False):
    """peers[0] is this project; rows: (key, peers' names or None for all); alone: each is open only for its turn of a round"""
    print(f"\n{title}", flush=True)
    each = int(os.environ.get("PEERS_TURNS", "1")) if alone else 1
    for number in range(0 if alone else -1, rounds):
        for peer in list(peers):
            try:
                if alone or number < 0:
                    peer.open()
                    print(f"  {peer.name}: {peer.ready}", flush=True)
                    peer.first()
                time.sleep(0.2)
                times = [peer.turn() for _ in range(each)]
            except (EOFError, OSError):
                if peer is peers[0]:
                    sys.exit(f"peers.py: {peer.name} ended")
                print(f"  left out: {peer.name} (its program ended; standard error says why)", flush=True)
                peers.remove(peer)
                continue
            if number >= 0:
                peer.turns += times
                for turn in times:
                    print(f"  {peer.name}: " + ", ".join(f"{key} {value:.2f}" for key, value in turn.items()), file=sys.stderr, flush=True)
            if alone:
                peer.close()
    for peer in peers:
        if not alone:
            peer.close()
    for key in rows:
        for peer in peers:
            if key not in peer.turns[0]:
                continue
            values = [turn[key] for turn in peer.turns]
            own = "encode" if key == "encode_batch" else key
            ratio = statistics.median(value / first[own] for value, first in zip(values, peers[0].turns))
            print(f"  {key:13} {peer.name:22} {statistics.median(values):10.2f} ms  {ratio:6.2f} x  [{' '.join('%.2f' % value for value in values)}]")
    for key, unit in (("open", "ms"), ("first", "ms"), ("memory", "MB")):
        for peer in peers:
            if peer.once[key]:
                print(f"  {key:13} {peer.name:22} {statistics.median(peer.once[key]):10.0f} {unit}")
    sys.stdout.flush()


def main():
    get = os.environ.get
    name = get("PEERS_SHAPE", "molmoe-1b")
    rounds, tokens = int(get("PEERS_ROUNDS", "5")), get("PEERS_TOKENS", "451")
    cut = get("PEERS_BLOCKS", "2" if name == "molmoe-1b" else "0")
    views, tower_blocks = get("PEERS_VIEWS", str(SHAPES[name]["views"])), get("PEERS_TOWER", cut)
    threads, only = get("PEERS_THREADS", str(os.cpu_count())), get("PEERS_ONLY", "crops tokenizer model").split()
    torch, reference = get("PEERS_TORCH"), get("PEERS_REFERENCE")
    reference_python = get("PEERS_REFERENCE_PYTHON", torch)
    ours, me = os.path.join(HERE, "../../build/bench/bench_peers"), os.path.abspath(__file__)
    photo = get("PEERS_PHOTO", os.path.join(HERE, "../../samples/astronaut.jpg"))
    text = get("PEERS_TEXT", os.path.join(HERE, "../../vlmprof.h"))
    tokenizer = get("PEERS_TOKENIZER", os.path.join(HERE, "../golden/tokenizer/small-tokenizer.json"))
    os.environ["OMP_NUM_THREADS"] = threads
    commit = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False).stdout.strip()
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine()) \
        if os.path.exists("/proc/cpuinfo") else platform.machine()
    print(f"{time.strftime('%F')}, commit {commit}, {processor}, {threads} threads, {rounds} rounds in turns; ratios: a peer's time / this project's")

    @functools.lru_cache(None)
    def has(python, module):
        return python and not subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode

    def left_out(what, why):
        print(f"  left out: {what} ({why})")
    if "crops" in only:
        first = Peer("vlmprof, 1 thread", [ours, "crops", photo])
        made_of, rows, columns = first.open().ready.split()[:3]
        first.close()
        peers = [first]
        for worker, module in (("torchvision", "torchvision"), ("pil", "PIL")):
            if not has(torch, module):
                left_out(worker, f"PEERS_TORCH has no {module}")
                continue
            for count in (["1", threads] if worker == "torchvision" and threads != "1" else ["1"]):
                peers.append(Peer(f"{worker}, {count} thread{'s' if count != '1' else ''}", [torch, me, worker, photo, rows, columns, count]))
        take_turns(f"a photograph, {os.path.basename(photo)}, decoded, to {made_of} views of normalised patches", peers, rounds, ["crops"])
    if "tokenizer" in only:
        peers = [Peer("vlmprof", [ours, "tokenizer", tokenizer, text])]
        if has(torch, "tokenizers"):
            peers.append(Peer("tokenizers", [torch, me, "tokenizers", tokenizer, text]))
        else:
            left_out("tokenizers", "PEERS_TORCH has none")
        take_turns(f"{os.path.basename(text)}, line by line, {os.path.getsize(text) / 1e6:.2f} MB, by {os.path.basename(tokenizer)}", peers, rounds,
                   ["encode", "encode_batch"])
        counts = {peer.name: peer.turns[-1]["tokens"] for peer in peers}
        print("  tokens: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    if "model" in only:
        with tempfile.TemporaryDirectory() as made:
            folder, shape = get("PEERS_FOLDER", made), SHAPES[name]
            blocks = cut if cut != "0" else str(shape["blocks"])
            wanted = get("PEERS_MODELS", "").split(",")
            model = name if views != "0" else os.path.join(folder, f"{name}-{blocks}")
            peers = [Peer("vlmprof " + weights, [ours, "engine", model, tower_blocks, cut, views, tokens, weights])
                     for weights in ["bf16", *get("PEERS_WEIGHTS", "int8 int4 int8+head int4+head").split()]]
            if name == "molmoe-1b" and reference and has(reference_python, "torch, transformers, einops"):
                peers.append(Peer("reference bf16", [reference_python, me, "reference", reference, tower_blocks, blocks, views, tokens, threads]))
            elif name == "molmoe-1b":
                left_out("the reference", "PEERS_REFERENCE, or a python with torch, transformers and einops")
            for peer, variable, modules, worker, rest, prepare, lacks in PEERS:
                python = get(variable, torch if variable in ("PEERS_OPENVINO", "PEERS_ONNX") else None)
                if wanted != [""] and peer not in wanted:
                    continue
                if name in lacks:
                    left_out(peer, lacks[name])
                elif not has(python, modules):
                    left_out(peer, f"{variable}, a python with {modules}")
                elif not get("PEERS_PREPARE"):
                    peers.append(Peer(peer, [python, me, worker, folder, name, blocks, tokens, threads, *(views if one == "views" else one for one in rest)]))
                elif prepare and subprocess.run([python, me, "prepare", prepare.__name__, folder, name, blocks, rest[-1] if rest else ""], check=False).returncode:
                    left_out(peer, "its file could not be made")
            peers = [peer for peer in peers if wanted == [""] or peer.name in wanted]
            if get("PEERS_PREPARE"):
                return
            take_turns(f"{name}: {'all' if cut == '0' else tower_blocks} blocks of the tower, {views} views; {blocks} blocks of the language model, {tokens} tokens; "
                       "a decode step", peers, rounds, ["vision", "prefill", "decode"], bool(get("PEERS_ALONE")))


if __name__ == "__main__":
    workers = {"tokenizers": work_tokenizers, "torchvision": work_torchvision, "pil": work_pil, "reference": work_reference, "llama": work_llama,
               "torch": work_torch, "openvino": work_openvino, "onnx": work_onnx, "vllm": work_vllm,
               "prepare": lambda prepare, *of: globals()[prepare](*of)}
    if len(sys.argv) > 1 and sys.argv[1] in workers:
        workers[sys.argv[1]](*sys.argv[2:])
    else:
        main()
