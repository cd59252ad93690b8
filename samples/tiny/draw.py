"""Draws the pictures, asks the questions and labels what each vision token sees. Seeded: the same seed gives the same pictures."""
import numpy as np

COLORS = {"red": (220, 30, 30), "green": (30, 150, 50), "blue": (40, 70, 220), "yellow": (240, 205, 20), "purple": (140, 40, 170), "orange": (245, 130, 20),
          "black": (25, 25, 25)}
SHAPES = ["circle", "square", "triangle", "star", "cross", "diamond"]
WORDS = ["CUP", "FOX", "JAM", "KEY", "OWL", "SUN", "BIRD", "CAKE", "LAMP", "MOON", "TREE", "WAVE"]
COLOR_NAMES = list(COLORS)
SIZES = [(900, 700), (700, 900), (800, 800), (1120, 700), (700, 1120)]  # width, height
SMALL_PRINT = 12.0  # a number under this height in picture pixels is small print

# five columns a letter, lowest bit on top
FONT = {"0": "3E5149453E", "1": "00427F4000", "2": "4261514946", "3": "2141454B31", "4": "1814127F10", "5": "2745454539", "6": "3C4A494930", "7": "0171090503",
        "8": "3649494936", "9": "064949291E", "A": "7E1111117E", "B": "7F49494936", "C": "3E41414122", "D": "7F4141221C", "E": "7F49494941", "F": "7F09090901",
        "I": "00417F4100", "J": "2040413F01", "K": "7F08142241", "L": "7F40404040", "M": "7F020C027F", "N": "7F0408107F", "O": "3E4141413E", "P": "7F09090906",
        "R": "7F09192946", "S": "4649494931", "T": "01017F0101", "U": "3F4040403F", "V": "1F2040201F", "W": "3F4038403F", "X": "6314081463", "Y": "0708700807"}
CHARS = sorted(FONT)
BITMAPS = {c: np.array([[int(h[2 * i:2 * i + 2], 16) >> y & 1 for i in range(5)] for y in range(7)], np.float32) for c, h in FONT.items()}

# ---- geometry of shapes: who draws and who labels ask the same function


def star_sides():
    a = np.pi / 5 * np.arange(10) - np.pi / 2
    r = np.where(np.arange(10) % 2 == 0, 1.05, 0.45)
    return np.stack([r * np.cos(a), r * np.sin(a)], 1)


STAR = star_sides()


def inside(shape, x, y):
    """which points lie in the shape of radius 1 around 0; y grows downwards"""
    if shape == "circle":
        return x * x + y * y <= 1
    if shape == "square":
        return (abs(x) <= 0.86) & (abs(y) <= 0.86)
    if shape == "triangle":
        return (y <= 0.8) & (y >= -0.95) & (abs(x) <= (y + 0.95) * 0.57)
    if shape == "cross":
        return ((abs(x) <= 0.32) & (abs(y) <= 0.95)) | ((abs(y) <= 0.32) & (abs(x) <= 0.95))
    if shape == "diamond":
        return abs(x) * 1.35 + abs(y) <= 1.05
    odd = np.zeros(np.broadcast(x, y).shape, bool)  # star: crossings of a ray
    for (x0, y0), (x1, y1) in zip(STAR, np.roll(STAR, -1, 0)):
        if y0 != y1:
            odd ^= ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return odd


def draw_shape(picture, item):
    h, w, _ = picture.shape
    r = item["r"] * 1.06
    x0, x1 = max(0, int(item["x"] - r)), min(w, int(item["x"] + r) + 1)
    y0, y1 = max(0, int(item["y"] - r)), min(h, int(item["y"] + r) + 1)
    if x0 >= x1 or y0 >= y1:
        return
    x = (np.arange(x0, x1, dtype=np.float32) + 0.5 - item["x"]) / item["r"]
    y = (np.arange(y0, y1, dtype=np.float32) + 0.5 - item["y"]) / item["r"]
    picture[y0:y1, x0:x1][inside(item["shape"], x[None, :], y[:, None])] = COLORS[item["color"]]


def text_size(text, height):
    return (6 * len(text) - 1) * height / 7, height


def coverage(first, count, dot, cells):
    """[count, cells]: the share of pixel first + i that each of the cells, `dot` wide, starting at 0, covers"""
    p = first + np.arange(count)[:, None]
    c = dot * np.arange(cells)[None, :]
    return np.clip(np.minimum(p + 1, c + dot) - np.maximum(p, c), 0, 1).astype(np.float32)


def draw_text(picture, item):
    h, w, _ = picture.shape
    tw, th = text_size(item["text"], item["h"])
    x0, x1 = max(0, int(np.floor(item["x"]))), min(w, int(np.ceil(item["x"] + tw)))
    y0, y1 = max(0, int(np.floor(item["y"]))), min(h, int(np.ceil(item["y"] + th)))
    if x0 >= x1 or y0 >= y1:
        return
    dots = np.zeros((7, 6 * len(item["text"]) - 1), np.float32)
    for i, c in enumerate(item["text"]):
        dots[:, 6 * i:6 * i + 5] = BITMAPS[c]
    dot = item["h"] / 7
    ink = coverage(y0 - item["y"], y1 - y0, dot, 7) @ dots @ coverage(x0 - item["x"], x1 - x0, dot, dots.shape[1]).T
    part = picture[y0:y1, x0:x1]
    part[...] = np.rint(part + ink[:, :, None].clip(0, 1) * (np.array(item["ink"], np.float32) - part))


def paint(width, height, ground, shapes, texts):
    picture = np.empty((height, width, 3), np.uint8)
    picture[...] = ground
    for item in shapes:
        draw_shape(picture, item)
    for item in texts:
        draw_text(picture, item)
    return picture


# ---- where things go


class Room:
    """which cells of 4 x 4 pixels are taken; positions may lie outside by `margin`"""

    def __init__(self, width, height, margin=0):
        self.margin = margin
        self.taken = np.zeros(((height + 2 * margin) // 4 + 2, (width + 2 * margin) // 4 + 2), bool)

    def take(self, x0, y0, x1, y1, gap):
        m = self.margin
        a, b = int((y0 + m - gap) // 4), int((y1 + m + gap) // 4) + 1
        c, d = int((x0 + m - gap) // 4), int((x1 + m + gap) // 4) + 1
        cells = self.taken[max(a, 0):b, max(c, 0):d]
        if cells.any():
            return False
        cells[...] = True
        return True


def pale(rng):
    return tuple(int(v) for v in rng.integers(222, 256, 3))


def dark(rng):
    return tuple(int(v) for v in rng.integers(0, 60, 3))


def new_text(rng, kind, height):
    return {"kind": kind, "text": str(rng.integers(10, 100)) if kind == "number" else str(rng.choice(WORDS)), "h": height, "ink": dark(rng)}


def new_shape(rng, radius):
    return {"shape": str(rng.choice(SHAPES)), "color": str(rng.choice(COLOR_NAMES)), "r": radius}


def put(rng, room, item, box, tries):
    """gives the item a free place in the box (x0, y0, x1, y1), or returns False"""
    for _ in range(tries):
        if "r" in item:
            r = item["r"]
            if box[2] - box[0] <= 2 * r or box[3] - box[1] <= 2 * r:
                return False
            item["x"], item["y"] = rng.uniform(box[0] + r, box[2] - r), rng.uniform(box[1] + r, box[3] - r)
            if room.take(item["x"] - r, item["y"] - r, item["x"] + r, item["y"] + r, 5):
                return True
        else:
            w, h = text_size(item["text"], item["h"])
            if box[2] - box[0] <= w or box[3] - box[1] <= h:
                return False
            item["x"], item["y"] = rng.uniform(box[0], box[2] - w), rng.uniform(box[1], box[3] - h)
            if room.take(item["x"], item["y"], item["x"] + w, item["y"] + h, 4 + 0.25 * h):
                return True
    return False


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def scene(rng, small=(5.0, SMALL_PRINT), small_share=0.45):
    """a picture to ask about: 1 to 5 shapes, a number, a word or both, all in the central square, which no tier crops away.
    small: heights of the small print, small_share: how many of the numbers"""
    width, height = SIZES[rng.integers(len(SIZES))]
    side = min(width, height) - 24
    box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
    room, shapes, texts = Room(width, height), [], []
    which = rng.random()
    if which < 0.8:
        texts.append(new_text(rng, "number", rng.uniform(*small) if rng.random() < small_share else log_uniform(rng, SMALL_PRINT, 48)))
    if which > 0.4:
        texts.append(new_text(rng, "word", log_uniform(rng, 7, 44)))
    shapes = [new_shape(rng, rng.uniform(32, 80)) for _ in range(rng.integers(1, 6))]
    shapes = [s for s in shapes if put(rng, room, s, box, 30)]
    texts = [t for t in texts if put(rng, room, t, box, 60)]
    return {"width": width, "height": height, "ground": pale(rng), "shapes": shapes, "texts": texts}


def crowd(rng):
    """a square full of shapes and texts for the tower's training: it becomes one crop of 336 x 336; things may stick out"""
    scale = log_uniform(rng, 0.36, 1.2)
    side = int(round(336 / scale))
    room = Room(side, side, 100)
    box = (-60, -60, side + 60, side + 60)
    shapes = [new_shape(rng, rng.uniform(30, 82)) for _ in range(rng.integers(0, 10))]
    shapes = [s for s in shapes if put(rng, room, s, box, 8)]
    texts = []
    for _ in range(rng.integers(4, 45)):
        size = rng.random()  # large print, print at the limit of what a crop's pixels can show, and what lies between
        height = log_uniform(rng, 14, 52) if size < 0.3 else log_uniform(rng, 4, 9) / scale if size < 0.6 else log_uniform(rng, 7, 24)
        texts.append(new_text(rng, "number" if rng.random() < 0.6 else "word", height))
    texts.sort(key=lambda t: -t["h"])
    inner = (-10, -10, side + 10, side + 10)
    texts = [t for t in texts if put(rng, room, t, inner, 8)]
    return {"width": side, "height": side, "ground": pale(rng), "shapes": shapes, "texts": texts}


def picture_of(s):
    return paint(s["width"], s["height"], s["ground"], s["shapes"], s["texts"])


# ---- labels of the 12 x 12 tokens of a crop; -100: no loss

LABELS = ["shape", "color", "center", "kind", "tens", "units", "word", "row", "column"]
LABEL_CLASSES = {"shape": 7, "color": 8, "center": 2, "kind": 3, "tens": 10, "units": 10, "word": len(WORDS), "row": 12, "column": 12}


def labels_of(s, scale_x, scale_y, left, top):
    """crop pixel = picture pixel * scale - (left, top). int8 [9, 144] and the characters in each token, uint8 [144, characters]"""
    out = np.full((len(LABELS), 12, 12), -100, np.int8)
    chars = np.zeros((12, 12, len(CHARS)), np.uint8)
    out[0] = 0
    out[1] = 0
    out[2] = 0
    out[3] = 0
    out[7] = np.arange(12)[:, None]
    out[8] = np.arange(12)[None, :]
    cx = (28 * np.arange(12) + 14 + left) / scale_x
    cy = (28 * np.arange(12) + 14 + top) / scale_y
    for item in s["shapes"]:
        hit = inside(item["shape"], (cx[None, :] - item["x"]) / item["r"], (cy[:, None] - item["y"]) / item["r"])
        out[0][hit] = 1 + SHAPES.index(item["shape"])
        out[1][hit] = 1 + COLOR_NAMES.index(item["color"])
        i, j = int((item["y"] * scale_y - top) // 28), int((item["x"] * scale_x - left) // 28)
        if 0 <= i < 12 and 0 <= j < 12:
            out[2, i, j] = 1
    best = np.zeros((12, 12))
    edges = 28.0 * np.arange(12)

    def overlap(a, b):  # of [a, b] with each of twelve tokens
        return np.clip(np.minimum(edges + 28, b) - np.maximum(edges, a), 0, None)

    for item in s["texts"]:
        w, h = text_size(item["text"], item["h"])
        x0, x1 = item["x"] * scale_x - left, (item["x"] + w) * scale_x - left
        y0, y1 = item["y"] * scale_y - top, (item["y"] + h) * scale_y - top
        if x1 < 0 or y1 < 0 or x0 > 336 or y0 > 336:
            continue
        rows = overlap(y0, y1)
        area = rows[:, None] * overlap(x0, x1)[None, :]
        # a token counts as the text's when it shows a quarter of a letter or is a quarter full
        letter = (y1 - y0) * (y1 - y0) * 5 / 7
        hit = (area >= 0.25 * min(letter, 784)) & (area > best)
        best[hit] = area[hit]
        out[3][hit] = 1 if item["kind"] == "number" else 2
        whole = x0 >= 0 and y0 >= 0 and x1 <= 336 and y1 <= 336
        for label in (4, 5, 6):
            out[label][hit] = -100
        if whole and item["kind"] == "number":
            out[4][hit] = int(item["text"][0])
            out[5][hit] = int(item["text"][1])
        elif whole:
            out[6][hit] = WORDS.index(item["text"])
        dot = (x1 - x0) / (6 * len(item["text"]) - 1)
        for n, c in enumerate(item["text"]):
            seen = rows[:, None] * overlap(x0 + 6 * n * dot, x0 + (6 * n + 5) * dot)[None, :]
            chars[:, :, CHARS.index(c)] |= seen >= 0.3 * min(letter, 784)
    return out.reshape(len(LABELS), 144), chars.reshape(144, len(CHARS))


# ---- questions

WORDINGS = {
    "color": ["What color is the {}?", "Which color does the {} have?", "What is the color of the {}?"],
    "shape": ["What shape is {}?", "Which shape is {}?", "What is the {} shape?"],
    "number": ["What number is written?", "Which number do you see?", "What is the number?"],
    "word": ["What word is written?", "Which word do you see?", "What is the word?"],
    # not learned in the time there is, and no longer asked; they stay because the tokenizer was made from all of these
    "vertical": ["Is the {} at the top or at the bottom?", "Top or bottom: where is the {}?"],
    "horizontal": ["Is the {} on the left or on the right?", "Left or right: where is the {}?"],
}


def questions_of(rng, s, per_kind):
    """[(kind, question, answer)] with one answer each: shapes and colours that appear once; positions off the middle by 8 % of the square"""
    out = {k: [] for k in WORDINGS}
    one_shape = [i for i in s["shapes"] if sum(o["shape"] == i["shape"] for o in s["shapes"]) == 1]
    one_color = [i for i in s["shapes"] if sum(o["color"] == i["color"] for o in s["shapes"]) == 1]
    for i in one_shape:
        out["color"].append((i["shape"], i["color"]))
    for i in one_color:
        out["shape"].append((i["color"], i["shape"]))
    side = min(s["width"], s["height"])
    for i, name in [(i, i["shape"]) for i in one_shape] + [(i, i["color"] + " shape") for i in one_color]:
        dx, dy = i["x"] - s["width"] / 2, i["y"] - s["height"] / 2
        if abs(dy) >= 0.08 * side:
            out["vertical"].append((name, "bottom" if dy > 0 else "top"))
        if abs(dx) >= 0.08 * side:
            out["horizontal"].append((name, "right" if dx > 0 else "left"))
    for t in s["texts"]:
        out[t["kind"]].append(("", t["text"]))
    asked = []
    for kind, found in out.items():
        ways = [(w.format(name), answer) for name, answer in found for w in WORDINGS[kind]]
        order = rng.permutation(len(ways))[:per_kind.get(kind, 0)]
        asked += [(kind,) + ways[i] for i in order]
    return asked
