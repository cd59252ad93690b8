"""What atlas.sh compares vlmprof with, a folder of .npy files for each case.

    python3 atlas_dumps.py run SCRIPT IMAGES OUT MODEL=FOLDER...   runs the script that `vlmprof conform --script` prints, in this one process
    python3 atlas_dumps.py recorded CASE OUT                       a case of the goldens; prints its prompt

`run` makes OUT/MODEL/PICTURE/TYPE, with the reason in the file `failed` where the script fails. `recorded` is for the models whose classes are not in
transformers: the goldens have what the published files computed. The pixels there are a sample, so they are left out."""
import contextlib
import io
import json
import os
import runpy
import shutil
import sys

import numpy as np


def run(script, images, out, *models):
    for model, folder in (model.split("=", 1) for model in models):
        for picture in ["-"] if model == "olmoe" else ["mix-200x150", "stripes-333x517"]:
            for kind in ("float32", "bfloat16", "float16"):
                to = os.path.join(out, model, picture, kind)
                image = [] if picture == "-" else ["--image", f"{images}/{picture}.png"]
                sys.argv = [script, "--model", folder, *image, "-p", "What is this?", "--output", to, "--dtype", kind,
                            "--max_new_tokens", "6"]
                os.makedirs(to)
                try:
                    with contextlib.redirect_stderr(io.StringIO()):
                        runpy.run_path(script, run_name="__main__")
                except (Exception, SystemExit) as error:
                    with open(os.path.join(to, "failed"), "w", encoding="utf-8") as file:
                        print(f"{type(error).__name__}: {error}".splitlines()[0], file=file)


def recorded(case, out):
    os.makedirs(out)
    with open(os.path.join(case, "case.json"), encoding="utf-8") as file:
        about = json.load(file)
    if "question" in about:  # goldens/models
        for name, to in (("input_ids", "prompt_ids"), ("fp32/logits_prefill", "prefill"), ("fp32/tokens", "tokens")):
            shutil.copy(os.path.join(case, name + ".npy"), os.path.join(out, to + ".npy"))
    else:
        np.save(os.path.join(out, "prompt_ids.npy"), np.array(about["input_ids"], np.int64))
        np.save(os.path.join(out, "tokens.npy"), np.array(about["tokens"], np.int64))
        for name in ("logits", "image_features"):
            if os.path.exists(os.path.join(case, name + ".npy")):
                shutil.copy(os.path.join(case, name + ".npy"), out)
    print(about.get("question", about.get("prompt")))


if __name__ == "__main__":
    {"run": run, "recorded": recorded}[sys.argv[1]](*sys.argv[2:])
