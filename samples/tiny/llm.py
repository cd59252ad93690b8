"""Stage 2: features of the frozen tower, kept on disk, and the language model trained on them, many questions behind one picture."""
import math
import multiprocessing
import os
import pickle
import time

import numpy as np
import torch
from torch.nn import functional as F

import draw
import export
import model
import preprocess
from tower import save

PART = 100                       # pictures a file of features
BATCHES = [8, 4, 3]              # pictures a step at low, medium, high
QUESTIONS = 12
PER_KIND = {"number": 3, "word": 2, "color": 3, "shape": 4}
MUON_LR, ADAM_LR, BALANCE = 0.015, 2e-3, 0.01
TOP_KS, TOP_K_SHARES = [1, 2, 3, 4], [0.02, 0.53, 0.15, 0.30]  # 1 hardly ever, or the model learns to do without the second expert
DROPS, DROP_SHARES = [(1,), (2,), (3,), (1, 3), (1, 2), (2, 3)], [0.2, 0.1, 0.2, 0.3, 0.1, 0.1]
VALIDATION = 100                 # pictures a tier

# ---- the tower as shipped, and its features


@torch.no_grad()
def finish_tower(folder):
    """scales the features to a mean square of 1 (training saw them behind a norm only) and rounds to bfloat16, once"""
    path = os.path.join(folder, "tower-final.pt")
    tower = model.Tower()
    if not os.path.exists(path):
        tower.load_state_dict(torch.load(os.path.join(folder, "tower.pt"))["tower"])
        rng, squares = np.random.default_rng(0), []
        for i in range(12):
            crops, _ = preprocess.crops_of(draw.picture_of(draw.scene(rng)), preprocess.TIERS[i % 3])
            squares.append(tower(preprocess.patches_of(preprocess.normalise(crops))).square().mean())
        tower.w2 /= torch.stack(squares).mean().sqrt()
        save(path, export.round_to_bf16(tower).state_dict())
    tower.load_state_dict(torch.load(path))
    return tower.eval()


@torch.no_grad()
def features_part(job):
    folder, seed, split, tier, part = job
    path = os.path.join(folder, "features", f"{split}-{preprocess.TIERS[tier]}{part:03d}.pkl")
    if os.path.exists(path):
        return path
    torch.set_num_threads(1)
    tower, out = finish_tower(folder), []
    for i in range(PART):
        s = draw.scene(np.random.default_rng([seed, {"train": 3, "check": 5}[split], tier, part * PART + i]))
        crops, _ = preprocess.crops_of(draw.picture_of(s), preprocess.TIERS[tier])
        f = tower(preprocess.patches_of(preprocess.normalise(crops)), torch.bfloat16)
        out.append((s, f.reshape(-1, model.D).half().numpy()))
    with open(path + ".new", "wb") as f:
        pickle.dump(out, f)
    os.replace(path + ".new", path)
    return path


def make_features(folder, seed, pictures, workers=2):
    """pictures: how many at each tier"""
    os.makedirs(os.path.join(folder, "features"), exist_ok=True)
    finish_tower(folder)
    jobs = [(folder, seed, "check", t, 0) for t in range(3)]
    jobs += [(folder, seed, "train", t, p) for t in range(3) for p in range(pictures[t] // PART)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for n, path in enumerate(pool.imap(features_part, jobs)):
            if n % 10 == 9 or n + 1 == len(jobs):
                print(f"cache: {n + 1} of {len(jobs)} parts", flush=True)
    return jobs


def load_features(folder, split, tier, pictures):
    out = []
    for part in range(pictures // PART):
        with open(os.path.join(folder, "features", f"{split}-{preprocess.TIERS[tier]}{part:03d}.pkl"), "rb") as f:
            out += pickle.load(f)
    return out


# ---- a batch: pictures of one size, so that their image tokens have one length


class Batch:
    def __init__(self, tokens, items, tier, asked):
        """items: [(scene, features)]; asked: for each [(kind, question, answer)]"""
        t = preprocess.tiling(items[0][0]["width"], items[0][0]["height"], preprocess.TIERS[tier])
        kinds, takes = preprocess.token_layout(t["rows"], t["cols"])
        names = {"s": "<im_start>", "e": "<im_end>", "p": "<im_patch>", "c": "<im_col>"}
        prefix = [tokens.eos] + [tokens.ids[names[c]] for c in kinds]
        self.where = torch.tensor([i + 1 for i, c in enumerate(kinds) if c == "p"])
        self.features = torch.from_numpy(np.stack([f[takes] for _, f in items])).float()
        self.first, n = len(prefix), len(items)
        rows, owners, places, self.targets, self.asked = [], [], [], [], []
        for b, questions in enumerate(asked):
            row, owner, place = list(prefix), [-1] * self.first, list(range(self.first))
            for q, (kind, question, answer) in enumerate(questions):
                prompt, reply = tokens.prompt(question), tokens.answer(answer)
                at = len(row) + len(prompt) - 1 - self.first
                self.targets += [(b, at + i, r, len(self.asked)) for i, r in enumerate(reply)]
                self.asked.append((kind, items[b][0]))
                row += prompt + reply[:-1]
                owner += [q] * (len(prompt) + len(reply) - 1)
                place += range(self.first, self.first + len(prompt) + len(reply) - 1)
            rows.append(row), owners.append(owner), places.append(place)
        longest = max(map(len, rows))
        pad = [longest - len(r) for r in rows]
        self.ids = torch.tensor([r + [tokens.eos] * p for r, p in zip(rows, pad)])
        self.positions = torch.tensor([r + [0] * p for r, p in zip(places, pad)])[:, None]
        owner = torch.tensor([o + [-2] * p for o, p in zip(owners, pad)])
        sees = (owner[:, None, :] == -1) | (owner[:, None, :] == owner[:, :, None])
        sees &= torch.ones(longest, longest, dtype=torch.bool).tril()
        mask = torch.zeros(n, 1, longest, longest, dtype=torch.bfloat16).masked_fill_(~sees[:, None], -30000.0)
        self.mask = mask.expand(n, model.HEADS, longest, longest).reshape(n * model.HEADS, longest, longest)
        b, at, reply, number = (torch.tensor(v) for v in zip(*self.targets))
        self.b, self.at, self.reply, self.number = b, at, reply, number

    def logits(self, llm, top_k, active=None):
        x = F.embedding(self.ids, llm.embedding)
        x = x.index_add(1, self.where, self.features)
        h, balance = llm(x, self.positions, self.mask, top_k, active, first=self.first)
        return F.linear(h[self.b, self.at], llm.head), balance


def draw_batch(tokens, pool, tier, rng):
    """pool: the tier's pictures by size"""
    sizes = list(pool)
    share = np.array([len(pool[s]) for s in sizes], float)
    group = pool[sizes[rng.choice(len(sizes), p=share / share.sum())]]
    items = [group[i] for i in rng.integers(0, len(group), BATCHES[tier])]
    asked = []
    for s, _ in items:
        questions = draw.questions_of(rng, s, PER_KIND)
        asked.append([questions[i] for i in rng.permutation(len(questions))[:QUESTIONS]])
    return Batch(tokens, items, tier, asked)


def by_size(items):
    pool = {}
    for item in items:
        pool.setdefault((item[0]["width"], item[0]["height"]), []).append(item)
    return pool


@torch.no_grad()
def check(llm, tokens, pools, top_k, active=None):
    """{tier: {kind: share right}}: a question is right when every token of the answer is, which greedy decoding then writes too"""
    out = []
    for tier, pool in enumerate(pools):
        counts = {}
        for group in pool.values():
            for i in range(0, len(group), BATCHES[tier]):
                items = group[i:i + BATCHES[tier]]
                rng = np.random.default_rng(len(items))
                batch = Batch(tokens, items, tier, [draw.questions_of(rng, s, {k: 1 for k in PER_KIND}) for s, _ in items])
                right = torch.ones(len(batch.asked), dtype=torch.bool)
                right[batch.number[batch.logits(llm, top_k, active)[0].argmax(-1) != batch.reply]] = False
                for (kind, s), r in zip(batch.asked, right.tolist()):
                    if kind == "number" and [t["h"] for t in s["texts"] if t["kind"] == "number"][0] < draw.SMALL_PRINT:
                        kind = "small"
                    counts.setdefault(kind, []).append(r)
        out.append({k: sum(v) / len(v) for k, v in sorted(counts.items())})
        out[-1]["all"] = sum(map(sum, counts.values())) / sum(map(len, counts.values()))
    return out


def importance(folder, llm, tokens):
    """{block: loss of accuracy without it, in points, on pictures apart from the held-out set}; the program always keeps the first and the last"""
    checks = [by_size(load_features(folder, "check", t, VALIDATION)) for t in range(3)]
    blocks, out = list(range(model.BLOCKS)), {}
    whole = sum(row["all"] for row in check(llm, tokens, checks, model.TOP_K)) / 3
    for b in blocks:
        left = sum(row["all"] for row in check(llm, tokens, checks, model.TOP_K, [i for i in blocks if i != b])) / 3
        out[str(b)] = round(100 * (whole - left), 2)
    return out


def load(folder, tokens):
    llm = model.Llm(tokens.rows)
    llm.load_state_dict(torch.load(os.path.join(folder, "llm.pt"))["llm"])
    return export.round_to_bf16(llm).eval()


def factor(step, steps, warm=150):
    """warm-up, flat for half, cosine to 0"""
    t = step / steps
    return min(1.0, (step + 1) / warm) * (1.0 if t < 0.5 else 0.5 * (1 + math.cos(math.pi * (t - 0.5) / 0.5)))


def train(folder, tokens, pictures, steps, seed, say_every=50, save_every=250, check_every=2000):
    path = os.path.join(folder, "llm.pt")
    torch.manual_seed(seed + 1)
    llm = model.Llm(tokens.rows)
    matrices, rest = model.muon_split(llm)
    muon, adam = model.Muon(matrices, MUON_LR, torch.bfloat16), torch.optim.AdamW(rest, lr=ADAM_LR, betas=(0.9, 0.98), weight_decay=0.0)
    first = 0
    if os.path.exists(path):
        state = torch.load(path)
        llm.load_state_dict(state["llm"]), adam.load_state_dict(state["adam"]), muon.load(state["muon"])
        first = state["step"]
    if first >= steps:
        return llm.eval()
    pools = [by_size(load_features(folder, "train", t, pictures[t])) for t in range(3)]
    checks = [by_size(load_features(folder, "check", t, VALIDATION)) for t in range(3)]
    averages, began = {}, time.time()
    for step in range(first, steps):
        rng = np.random.default_rng([seed, 4, step])
        done = step / steps
        tier = rng.choice(3, p=[0.85, 0.10, 0.05] if done < 0.3 else [0.40, 0.35, 0.25])
        top_k = int(rng.choice(TOP_KS, p=TOP_K_SHARES))
        active = None
        if done > 0.25 and rng.random() < 0.3:
            dropped = DROPS[rng.choice(len(DROPS), p=DROP_SHARES)]
            active = [i for i in range(model.BLOCKS) if i not in dropped]
        batch = draw_batch(tokens, pools[tier], tier, rng)
        logits, balance = batch.logits(llm, top_k, active)
        answer_loss = F.cross_entropy(logits, batch.reply)
        for p in llm.parameters():
            p.grad = None
        (answer_loss + BALANCE * balance).backward()
        f = factor(step, steps)
        for group in adam.param_groups:
            group["lr"] = ADAM_LR * f
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        muon.step(f)
        adam.step()
        for k, v in ((preprocess.TIERS[tier], float(answer_loss.detach())), ("balance", float(balance.detach()))):
            averages[k] = 0.97 * averages.get(k, v) + 0.03 * v
        if (step + 1) % say_every == 0:
            print(f"llm {step + 1}/{steps} {(time.time() - began) / (step + 1 - first):.3f} s/step  " +
                  "  ".join(f"{k} {v:.3f}" for k, v in averages.items()), flush=True)
        if (step + 1) % save_every == 0 or step + 1 == steps:
            save(path, {"llm": llm.state_dict(), "adam": adam.state_dict(), "muon": muon.state(), "step": step + 1})
        if (step + 1) % check_every == 0 or step + 1 == steps:
            for t, row in zip(preprocess.TIERS, check(llm, tokens, checks, model.TOP_K)):
                print(f"llm held out, {t}: " + "  ".join(f"{k} {v:.2f}" for k, v in row.items()), flush=True)
    return llm.eval()
