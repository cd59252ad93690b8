"""Writes a Hugging Face folder of a small vision-language model with random weights, for vLLM and `transformers serve`.

    python3 tiny_checkpoint.py qwen2_vl_hf|llava_1_5 OUT_DIR

Needs transformers 5 with torch and torchvision. vLLM's attention on a CPU takes heads of 32 numbers, and no fewer than 32 of them."""
import argparse
import os
import re

import torch
import transformers as t
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
           "<image>", "<unk>", "<pad>"]
WIDTH, HEADS, BLOCKS = 1024, 32, 2
IMAGE = {"qwen2_vl_hf": "<|vision_start|><|image_pad|><|vision_end|>", "llava_1_5": "<image>"}
CHAT = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
        "{% if c['type'] in ('image', 'image_url') %}IMAGE{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def byte_tokenizer():
    """A token for each byte, without merges."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(SPECIAL)
    return raw


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=sorted(IMAGE))
    parser.add_argument("out_dir")
    a = parser.parse_args()
    torch.manual_seed(0)
    raw = byte_tokenizer()
    ids = {name: raw.token_to_id(name) for name in SPECIAL}
    chat = CHAT.replace("IMAGE", IMAGE[a.family])
    text = dict(vocab_size=512, hidden_size=WIDTH, intermediate_size=WIDTH, num_hidden_layers=BLOCKS, num_attention_heads=HEADS,
                num_key_value_heads=HEADS, max_position_embeddings=32768, bos_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|im_end|>"])
    if a.family == "qwen2_vl_hf":
        tokenizer = t.Qwen2TokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>", unk_token="<unk>", chat_template=chat)
        text["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
        config = t.Qwen2VLConfig(
            text_config=text, vision_config=dict(depth=2, embed_dim=128, hidden_size=WIDTH, num_heads=4, mlp_ratio=2, patch_size=14),
            image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
            vision_end_token_id=ids["<|vision_end|>"])
        model = t.Qwen2VLForConditionalGeneration(config)
        processor = t.Qwen2VLProcessor(t.Qwen2VLImageProcessor(size={"shortest_edge": 3136, "longest_edge": 12845056}), tokenizer,
                                       t.Qwen2VLVideoProcessor(), chat_template=chat)
    else:
        tokenizer = t.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<pad>", unk_token="<unk>", chat_template=chat)
        config = t.LlavaConfig(
            text_config=t.LlamaConfig(**text), image_token_index=ids["<image>"], vision_feature_layer=-2,
            vision_config=t.CLIPVisionConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, image_size=336,
                                             patch_size=14))
        model = t.LlavaForConditionalGeneration(config)
        processor = t.LlavaProcessor(t.CLIPImageProcessor(size={"shortest_edge": 336}, crop_size={"height": 336, "width": 336}), tokenizer,
                                     patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1, image_token="<image>",
                                     chat_template=chat)
    # only letters are ever the likeliest: an answer has a character for each token, and ends at max_tokens
    letters = [i for c, i in raw.get_vocab().items() if c.isascii() and c.isalnum()]
    output = torch.zeros_like(model.lm_head.weight.data)
    output[letters] = torch.randn(len(letters), WIDTH)
    model.lm_head.weight.data = output
    model.save_pretrained(a.out_dir)
    processor.save_pretrained(a.out_dir)
    if a.family == "llava_1_5":  # the names of the published checkpoint, which vLLM reads; transformers 5 writes shorter ones
        path = os.path.join(a.out_dir, "model.safetensors")
        tensors = {re.sub(r"vision_tower\.(?!vision_model)", "vision_tower.vision_model.", name): value for name, value in load_file(path).items()}
        save_file(tensors, path, {"format": "pt"})


if __name__ == "__main__":
    main()
