"""Stage 1's crops: drawn once by two processes into memory maps, with their labels."""
import multiprocessing
import os
import sys

import numpy as np
import torch

import draw
import preprocess

PART = 500  # crops a file; a part that exists is not drawn again


def crowd_crop(rng):
    s = draw.crowd(rng)
    crop = preprocess.resize_fill(draw.picture_of(s), (336, 336), (336, 336))
    return crop, draw.labels_of(s, 336 / s["width"], 336 / s["height"], 0, 0)


def scene_crops(rng):
    s = draw.scene(rng)
    tier = preprocess.TIERS[rng.integers(3)]
    crops, places = preprocess.crops_of(draw.picture_of(s), tier)
    for i in rng.permutation(len(crops))[:3]:
        yield crops[i], draw.labels_of(s, *places[i])


def draw_part(job):
    folder, part, seed, share = job
    name = os.path.join(folder, f"crops{part:03d}")
    if os.path.exists(name + ".labels.npy"):
        return part
    torch.set_num_threads(1)
    rng = np.random.default_rng([seed, 1, part])
    pixels = np.empty((PART, 3, 336, 336), np.uint8)
    labels = np.empty((PART, len(draw.LABELS), 144), np.int8)
    chars = np.empty((PART, 144, len(draw.CHARS)), np.uint8)
    n = 0
    while n < PART:
        for crop, (l, c) in (scene_crops(rng) if rng.random() < share / 3 else [crowd_crop(rng)]):
            if n < PART:
                pixels[n], labels[n], chars[n] = (crop * 255).round().byte().numpy(), l, c
                n += 1
    np.save(name + ".pixels.npy", pixels)
    np.save(name + ".chars.npy", np.packbits(chars, axis=-1))
    np.save(name + ".labels.npy", labels)  # last: it says that the part is whole
    return part


def draw_crops(folder, parts, seed, share=0.2, workers=2):
    os.makedirs(folder, exist_ok=True)
    with multiprocessing.Pool(workers) as pool:
        for i in pool.imap_unordered(draw_part, [(folder, p, seed, share) for p in range(parts)]):
            print(f"data: crops part {i + 1} of {parts}", flush=True)


if __name__ == "__main__":
    draw_crops(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
