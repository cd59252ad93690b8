#!/usr/bin/env python3
"""pictures.py FOLDER COUNT: so many PNG files of as many sizes, 300 to 1,600 pixels a side, and set.jsonl that asks one question of each: a data set for a
latency model. What they show does not matter. The same call makes the same files."""
import json
import os
import random
import struct
import sys
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    draw = random.Random(1)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "set.jsonl"), "w", encoding="utf-8") as file:
        for i in range(count):
            width, height = draw.randint(300, 1600), draw.randint(300, 1600)
            rows = b"".join(b"\0" + bytes((x * y // 97 + c * 50) & 255 for x in range(width) for c in range(3)) for y in range(height))
            with open(os.path.join(folder, "%02d.png" % i), "wb") as picture:
                picture.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                              chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))
            file.write(json.dumps({"id": i, "image": "%02d.png" % i, "question": "What is this?", "answers": ["a pattern"]}) + "\n")


if __name__ == "__main__":
    main()
