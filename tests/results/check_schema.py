"""check_schema.py SCHEMA FOLDER: every result file below FOLDER fits the schema, but those below FOLDER/bad do not, and the schema is one of draft 2020-12
whose properties are all described. Prints what is wrong; exits with 77 without jsonschema. test_schema writes the files."""
import json
import sys
from pathlib import Path

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)


def undescribed(schema, path="#"):
    for name, part in schema.items() if isinstance(schema, dict) else ():
        if name == "properties":
            yield from (f"{path}/{key} has no description" for key, value in part.items() if "description" not in value)
        yield from undescribed(part, f"{path}/{name}")


schema = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
Draft202012Validator.check_schema(schema)
wrong = list(undescribed(schema))
files = sorted(Path(sys.argv[2]).rglob("*_imgsize*.json"))
for file in files:
    errors = [f"{error.json_path}: {error.message:.80}" for error in Draft202012Validator(schema).iter_errors(json.loads(file.read_text(encoding="utf-8")))]
    if (file.parent.name == "bad") != bool(errors):
        wrong.append(f"{file}: {errors[0] if errors else 'passes'} (a new key is a row of cli/results/fields.h)")
print("\n".join(wrong[:20]))
sys.exit(bool(wrong) or len(files) < 20)
