"""Stage 1: the vision tower alone, on dense labels of every pooled token."""
import concurrent.futures
import math
import os
import time

import numpy as np
import torch
from torch.nn import functional as F

import data
import draw
import model
import preprocess

WEIGHTS = {"shape": 1.0, "color": 1.0, "center": 0.3, "kind": 0.7, "tens": 1.0, "units": 1.0, "word": 1.0, "row": 0.1, "column": 0.1}
CHARS_WEIGHT = 0.5
BATCH = 16
MUON_LR, ADAM_LR = 0.01, 1.5e-3


def save(path, state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def factor(step, steps, warm=100):
    """warm-up, then cosine to 0"""
    return min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * step / steps))


class Crops:
    def __init__(self, folder, parts):
        names = [os.path.join(folder, f"crops{p:03d}") for p in range(parts)]
        self.files = [os.open(n + ".pixels.npy", os.O_RDONLY) for n in names]
        self.crop_bytes = 3 * 336 * 336
        self.skip = os.fstat(self.files[0]).st_size - data.PART * self.crop_bytes  # the header of .npy
        self.labels = np.concatenate([np.load(n + ".labels.npy") for n in names])
        self.chars = np.concatenate([np.load(n + ".chars.npy") for n in names])

    def __len__(self):
        return len(self.labels)

    def batch(self, rows):
        # read, not mapped: a mapping is read page by page where the page cache is short
        raw = b"".join(os.pread(self.files[r // data.PART], self.crop_bytes, self.skip + r % data.PART * self.crop_bytes) for r in rows)
        x = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(-1, 3, 336, 336)
        x = preprocess.patches_of(x).float().view(-1, 588 // 3, 3)  # turned into patches while it is bytes
        x = (x / 255 - preprocess.MEAN.view(3)) / preprocess.STD.view(3)
        chars = np.unpackbits(self.chars[rows], axis=-1)[..., :len(draw.CHARS)]
        return x.view(len(rows), 576, 588), torch.from_numpy(self.labels[rows]).long(), torch.from_numpy(chars).float()


def make_heads():
    return torch.nn.Linear(model.D, sum(draw.LABEL_CLASSES.values()) + len(draw.CHARS))


def losses(features, heads, labels, chars):
    """total loss and {label: (loss, share of tokens that are right)}; features are compared after the norm that the language model applies"""
    logits = heads(model.rms(features))
    parts = logits.split(list(draw.LABEL_CLASSES.values()) + [len(draw.CHARS)], -1)
    total, seen = 0.0, {}
    for i, name in enumerate(draw.LABELS):
        y, z = labels[:, i].reshape(-1), parts[i].reshape(-1, parts[i].shape[-1])
        valid = y >= 0
        loss = F.cross_entropy(z, y, ignore_index=-100, reduction="sum") / valid.sum().clip(1)
        total = total + WEIGHTS[name] * loss
        counted = valid & (y > 0) if name in ("shape", "color", "center", "kind") else valid  # "nothing here" is too easy to count
        seen[name] = (float(loss.detach()), float((z.argmax(-1) == y)[counted].float().mean()) if counted.any() else 0.0)
    some = chars.any(-1).sum().clip(1)
    loss = F.binary_cross_entropy_with_logits(parts[-1], chars, reduction="sum") / some
    right = ((parts[-1] > 0) == (chars > 0)).all(-1)[chars.any(-1)].float().mean()
    seen["chars"] = (float(loss.detach()), float(right))
    return total + CHARS_WEIGHT * loss, seen


def train(folder, parts, steps, seed, say_every=100, save_every=300):
    path = os.path.join(folder, "tower.pt")
    torch.manual_seed(seed)
    tower, heads = model.Tower(), make_heads()
    matrices, rest = model.muon_split(tower)
    muon = model.Muon(matrices, MUON_LR)
    adam = torch.optim.AdamW(rest + list(heads.parameters()), lr=ADAM_LR, betas=(0.9, 0.98), weight_decay=0.0)
    first = 0
    if os.path.exists(path):
        state = torch.load(path)
        tower.load_state_dict(state["tower"]), heads.load_state_dict(state["heads"]), adam.load_state_dict(state["adam"]), muon.load(state["muon"])
        first = state["step"]
    if first >= steps:
        return tower.eval()
    crops = Crops(os.path.join(folder, "crops"), parts)
    held = crops.batch(np.arange(len(crops) - 96, len(crops)))
    count, averages, began = len(crops) - data.PART, {}, time.time()  # the last part is held out

    def batch(step):
        return crops.batch(np.random.default_rng([seed, 2, step]).integers(0, count, BATCH))

    ahead = concurrent.futures.ThreadPoolExecutor(1)
    coming = ahead.submit(batch, first)
    for step in range(first, steps):
        patches, labels, chars = coming.result()
        coming = ahead.submit(batch, step + 1)
        loss, seen = losses(tower(patches, torch.bfloat16), heads, labels, chars)
        for p in tower.parameters():
            p.grad = None
        heads.zero_grad()
        loss.backward()
        f = factor(step, steps)
        for group in adam.param_groups:
            group["lr"] = ADAM_LR * f
        torch.nn.utils.clip_grad_norm_(rest + list(heads.parameters()), 5.0)
        muon.step(f)
        adam.step()
        for k, v in seen.items():
            averages[k] = [0.98 * a + 0.02 * b for a, b in zip(averages.get(k, v), v)]
        if (step + 1) % say_every == 0:
            print(f"tower {step + 1}/{steps} {(time.time() - began) / (step + 1 - first):.3f} s/step  " +
                  "  ".join(f"{k} {a:.2f} {b:.2f}" for k, (a, b) in averages.items()), flush=True)
        if (step + 1) % save_every == 0 or step + 1 == steps:
            tower.eval()
            with torch.no_grad():
                _, seen = losses(tower(held[0]), heads, held[1], held[2])
            tower.train()
            print("tower held out: " + "  ".join(f"{k} {b:.2f}" for k, (_, b) in seen.items()), flush=True)
            save(path, {"tower": tower.state_dict(), "heads": heads.state_dict(), "adam": adam.state_dict(), "muon": muon.state(), "step": step + 1})
    return tower.eval()
