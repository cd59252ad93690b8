"""From a picture to crops and to the order of the tokens: what vlmprof does for --tier low|medium|high, in PyTorch."""
import csv
import functools
import os
import subprocess

import numpy as np
import torch

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TIERS = ["low", "medium", "high"]
MEAN = torch.tensor([0.48145466, 0.4578275, 0.40821073]).view(3, 1, 1)
STD = torch.tensor([0.26862954, 0.26130258, 0.27577711]).view(3, 1, 1)
PROGRAM = os.environ.get("VLMPROF", os.path.join(ROOT, "vlmprof"))


@functools.lru_cache(None)
def tiling(width, height, tier):
    """the program's own answer: one row of `vlmprof tile --csv` as integers"""
    out = subprocess.run([PROGRAM, "tile", f"{width}x{height}", "--tier", tier, "--csv"], check=True, capture_output=True, text=True).stdout
    row = next(csv.DictReader(out.splitlines()))
    return {k: int(v) for k, v in row.items() if v.lstrip("-").isdigit()}


def resize_fill(picture, resized, target):
    """picture u8 [h, w, 3] -> f32 [3, target h, target w] in 0..1, resized and centre-cropped"""
    x = torch.from_numpy(picture).permute(2, 0, 1).contiguous().float() / 255
    if tuple(x.shape[1:]) != tuple(resized):
        x = torch.nn.functional.interpolate(x[None], size=resized, mode="bilinear", antialias=True, align_corners=False)[0]
    top, left = (resized[0] - target[0]) // 2, (resized[1] - target[1]) // 2
    return x.clip(0, 1)[:, top:top + target[0], left:left + target[1]]


def crops_of(picture, tier):
    """f32 [crops, 3, 336, 336] in 0..1, the global view first, and for each crop (scale x, scale y, left, top) from picture to crop pixels"""
    height, width, _ = picture.shape
    t = tiling(width, height, tier)
    small = (t["global_resized_height_px"], t["global_resized_width_px"])
    large = (t["resized_height_px"], t["resized_width_px"])
    whole = resize_fill(picture, small, (336, 336))
    tiled = resize_fill(picture, large, (t["target_height_px"], t["target_width_px"]))
    crops, places = [whole], [(small[1] / width, small[0] / height, (small[1] - 336) // 2, (small[0] - 336) // 2)]
    for i in range(t["rows"]):
        for j in range(t["cols"]):
            crops.append(tiled[:, 224 * i:224 * i + 336, 224 * j:224 * j + 336])
            places.append((large[1] / width, large[0] / height, t["crop_left"] + 224 * j, t["crop_top"] + 224 * i))
    return torch.stack(crops), places


def normalise(crops):
    return (crops - MEAN) / STD


def patches_of(crops):
    """[n, 3, 336, 336] -> [n, 576, 588]; a patch is in the order y, x, channel"""
    n = crops.shape[0]
    return crops.view(n, 3, 24, 14, 24, 14).permute(0, 2, 4, 3, 5, 1).reshape(n, 576, 588)


@functools.lru_cache(None)
def token_layout(rows, cols):
    """image tokens as 's', 'e', 'p', 'c' (start, end, patch, column) and for each patch token the pooled feature it takes, crop * 144 + cell"""
    kinds, takes = ["s"], []
    for y in range(12):
        kinds += ["p"] * 12 + ["c"]
        takes += [12 * y + x for x in range(12)]
    kinds += ["e", "s"]
    height, width = 8 * rows + 4, 8 * cols + 4
    grid = np.full((height, width), -1, np.int64)
    for i in range(rows):
        for j in range(cols):
            for y in range(2 if i else 0, 10 if i < rows - 1 else 12):
                for x in range(2 if j else 0, 10 if j < cols - 1 else 12):
                    grid[8 * i + y, 8 * j + x] = (1 + i * cols + j) * 144 + 12 * y + x
    assert (grid >= 0).all()
    for line in grid:
        kinds += ["p"] * width + ["c"]
        takes += list(line)
    return "".join(kinds + ["e"]), np.array(takes)
