"""vlmprof.data: the goldens of each format give their ids, prompts, references and pictures, what it writes is read by `vlmprof sweep`, bad files are named,
and a task object of lmms-eval's kind is asked."""
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path

from checks import check, done, equal, refused, skip
from vlmprof import data
from vlmprof.data import lmms, tables

work = Path(tempfile.mkdtemp(dir=sys.argv[1]))
shared = Path("../shared/goldens/datasets")
golden = shared if shared.is_dir() else Path("tests/golden/datasets")
if not golden.is_dir():
    skip("data", f"no {shared} and no {golden}")
    done("data")
missing = [module for module in ("pandas", "pyarrow") if not importlib.util.find_spec(module)]
for module in missing:
    skip("tables", f"no {module}")


def needs_missing(path):
    return path.suffix in (".tsv", ".csv") and "pandas" in missing or path.suffix in (".parquet", ".arrow") and "pyarrow" in missing


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def hashes(pictures, folders):
    found = (picture.find(folders) for picture in pictures)
    return [hashlib.sha256(one if isinstance(one, bytes) else one.read_bytes()).hexdigest() for one in found]


# ---- every row of every format
def row_differs(sample, want, folders):
    """The first member of the golden row that the sample has not; None: they agree. `more` has members of one format."""
    own = {"id": sample.id, "question": sample.prompt, "content": sample.content, "answers": sample.answers, "answer": sample.answer,
           "options": sample.options or None, "metric": sample.rule, "question_raw": sample.question, "image_paths": [picture.path for picture in sample.pictures]}
    for key, value in want.items():
        if key in ("file", "row"):
            continue
        if key == "error" or (key == "images" and value is None):
            got, value = bool(sample.error), True
        elif key == "images":
            got, value = hashes(sample.pictures, folders), [image["sha256"] for image in value]
        else:
            got = own.get(key, sample.more.get(key))
        if got != value:
            return f"{key}: {got!r}, wanted {value!r}"
    return sample.error if "error" not in want else None


formats = 0
for expected in sorted(golden.glob("*/expected.jsonl")):
    folder, wanted = expected.parent, {}
    if folder.name in ("parquet_features", "aiperf_jsonl", "vllm_custom", "llava_conversations", "llava_questions_jsonl", "sharegpt4v", "openai_messages"):
        continue  # the first is read below; the others are requests, and files of load generators and of training, which are not read
    for row in lines(expected):
        wanted.setdefault(row["file"], []).append(row)
    for file, rows in wanted.items():
        if needs_missing(folder / file):
            continue
        formats += 1
        opened = data.open_source(folder / file)
        samples = {sample.row: sample for sample in opened.samples}
        bad = [f"row {row['row']}: {differs}" for row in rows
               if (differs := row_differs(samples[row["row"]], row, opened.folders) if row["row"] in samples else "missing")]
        equal(f"{folder.name}/{file}", (bad, len(samples)), ([], len(rows)))
        output = work / f"{folder.name}-{file}.jsonl"
        report = data.convert(folder / file, output)
        usable = sum(not sample.error and (not sample.pictures or "image_paths" not in row) for sample, row in zip(samples.values(), rows))
        check(f"{folder.name}/{file}: written", report.written >= usable - len(report.left_out) and report.written == len(lines(output)), report.lines())
        written = {json.dumps(line["id"]): line for line in lines(output)}
        for sample in samples.values():
            line = written.get(json.dumps(sample.id))
            if line and len(written) == len(rows):
                paths = [line["image"]] if "image" in line else line.get("images", [])
                order = [part["image"] for part in sample.content if "image" in part] if "content" in line else range(len(sample.pictures))
                equal(f"{file}, row {sample.row}: its pictures are files", [hashlib.sha256((work / path).read_bytes()).hexdigest() for path in paths],
                      hashes([sample.pictures[place] for place in order], opened.folders))
                equal(f"{file}, row {sample.row}: places in order", [part["image"] for part in line.get("content", []) if "image" in part],
                      list(range(len(paths))) if "content" in line else [])
check("all formats", formats >= (40 if not missing else 10), formats)

# ---- the program reads what is written
for file, metric in (("docvqa_json-val_v1.0_withQT.json", "anls"), ("vlmevalkit_tsv-MMBench_mini.tsv", "mc"),
                     ("hf_parquet-mmmu_validation.parquet", "mmmu"), ("vlmevalkit_tsv-MMMU_mini.tsv", "mmmu"), ("hf_parquet-ocrbench_test.parquet", None),
                     ("hf_parquet-mathvista_testmini.parquet", None)):
    path = work / f"{file}.jsonl"
    if not path.exists():
        continue
    sweep = ["sweep", "--synthetic", "tiny-qwen3-vl-moe", "--data", str(path), "--output_dir", str(work / f"sweep-{file}"), "--num_runs_per_sample", "1",
             "--max_new_tokens", "2", "--quiet"]
    said = subprocess.run([os.environ["VLMPROF"], *sweep], capture_output=True, check=False)
    check(f"vlmprof sweep reads {file}", said.returncode == 0, said.stderr.decode())
    if said.returncode:
        continue
    result = json.loads(next((work / f"sweep-{file}").glob("*.json")).read_text())
    if metric:
        equal(f"{file}: the rule of the program", result["accuracy_metric"], metric)
    else:
        check(f"{file}: no rule of the program scores", not any("answers" in line or "metric" in line for line in lines(path)))
    asked = {json.dumps(row["metadata"]["id"]): row for row in result["per_sample_results"]}
    for line in lines(path):
        row = asked[json.dumps(line["id"])]
        texts = [line["question"]] if "question" in line else [part["text"] for part in line["content"] if "text" in part]
        equal(f"{file}, {line['id']}: it is measured", row["status"], "ok")
        check(f"{file}, {line['id']}: the prompt is sent as it is", all(text in row["prompt"] for text in texts), (texts, row["prompt"]))
        check(f"{file}, {line['id']}: no option is added", "options" not in line or row["prompt"].count(line["options"][0]) == texts[-1].count(line["options"][0]))

# ---- tables written in many ways, damaged ones, other types
if "pyarrow" not in missing:
    def plain(value):
        """A value of pyarrow or of the goldens: of a picture only the hash of its bytes."""
        if isinstance(value, dict) and "bytes" in value:
            return value.get("sha256") or hashlib.sha256(value["bytes"]).hexdigest()
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    features = golden / "parquet_features"
    for files, expected in ((sorted(row["file"] for row in lines(features / "files.jsonl")), "expected.jsonl"), (["datasets_2_16.parquet"], "datasets_2_16.expected.jsonl")):
        for file in files:
            rows = [plain(row) for batch in tables.read_columns(features / file) for row in batch]
            want = [{key: value for key, value in row.items() if key in rows[0]} for row in map(plain, lines(features / expected))]
            got = [{key: row[key] for key in one} for row, one in zip(rows, want)]
            equal(f"a table written as {file}", (len(rows), json.dumps(got, sort_keys=True)), (len(want), json.dumps(want, sort_keys=True)))
    for path in sorted(features.glob("bad_*.parquet")):
        refused(f"{path.name} is named", data.DataError, path.name, lambda path=path: data.read(path))
    import pyarrow
    table = pyarrow.table({"question": ["What?", "Why?"], "answers": [["a"], ["b", "c"]], "options": [None, ["x", "y"]], "images": [[], [b"\x89PNG\r\n\x1a\n" + bytes(9)]]})
    for name, writer in (("stream.arrow", pyarrow.ipc.new_stream), ("file.arrow", pyarrow.ipc.new_file)):
        with writer(str(work / name), table.schema) as out:
            out.write_table(table)
        got = data.read(work / name)
        equal(f"{name}: an unknown table", [(one.prompt, one.answers, one.options, len(one.pictures)) for one in got],
              [("What?", ["a"], {}, 0), ("Why?", ["b", "c"], {"A": "x", "B": "y"}, 1)])
    shards = work / "shards"
    shards.mkdir()
    for i in range(2):
        with pyarrow.ipc.new_stream(str(shards / f"data-0000{i}-of-00002.arrow"), table.schema) as out:
            out.write_table(table)
    equal("a folder of shards", [one.row for one in data.read(shards)], [0, 1, 2, 3])

# ---- what cannot be used is named
for name, content, words in (("empty.json", "[]", "no record"), ("broken.jsonl", '{"a": 1}\n{"a": ', "line 2"), ("text.json", "hello", "not JSON"),
                             ("latin.json", b'{"a": "\xe9"}', "not UTF-8"), ("numbers.json", "[1, 2]", "expected a list of records"),
                             ("own.jsonl", '{"question": "a", "answers": []}', "vlmprof sweep --data reads it directly"), ("a.zip", b"PK\3\4", "unpack it"),
                             ("model.bin", b"GGUF\3\0", "unpack it")):
    (work / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(f"{name}: {words}", data.DataError, words, lambda name=name: data.read(work / name))
refused("no such file", data.DataError, "no such file", lambda: data.read(work / "nowhere.tsv"))
refused("an unknown data set", data.DataError, "no such data set; known are doc_qa", lambda: data.read(golden / "docvqa_json/val_v1.0_withQT.json", dataset_name="mnist"))
(work / "lost.jsonl").write_text(
    "".join(f'{{"question_id": {index}, "text": "Is it?", "image": "{path}", "label": "yes"}}\n' for index, path in enumerate(("none.png", Path("samples/sign.png").resolve()))))
report = data.convert(work / "lost.jsonl", work / "found.jsonl")
equal("a missing picture leaves its row out", (report.written, list(report.left_out.values())), (1, [[0]]))
check("and is named", 'left out, row 0: picture "none.png" was not found in' in report.lines()[2], report.lines())
environment = {**os.environ, "PYTHONWARNINGS": "error"}
said = subprocess.run([sys.executable, "-m", "vlmprof.data", str(work / "lost.jsonl"), "-o", str(work / "out.jsonl")], capture_output=True, check=False, env=environment)
equal("python -m vlmprof.data", (said.returncode, b"lost.jsonl (official JSON of pope): 1 samples written, 1 left out" in said.stderr), (0, True))
said = subprocess.run([sys.executable, "-m", "vlmprof.data", "lmms:none", "-o", str(work / "out.jsonl")], capture_output=True, check=False)
check("lmms-eval is not installed: exit code 3 and what to do", said.returncode == 3 and b"pip install lmms-eval" in said.stderr, said)

# ---- a task object as lmms-eval has them, with a picture of PIL's kind
class Visual:
    def convert(self, mode):
        equal("lmms: the mode", mode, "RGB")
        return self

    def save(self, out, form):
        out.write(Path("samples/sign.png").read_bytes())


class Task:
    config = types.SimpleNamespace(generation_kwargs={"max_new_tokens": 16})
    has_test_docs = staticmethod(lambda: False)
    validation_docs = staticmethod(lambda: [{"q": "What?", "a": "x"}, {"q": "Film?", "a": ["x", "y"]}])
    doc_to_text = staticmethod(lambda doc: doc["q"] + "\nShort.")
    doc_to_target = staticmethod(lambda doc: doc["a"])
    doc_to_visual = staticmethod(lambda doc: [Visual()] if doc["q"] == "What?" else ["film.mp4"])
    process_results = staticmethod(lambda doc, results: {"exact_match": float(results[0] in doc["a"])})


package = types.ModuleType("lmms_eval.tasks")
package.TaskManager = lambda: None
package.get_task_dict = lambda names, manager: {"group": {names[0]: Task}} if names == ["small"] else {"a": Task, "b": Task}
sys.modules.update({"lmms_eval": types.ModuleType("lmms_eval"), "lmms_eval.tasks": package})
report = data.convert("lmms:small", work / "lmms.jsonl")
row = lines(work / "lmms.jsonl")[0]
equal("lmms: a record", {key: row[key] for key in ("id", "question", "source_answers", "max_new_tokens", "rule")},
      {"id": 0, "question": "What?\nShort.", "source_answers": ["x"], "max_new_tokens": 16, "rule": "lmms:small"})
equal("lmms: its picture", (work / row["image"]).read_bytes(), Path("samples/sign.png").read_bytes())
check("lmms: what is not a picture is left out", "not a picture" in "".join(report.left_out), report)
refused("lmms: a group of several", data.DataError, "is a group: choose one of a, b", lambda: lmms.load_task("many"))
done("data")
