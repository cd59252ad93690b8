"""A picture in the size that a tower reads, in two ways, and how far each is from float64.

    python3 resize.py IMAGE WIDTH HEIGHT bilinear|bicubic STRETCHED.png BARS.png

STRETCHED is what the processors of Gemma 3 and of the Qwen models ask for: both sides to the size, the aspect ratio is lost. BARS is what llama.cpp
does (tools/mtmd, img_tool::resize with PAD_CEIL): the aspect ratio is kept, and black is put around it. The reference is the same filter with
antialiasing in float64, sides stretched; STRETCHED is that, rounded to 8 bits once. Needs numpy and Pillow."""
import sys

import numpy as np
from PIL import Image


def weights(count, to, kind):
    """[to, count]: the filter around each pixel's centre, wider where the picture becomes smaller"""
    scale = count / to
    wide = max(scale, 1)
    at = np.abs((np.arange(count) + 0.5)[None, :] - (np.arange(to)[:, None] + 0.5) * scale) / wide
    if kind == "bilinear":
        w = np.clip(1 - at, 0, None)
    else:
        w = np.where(at < 1, (1.5 * at - 2.5) * at * at + 1, np.where(at < 2, -0.5 * (((at - 5) * at + 8) * at - 4), 0))
    return w / w.sum(axis=1, keepdims=True)


def main():
    path, width, height, kind, stretched, bars = sys.argv[1:]
    width, height = int(width), int(height)
    picture = Image.open(path).convert("RGB")
    filters = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
    exact = np.asarray(picture, np.float64)
    exact = np.clip(weights(picture.width, width, kind) @ exact, 0, 255)  # width first and clipped, as torchvision does it
    exact = np.clip(np.tensordot(weights(picture.height, height, kind), exact, 1), 0, 255)
    Image.fromarray(np.rint(exact).astype(np.uint8)).save(stretched)
    scale = min(np.float32(width) / np.float32(picture.width), np.float32(height) / np.float32(picture.height))
    inner = [min(int(np.ceil(np.float32(side) * scale)), most) for side, most in ((picture.width, width), (picture.height, height))]
    canvas = Image.new("RGB", (width, height))
    canvas.paste(picture.resize(inner, filters[kind]), ((width - inner[0]) // 2, (height - inner[1]) // 2))
    canvas.save(bars)
    distances = []
    for name in (stretched, bars):
        away = np.abs(np.asarray(Image.open(name), np.float64) - exact)
        distances.append(f"{np.sqrt((away ** 2).mean()):.2f} levels (at most {away.max():.1f})")
    print(f"{width}x{height} {kind}: from float64 the stretched one is {distances[0]}, the one with bars ({inner[0]}x{inner[1]}) {distances[1]}")


if __name__ == "__main__":
    main()
