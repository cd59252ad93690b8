"""The held-out set: 1,000 questions on 334 pictures that no training step sees, as JSONL and PNG."""
import io
import json
import os

import numpy as np
from PIL import Image

import draw

QUESTIONS, PER_PICTURE = 1000, 3
SMALL = (5.0, 7.0)  # pixels of the picture; the tower needs 4 to 5 of a crop, to which the tiers scale by about 0.45, 0.8 and 1.05
SMALL_SHARE = 0.6   # of the numbers
KINDS = ["number", "word", "color", "shape"]
REFERENCES = 3  # vqa_seed, the program's default rule, wants three equal references for a full score; em counts one


def kind_name(kind, scene):
    if kind == "number":
        return "small print" if [t["h"] for t in scene["texts"] if t["kind"] == "number"][0] < draw.SMALL_PRINT else "number"
    return kind


def subject(question):
    """what the question asks about: the shape or colour that it names"""
    return [name for name in draw.SHAPES + draw.COLOR_NAMES if f" {name}" in question]


def examples(seed):
    """[(scene, [(kind, question, answer)])]: every text of a picture is asked for once, then colours and shapes, each thing's once"""
    out, i = [], 0
    while len(out) * PER_PICTURE < QUESTIONS:
        rng = np.random.default_rng([seed, 9, i])
        i += 1
        s, asked, seen = draw.scene(rng, SMALL, SMALL_SHARE), [], []
        found = draw.questions_of(rng, s, {k: 100 for k in KINDS})
        found = [f for f in found if f[0] in ("number", "word")] + [found[j] for j in rng.permutation(len(found)) if found[j][0] in ("color", "shape")]
        for kind, question, answer in found:
            if (kind, subject(question)) not in seen and len(asked) < PER_PICTURE:
                seen.append((kind, subject(question)))
                asked.append((kind_name(kind, s), question, answer))
        if len(asked) == PER_PICTURE:
            out.append((s, asked))
    out[-1] = out[-1][0], out[-1][1][:QUESTIONS - PER_PICTURE * (len(out) - 1)]
    return out


def png_bytes(picture):
    """the smallest exact form: a palette when 256 colours are enough"""
    image, best = Image.fromarray(picture), None
    colors, index = np.unique(picture.astype(np.int32) @ np.array([65536, 256, 1], np.int32), return_inverse=True)
    forms = [image]
    if len(colors) <= 256:
        palette = Image.fromarray(index.reshape(picture.shape[:2]).astype(np.uint8), "P")
        palette.putpalette(np.stack([colors >> 16, colors >> 8 & 255, colors & 255], 1).astype(np.uint8).tobytes())
        forms = [palette]
    for form in forms:
        out = io.BytesIO()
        form.save(out, "PNG", optimize=True)
        if best is None or len(out.getvalue()) < len(best):
            best = out.getvalue()
    return best


def write(folder, seed):
    os.makedirs(os.path.join(folder, "pictures"), exist_ok=True)
    lines = []
    for i, (s, asked) in enumerate(examples(seed)):
        name = f"pictures/{i:03d}.png"
        picture = draw.picture_of(s)
        with open(os.path.join(folder, name), "wb") as f:
            f.write(png_bytes(picture))
        for j, (kind, question, answer) in enumerate(asked):
            lines.append(json.dumps({"id": f"{i:03d}-{j}", "image": name, "question": question, "answers": [answer] * REFERENCES, "kind": kind}))
    with open(os.path.join(folder, "heldout.jsonl"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return lines
