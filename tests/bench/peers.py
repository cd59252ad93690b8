"""peers.py: this project next to the programs that a user would take instead, on the CPU: PyTorch, OpenVINO, ONNX Runtime, vLLM, llama.cpp, the
reference implementation and torchvision.

    make bench-peers PEERS_TORCH=~/venv/bin/python PEERS_LLAMA=~/llama/bin/python PEERS_FOLDER=~/peers

A peer takes part where a python has its modules; which ones are missing is printed. Nothing is downloaded. Each peer runs as its experts would run it, in
all the configurations of PEERS, which take turns; the table has the best one in each column, with versions above it. Ratios: a peer's time / that of this
project with weights and head of the same kind, round by round; median, least and most. Weights are random, all different, in the shapes of SHAPES.
Towers are measured in this project, PyTorch, OpenVINO and the reference. MolmoE's language model is an OLMoE of its widths for all but the reference.

    PEERS_TORCH      a python with torch and transformers; torchvision and PIL where it has them
    PEERS_OPENVINO   a python with optimum-intel[openvino], openvino-genai, nncf and torch (default PEERS_TORCH)
    PEERS_ONNX       a python with onnxruntime_genai and onnx_ir, and torch and transformers to make its files (default PEERS_TORCH)
    PEERS_VLLM       a python with vLLM for the CPU
    PEERS_LLAMA      a python with gguf, numpy and llama-cpp-python, built on this machine from its source package with CMAKE_ARGS=-DGGML_NATIVE=ON:
                     wheels are built for AVX2. With gcc 12 its AMX code needs a compiler barrier before _tile_loadconfig (ggml-cpu/amx/mmq.cpp)
    PEERS_REFERENCE  a checkout of ChulanZhang/molmo_hf; PEERS_REFERENCE_PYTHON: a python with torch and transformers 4.45 (default PEERS_TORCH)
    PEERS_WEIGHTS    weights of this project next to bf16; +head: the head, too, as in OpenVINO and ONNX Runtime (default "int8 int4 int8+head int4+head")
    PEERS_SHAPE      of SHAPES (default molmoe-1b, the only one that can be cut)
    PEERS_ROUNDS (5), PEERS_BLOCKS (2; 0: all), PEERS_TOWER (of the tower, if others), PEERS_VIEWS (the shape's), PEERS_TOKENS (451), PEERS_THREADS (all), PEERS_PHOTO
    PEERS_VIEWS=0    the language model alone: this project opens the peers' folder in PEERS_FOLDER, so that its memory has no tower either
    PEERS_ONLY       rows to run: of "crops model" (default all)
    PEERS_ALONE=1    only one configuration of a peer and this project's are open at a time: large ones do not fit together
    PEERS_FOLDER     a folder that keeps the models' files (MolmoE whole: 27 GB); without it they are made again
    PEERS_CALM       per cent, such as 4: a turn in which other programs used more of the cores than this is taken again, 8 times at most (Linux)
    PEERS_MODELS     which of the peers take part, such as "OpenVINO int8,llama.cpp Q8_0" (default all)
    PEERS_PREPARE=1  makes the models' files in PEERS_FOLDER and ends: first, so that no opening has it
    PEERS_NO_AMX=1   as on a processor without AMX, by each program's own setting: --gemm here, ONEDNN_MAX_CPU_ISA, llama.cpp's use_extra_bufts

Open: a program's start until its model is ready; memory: the most that was resident, files included.
Called with a worker's name, this file is the other side: it loads a peer, and answers each line with a line of JSON, in milliseconds."""
import functools
import hashlib
import importlib.metadata
import inspect
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
NO_AMX = bool(os.environ.get("PEERS_NO_AMX"))


def stepped(step, tokens, reset):
    """A turn of a program that runs step by step: step(ids) -> the next token"""
    reset()
    start = time.perf_counter()
    token = step(PROMPT[:tokens])
    prefill, start = ms_since(start), time.perf_counter()
    for _ in range(NEW - 1):
        token = step([token])
    return {"prefill": prefill, "decode": ms_since(start) / (NEW - 1)}


def cached(folder, name, make, *makers):
    """A file or folder that make(path) makes once: its name has a hash of the source of its makers, so that files of older code are not taken"""
    sources = "".join(map(inspect.getsource, makers)) + json.dumps(SHAPES, sort_keys=True)
    path = os.path.join(folder, f"{name}-{hashlib.sha256(sources.encode()).hexdigest()[:8]}")
    if make and not os.path.exists(path):
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


def prepare_llama(folder, name, blocks, kind, *_):
    return cached(folder, f"{name}-{blocks}-{kind}.gguf", lambda path: write_gguf(path, SHAPES[name], int(blocks), kind), write_gguf, gguf_tensors, gguf_type, gguf_numbers)


def work_llama(folder, name, blocks, tokens, threads, kind, flash):
    import llama_cpp as llama
    import numpy
    silence = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(silence, None)
    llama.llama_backend_init()
    options = llama.llama_model_default_params()
    options.use_extra_bufts = not NO_AMX  # its AMX products are extra buffer types
    model = llama.llama_model_load_from_file(prepare_llama(folder, name, blocks, kind).encode(), options)
    settings = llama.llama_context_default_params()
    settings.n_ctx, settings.n_batch, settings.n_ubatch, settings.n_threads, settings.n_threads_batch = 1024, 512, 512, int(threads), int(threads)
    settings.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash == "FA" else llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = llama.llama_init_from_model(model, settings)
    words = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def step(ids):
        tokens_of = (llama.llama_token * len(ids))(*ids)
        if llama.llama_decode(context, llama.llama_batch_get_one(tokens_of, len(ids))):
            sys.exit("llama_decode failed")
        logits = llama.llama_get_logits_ith(context, -1)
        return int(numpy.ctypeslib.as_array(logits, (words,)).argmax())
    system = [one.strip() for one in llama.llama_print_system_info().decode().split("|") if one.strip().endswith("= 1") and "LLAMAFILE" not in one]
    answer(f"llama-cpp-python {llama.__version__} built here ({', '.join(one.split(' =')[0].split()[-1] for one in system)})",
           lambda: stepped(step, int(tokens), lambda: llama.llama_memory_clear(llama.llama_get_memory(context), True)))


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


def prepare_folder(folder, name, blocks, *_):
    return cached(folder, f"{name}-{blocks}", lambda path: write_folder(path, SHAPES[name], int(blocks)), write_folder)


def tower(name, views):
    """A random tower and connector of transformers as one module, and its inputs for so many views"""
    import torch
    if name == "smolvlm-500m":
        from transformers import SmolVLMConfig
        from transformers.models.smolvlm import modeling_smolvlm as smolvlm
        config = SmolVLMConfig(scale_factor=4, vision_config={"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12, "intermediate_size": 3072,
                                                              "patch_size": 16, "image_size": 512}, text_config={"model_type": "llama", "hidden_size": 960})
        vision = smolvlm.SmolVLMVisionTransformer._from_config(config.vision_config, dtype=torch.bfloat16)
        connector = smolvlm.SmolVLMConnector(config).to(torch.bfloat16)

        class Tower(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.vision, self.connector = vision, connector

            def forward(self, pixels):
                return self.connector(self.vision(pixel_values=pixels).last_hidden_state)
        return Tower().eval(), (torch.randn(views, 3, 512, 512).to(torch.bfloat16),)
    if name == "qwen3-vl-2b":
        from transformers.models.qwen3_vl import configuration_qwen3_vl, modeling_qwen3_vl
        config = configuration_qwen3_vl.Qwen3VLVisionConfig(depth=24, hidden_size=1024, intermediate_size=4096, num_heads=16, patch_size=16, out_hidden_size=2048,
                                                            deepstack_visual_indexes=[5, 11, 17])
        side = 2 * int(views ** 0.5)
        vision = modeling_qwen3_vl.Qwen3VLVisionModel._from_config(config, dtype=torch.bfloat16)

        class Windows(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.vision = vision

            def forward(self, pixels):
                out = self.vision(pixels, grid_thw=torch.tensor([[1, side, side]]))
                return out.pooler_output, *out.deepstack_features
        return Windows().eval(), (torch.randn(4 * views, 3 * 2 * 16 * 16).to(torch.bfloat16),)
    return None, None


def work_torch(folder, name, blocks, tokens, threads, views, how):
    import torch
    import transformers
    torch.set_num_threads(int(threads))
    tokens = int(tokens)
    model = transformers.AutoModelForCausalLM.from_pretrained(prepare_folder(folder, name, blocks), dtype=torch.bfloat16).eval()
    vision, pixels = tower(name, int(views)) if int(views) else (None, None)
    cache = None
    if how != "eager":
        model.forward = torch.compile(model.forward, dynamic=False)
        vision = None if vision is None else torch.compile(vision, dynamic=False)
        cache = transformers.StaticCache(config=model.config, max_cache_len=tokens + NEW)
    place = {"at": 0, "past": cache}

    def reset():
        place["at"], place["past"] = 0, cache
        if cache:
            cache.reset()

    def step(ids):
        positions = torch.arange(place["at"], place["at"] + len(ids))
        out = model(input_ids=torch.tensor([ids]), position_ids=positions.view(1, -1), cache_position=positions, past_key_values=place["past"], use_cache=True,
                    logits_to_keep=1)
        place["at"], place["past"] = place["at"] + len(ids), out.past_key_values
        return int(out.logits[0, -1].argmax())

    def turn():
        with torch.inference_mode():
            start = time.perf_counter()
            if vision is not None:
                vision(*pixels)
            return ({} if vision is None else {"vision": ms_since(start)}) | stepped(step, tokens, reset)
    answer(f"torch {torch.__version__}, transformers {transformers.__version__}, {how}", turn)


def work_vllm(folder, name, blocks, tokens, threads):
    os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": threads,
                   "VLLM_NO_USAGE_STATS": "1", "VLLM_TARGET_DEVICE": "cpu",
                   "VLLM_LOGGING_STREAM": "ext://sys.stderr"}
    out = os.dup(1)
    os.dup2(2, 1)  # vLLM and its processes write to stdout
    sys.stdout = os.fdopen(out, "w")
    import vllm
    model = vllm.LLM(model=prepare_folder(folder, name, blocks), dtype="bfloat16", max_model_len=1024, max_num_seqs=1, enable_prefix_caching=False,
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


# ---- OpenVINO: optimum-intel's export in openvino_genai's pipeline; the tower converted by openvino, its int8 by nncf
def write_openvino(path, folder, kind):
    weights = {"bf16": ["fp16"], "int8": ["int8", "--sym"], "int4": ["int4", "--sym", "--group-size", "64", "--ratio", "1.0"]}[kind]
    subprocess.run([os.path.join(os.path.dirname(sys.executable), "optimum-cli"), "export", "openvino", "--task", "text-generation-with-past", "--weight-format",
                    *weights, "-m", folder, path], check=True, stdout=sys.stderr)


def write_openvino_tower(path, name, views, kind):
    import nncf
    import openvino
    import torch
    module, pixels = tower(name, views)
    module = module.float()
    pixels = tuple(one.float() if one.is_floating_point() else one for one in pixels)
    with torch.no_grad():
        # Qwen3-VL's grid becomes a constant in a trace alone, SmolVLM's tower needs an export
        traced = torch.jit.trace(module, pixels, strict=False) if name == "qwen3-vl-2b" else torch.export.export(module, pixels)
        model = openvino.convert_model(traced, **({"example_input": pixels} if name == "qwen3-vl-2b" else {}))
    if kind == "int8":
        model = nncf.quantize(model, nncf.Dataset([tuple(one.numpy() for one in pixels)]), model_type=nncf.ModelType.TRANSFORMER, subset_size=1)
    os.makedirs(path)
    openvino.save_model(model, os.path.join(path, "tower.xml"), compress_to_fp16=False)


def prepare_openvino(folder, name, blocks, views, kind, *_):
    if int(views) and kind != "int4":
        cached(folder, f"{name}-{views}-tower-{kind}", lambda path: write_openvino_tower(path, name, int(views), kind), write_openvino_tower, tower)
    return cached(folder, f"{name}-{blocks}-openvino-{kind}", lambda path: write_openvino(path, prepare_folder(folder, name, blocks), kind), write_openvino)


def fused(openvino, path):
    """The nodes that this plugin makes of a model's attention and MLPs: with the cache inside of the attention there is no Softmax"""
    compiled = openvino.Core().compile_model(os.path.join(path, "openvino_model.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "bf16"})
    kinds = [op.get_rt_info()["layerType"].astype(str) for op in compiled.get_runtime_model().get_ops()]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("ScaledDotProductAttention", "Softmax", "LLMMLP"))


def work_openvino(folder, name, blocks, tokens, threads, views, kind, backend, precision, group):
    import numpy
    import openvino
    import openvino_genai
    import torch
    path = prepare_openvino(folder, name, blocks, views, kind)
    common = {"INFERENCE_NUM_THREADS": int(threads), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    settings = common | {"ATTENTION_BACKEND": backend, "KV_CACHE_PRECISION": "bf16" if precision == "bf16" else "f32"}
    if group != "-":
        settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = group
    if backend == "PA":
        settings["scheduler_config"] = openvino_genai.SchedulerConfig()
        settings["scheduler_config"].max_num_batched_tokens = 2048
        settings["scheduler_config"].enable_prefix_caching = False
        settings["scheduler_config"].cache_size = 1
    model = openvino_genai.LLMPipeline(path, "CPU", **settings)
    generation = openvino_genai.GenerationConfig(max_new_tokens=NEW, ignore_eos=True, do_sample=False, apply_chat_template=False)
    ids, vision = openvino.Tensor(numpy.array([PROMPT[:int(tokens)]], numpy.int64)), None
    if int(views) and kind != "int4":
        tower_path = cached(folder, f"{name}-{views}-tower-{kind}", None, write_openvino_tower, tower)
        vision = openvino.Core().compile_model(os.path.join(tower_path, "tower.xml"), "CPU", common).create_infer_request()
        pixels = [one.float().numpy() if one.is_floating_point() else one.numpy() for one in tower(name, int(views))[1]]

    def turn():
        start = time.perf_counter()
        if vision:
            vision.infer(pixels)
        times = {"vision": ms_since(start)} if vision else {}
        out = model.generate(ids, generation)
        if len(out.tokens[0]) != NEW:
            sys.exit("another number of tokens")
        return times | {"prefill": out.perf_metrics.get_ttft().mean, "decode": out.perf_metrics.get_tpot().mean}
    answer(f"openvino {openvino.__version__.split('-')[0]}, genai {openvino_genai.__version__.split('-')[0]}, optimum-intel "
           f"{importlib.metadata.version('optimum-intel')}, nncf {importlib.metadata.version('nncf')}, torch {torch.__version__}; {fused(openvino, path)}", turn)


# ---- ONNX Runtime, by onnxruntime-genai's own builder
def prepare_onnx(folder, name, blocks, kind, *_):
    made_of = prepare_folder(folder, name, blocks)

    def build(path):
        subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", made_of, "-o", path, "-p", kind, "-e", "cpu", "-c", folder],
                       check=True, stdout=sys.stderr)
    return cached(folder, f"{name}-{blocks}-onnx-{kind}", build, prepare_onnx, write_folder)


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
    answer(f"onnxruntime-genai {onnxruntime_genai.__version__}, onnxruntime {importlib.metadata.version('onnxruntime')}, weights all different", turn)


# One row a peer: name, our row that it is compared with, the variable of its python, modules that it needs, worker, how its files are made, the shapes that it
# lacks; and its configurations, all of which take turns: the best one in each column counts. "views" stands for their number
MOST = str(2 ** 64 - 1)  # a group of a whole row, which its AMX int8 products need
PEERS = [
    ("PyTorch bf16", "bf16", "PEERS_TORCH", "torch, transformers", "torch", prepare_folder, [], {"eager": ["views", "eager"], "compile": ["views", "compile"]}),
    ("OpenVINO bf16", "bf16", "PEERS_OPENVINO", "openvino_genai, optimum.intel, nncf, torch", "openvino", prepare_openvino, ["molmoe-1b"],
     {"PA": ["views", "bf16", "PA", "bf16", "-"], "SDPA": ["views", "bf16", "SDPA", "bf16", "-"]}),
    ("OpenVINO int8", "int8+head", "PEERS_OPENVINO", "openvino_genai, optimum.intel, nncf, torch", "openvino", prepare_openvino, ["molmoe-1b"],
     {"PA, DQ max": ["views", "int8", "PA", "bf16", MOST], "SDPA, DQ max": ["views", "int8", "SDPA", "bf16", MOST]}),
    ("OpenVINO int4", "int4+head", "PEERS_OPENVINO", "openvino_genai, optimum.intel, nncf, torch", "openvino", prepare_openvino, ["molmoe-1b"],
     {"PA": ["views", "int4", "PA", "bf16", "-"], "PA, f32, DQ 64": ["views", "int4", "PA", "f32", "64"]}),
    ("ONNX Runtime int4", "int4+head", "PEERS_ONNX", "onnxruntime_genai, onnx_ir, torch, transformers", "onnx", prepare_onnx, [], {"": ["int4"]}),
    ("vLLM bf16", "bf16", "PEERS_VLLM", "vllm", "vllm", None, [], {"eager": []}),
    *(("llama.cpp " + kind.upper(), ours, "PEERS_LLAMA", "llama_cpp, gguf, numpy", "llama", prepare_llama, [], {"FA off": [kind, "-"], "FA on": [kind, "FA"]})
      for kind, ours in (("bf16", "bf16"), ("q8_0", "int8"), ("q4_0", "int4"), ("q4_k_m", "int4"))),
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
    def __init__(self, name, command, how=""):
        self.name, self.how, self.turns, self.command, self.once = name, how, [], command, {"open": [], "first": [], "memory": []}
        self.label, self.base = f"{name}, {how}" if how else name, None  # base: this project's, where they were open together

    def open(self):
        start = time.perf_counter()
        environment = dict(os.environ, TOKENIZERS_PARALLELISM="true", HF_HUB_OFFLINE="1", **({"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"} if NO_AMX else {}))
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
            raise EOFError(self.label)
        return line.strip()

    def turn(self):
        most = float(os.environ.get("PEERS_CALM", "0")) / 100.0
        for _ in range(8 if most else 1):
            start, everyone, own = time.time(), cpu_s() if most else 0.0, cpu_s(self.process.pid) if most else 0.0
            times = self.one_turn()
            if not most or cpu_s() - everyone - (cpu_s(self.process.pid) - own) <= most * os.cpu_count() * (time.time() - start) + 0.02:
                return times
            time.sleep(1.0)
        print(f"  {self.label}: other programs used the cores in 8 turns; the last one counts")
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


def take_turns(peers, rounds):
    """Opens all of them, lets each take a turn that does not count, then one a round; takes out those that end. peers[0] is this project."""
    for number in range(-1, rounds):
        for peer in list(peers):
            try:
                if number < 0:
                    peer.open()
                    print(f"  {peer.label}: {peer.ready}", flush=True)
                    peer.first()
                    continue
                time.sleep(0.2)
                peer.turns.append(peer.turn())
                print(f"  {peer.label}: " + ", ".join(f"{key} {value:.2f}" for key, value in peer.turns[-1].items()), file=sys.stderr, flush=True)
            except (EOFError, OSError):
                if peer is peers[0]:
                    sys.exit(f"peers.py: {peer.label} ended")
                print(f"  left out: {peer.label} (its program ended; standard error says why)", flush=True)
                peers.remove(peer)
    for peer in peers:
        peer.close()


def ratios(peer, base, key):
    return [turn[key] / first[key] for turn, first in zip(peer.turns, base.turns)]


def print_turns(peers, rows):
    for key in rows:
        for peer in peers:
            if peer.turns and key in peer.turns[0]:
                values = [turn[key] for turn in peer.turns]
                print(f"  {key:13} {peer.label:30} {statistics.median(values):10.2f} ms  {statistics.median(ratios(peer, peers[0], key)):6.2f} x  "
                      f"[{' '.join('%.2f' % value for value in values)}]")


def cell(base, variants, key):
    """The best of the configurations: its median and the median, least and most of its ratios round by round"""
    there = [peer for peer in variants if peer.turns and key in peer.turns[0]]
    if not there:
        return "- | -"
    best = min(there, key=lambda peer: statistics.median(turn[key] for turn in peer.turns))
    values = sorted(ratios(best, best.base or base, key))
    said = f" ({best.how})" if len(there) > 1 else ""
    return f"{statistics.median(turn[key] for turn in best.turns):.1f}{said} | {statistics.median(values):.2f} [{values[0]:.2f} {values[-1]:.2f}]"


def print_table(groups):
    """groups: this project's peer and a peer's configurations; the table of peers.md"""
    print("\n| peer | tried | ours | vision, ms | ratio | prefill, ms | ratio | decode step, ms | ratio | open, ms | memory, MB |\n" + "|---" * 11 + "|")
    for base, variants in groups:
        if variants:
            once = [f"{min(statistics.median(peer.once[key]) for peer in variants):.0f}" if variants[0].once[key] else "-" for key in ("open", "memory")]
            tried = "; ".join(peer.how for peer in variants if peer.how) or "-"
            print(f"| {variants[0].name} | {tried} | {base.name} | {' | '.join(cell(base, variants, key) for key in ('vision', 'prefill', 'decode'))} | {' | '.join(once)} |")


def main():
    get = os.environ.get
    name = get("PEERS_SHAPE", "molmoe-1b")
    rounds, tokens = int(get("PEERS_ROUNDS", "5")), get("PEERS_TOKENS", "451")
    cut = get("PEERS_BLOCKS", "2" if name == "molmoe-1b" else "0")
    views, tower_blocks = get("PEERS_VIEWS", str(SHAPES[name]["views"])), get("PEERS_TOWER", cut)
    threads, only = get("PEERS_THREADS", str(os.cpu_count())), get("PEERS_ONLY", "crops model").split()
    torch, reference = get("PEERS_TORCH"), get("PEERS_REFERENCE")
    reference_python = get("PEERS_REFERENCE_PYTHON", torch)
    ours, me = os.path.join(HERE, "../../build/bench/bench_peers"), os.path.abspath(__file__)
    photo = get("PEERS_PHOTO", os.path.join(HERE, "../../samples/astronaut.jpg"))
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
        if has(torch, "torchvision, PIL"):
            peers += [Peer(f"torchvision, {count} threads", [torch, me, "torchvision", photo, rows, columns, count]) for count in sorted({"1", threads})]
        else:
            left_out("torchvision", "PEERS_TORCH has no torchvision or PIL")
        print(f"\na photograph, {os.path.basename(photo)}, decoded, to {made_of} views of normalised patches")
        take_turns(peers, rounds)
        print_turns(peers, ["crops"])
    if "model" in only:
        with tempfile.TemporaryDirectory() as made:
            folder, shape = get("PEERS_FOLDER", made), SHAPES[name]
            blocks = cut if cut != "0" else str(shape["blocks"])
            wanted = [one for one in get("PEERS_MODELS", "").split(",") if one]
            model = name if views != "0" else prepare_folder(folder, name, blocks)
            gemm = ["avx512bf16"] if NO_AMX else []

            def own(weights):
                return Peer("vlmprof " + weights, [ours, "engine", model, tower_blocks, cut, views, tokens, weights, *gemm])
            mine = [own(weights) for weights in ["bf16", *get("PEERS_WEIGHTS", "int8 int4 int8+head int4+head").split()]]
            groups = [(mine[0], [peer]) for peer in mine]
            if name == "molmoe-1b" and reference and has(reference_python, "torch, transformers, einops"):
                groups.append((mine[0], [Peer("reference bf16", [reference_python, me, "reference", reference, tower_blocks, blocks, views, tokens, threads])]))
            elif name == "molmoe-1b":
                left_out("the reference", "PEERS_REFERENCE, or a python with torch, transformers and einops")
            for peer, against, variable, modules, worker, prepare, lacks, configurations in PEERS:
                python = get(variable, torch if variable in ("PEERS_OPENVINO", "PEERS_ONNX") else None)
                if wanted and peer not in wanted:
                    continue
                if name in lacks:
                    left_out(peer, "not tried in this shape")
                    continue
                if not has(python, modules):
                    left_out(peer, f"{variable}, a python with {modules}")
                    continue
                rest = {how: [views if one == "views" else one for one in more] for how, more in configurations.items()}
                if get("PEERS_PREPARE"):
                    more = next(iter(rest.values()))
                    if prepare and subprocess.run([python, me, "prepare", prepare.__name__, folder, name, blocks, *more], check=False).returncode:
                        left_out(peer, "its file could not be made")
                    continue
                base = next((one for one in mine if one.name == "vlmprof " + against), mine[0])
                groups.append((base, [Peer(peer, [python, me, worker, folder, name, blocks, tokens, threads, *more], how) for how, more in rest.items()]))
            if get("PEERS_PREPARE"):
                return
            print(f"\n{name}: {'all' if cut == '0' else tower_blocks} blocks of the tower, {views} views; {blocks} blocks of the language model, {tokens} tokens; a decode step")
            if get("PEERS_ALONE"):
                take_turns(mine, rounds)
                for at, (base, variants) in enumerate(groups[len(mine):], len(mine)):
                    for variant in variants:
                        variant.base = own(base.name.split()[1])
                        take_turns([variant.base, variant], rounds)
                    groups[at] = (base, [variant for variant in variants if variant.turns])
            else:
                everyone = mine + [peer for _, variants in groups[len(mine):] for peer in variants]
                take_turns(everyone, rounds)
                groups = [(base, [peer for peer in variants if peer in everyone]) for base, variants in groups]
            print_turns(mine + [peer for _, variants in groups[len(mine):] for peer in variants], ["vision", "prefill", "decode"])
            print_table(groups)


if __name__ == "__main__":
    workers = {"torchvision": work_torchvision, "reference": work_reference, "llama": work_llama,
               "torch": work_torch, "openvino": work_openvino, "onnx": work_onnx, "vllm": work_vllm,
               "prepare": lambda prepare, *of: globals()[prepare](*of)}
    if len(sys.argv) > 1 and sys.argv[1] in workers:
        workers[sys.argv[1]](*sys.argv[2:])
    else:
        main()
