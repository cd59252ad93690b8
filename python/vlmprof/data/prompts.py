"""Known data sets: names, prompts and rules of lmms-eval and VLMEvalKit.

Sources: lmms-eval 75571cfe (tasks/*/utils.py and yaml), VLMEvalKit e8e78f05 (vlmeval/dataset/image_*.py), MathVista 53d52587 (evaluation/build_query.py). If
lmms-eval is installed, lmms:TASK uses its own task objects instead."""
from __future__ import annotations

import re
from typing import Callable, Dict, NamedTuple, Optional

from .record import Sample

P1 = "\nAnswer the question using a single word or phrase."
L1 = "\nAnswer with the option's letter from the given choices directly."
MATH_VISTA = ("choices", "precision", "question_type", "answer_type", "unit")  # members that its prompts need
Form = Callable[[Sample], str]


def _question(sample: Sample) -> str:
    return sample.question or ""


def _options(sample: Sample, form: str = "{}. {}") -> str:
    return "\n".join(form.format(letter, text) for letter, text in sample.options.items())


def _after(tail: str) -> Form:
    return lambda sample: _question(sample) + tail


def _stripped(tail: str = "") -> Form:
    return lambda sample: _question(sample).strip() + tail


def _letters(sample: Sample) -> str:
    return f"{_question(sample)}\n{_options(sample)}{L1}"


def _mmbench(sample: Sample) -> str:
    hint = f"{sample.hint} " if sample.hint else ""
    return f"{hint}{_question(sample)} There are several options:\n{_options(sample)}\n{L1}"


def _science(sample: Sample) -> str:
    return (f"Context: {sample.hint}\n" if sample.hint else "") + _letters(sample)


def _mmmu(sample: Sample) -> str:
    return f"{_question(sample)}\n" + (f"{_options(sample)}\n{L1}" if sample.options else P1)


def _mmmu_pro(sample: Sample) -> str:
    asked = f"{_question(sample)}\n{_options(sample)}\n\n" if sample.question is not None else ""
    return asked + "Answer with the option letter from the given choices directly."


def _kind(sample: Sample) -> str:
    """The kind of answer that MathVista's prompts distinguish: letter, integer, float 1, float 2, list."""
    if sample.more.get("question_type") == "multi_choice":
        return "letter"
    kind = str(sample.more.get("answer_type"))
    return f"float {1 if sample.more.get('precision') == 1 else 2}" if kind == "float" else kind


def _unit(sample: Sample) -> str:
    return f" (Unit: {sample.more['unit']})" if sample.more.get("unit") else ""


def _mathvista(sample: Sample) -> str:
    tails = {"letter": L1[1:], "integer": "Answer the question using a single integer number.",
             "float 1": "Answer the question using a single floating-point number with one decimal place.",
             "float 2": "Answer the question using a single floating-point number with two decimal places.", "list": "Answer the question using a Python list."}
    choices = f"\n{_options(sample)}" if sample.options else ""
    return f"{_question(sample)}{_unit(sample)}{choices}\n{tails.get(_kind(sample), '')}".strip()


def mathvista_official(sample: Sample) -> str:
    tails = {"letter": "and provide the correct option letter, e.g., A, B, C, D, at the end.",
             "integer": "requiring an integer answer and provide the final value, e.g., 1, 2, 3, at the end.",
             "float 1": "requiring a floating-point number with one decimal place and provide the final value, e.g., 1.2, 1.3, 1.4, at the end.",
             "float 2": "requiring a floating-point number with two decimal places and provide the final value, e.g., 1.23, 1.34, 1.45, at the end."}
    tail = tails.get(_kind(sample), "requiring a Python list as an answer and provide the final list, e.g., [1, 2, 3], [1.2, 1.3, 1.4], at the end.")
    choices = f"\nChoices:\n{_options(sample, '({}) {}')}" if sample.options else ""
    return f"Hint: Please answer the question {tail}\nQuestion: {_question(sample)}{_unit(sample)}{choices}"


def _choice(request: str) -> Form:
    def form(sample: Sample) -> str:
        hint = f"Hint: {sample.hint}\n" if sample.hint else ""
        choices = f"Options:\n{_options(sample)}\n{request}" if sample.options else ""
        return f"{hint}Question: {_question(sample)}\n{choices}"
    return form


CHOICE = _choice("Please select the correct answer from the options above. \n")
_CHOICE_PRO = _choice("Answer directly with the option letter from the given choices. ")
_DESCRIBE = ("Please describe this image in general. Directly provide the description, do not include prefix like \"This image depicts\". ")


class Task(NamedTuple):
    """A data set: its other names (folded), both tools' prompts and rules, and lmms-eval's answer length (0: any)."""
    names: str
    lmms: Form
    vlmevalkit: Form
    lmms_rule: str
    vlmevalkit_rule: str
    tokens: int


_SHORT, _NUMBER = _after(P1), _after("\nAnswer the question using a single number.")
TASKS: Dict[str, Task] = {
    "doc_qa": Task("docqa docvqa spdocvqa documentvqa", _SHORT, _SHORT, "anls_lmms", "anls_vlmevalkit", 32),
    "info_vqa": Task("infovqa infographicvqa infographicsvqa infographicsvqavalv10", _SHORT, _SHORT, "anls_lmms", "anls_vlmevalkit", 32),
    "text_vqa": Task("textvqa textvqa051", lambda s: _question(s).capitalize() + P1, _SHORT, "textvqa_lmms", "vqa_vlmevalkit", 0),
    "coco_2014_vqa": Task("coco2014vqa vqav2 vqa2 v2openendedmscocoval2014questions "
                          "v2openendedmscocotrain2014questions", _SHORT, _SHORT, "vqav2_lmms", "vqa_vlmevalkit", 16),
    "okvqa": Task("okvqa okvqaval2014 openendedmscocoval2014questions openendedmscocotrain2014questions",
                  _after("\nWhen the provided information is insufficient, respond with 'Unanswerable'." + P1), _SHORT, "textvqa_lmms", "vqa_vlmevalkit", 0),
    "chart_qa": Task("chartqa testhuman testaugmented valhuman valaugmented", _after("\nAnswer the question with a single word."), _SHORT, "relaxed_lmms",
                     "relaxed_vlmevalkit", 16),
    "ai2d": Task("ai2d ai2dnomask ai2dtestnomask", _letters, CHOICE, "ai2d_lmms", "mcq_vlmevalkit", 16),
    "mmstar": Task("mmstar mmstaroc", _stripped(L1[:-1]), CHOICE, "mcq_lmms", "mcq_vlmevalkit", 0),
    "mmbench": Task("mmbenchcc mmbenchru mmbenchdevenv11 mmbenchdevcnv11 mmbenchtestenv11 mmbenchtestcnv11 mmbenchv11 "
                    "mmbench mmbenchencndev", _mmbench, CHOICE, "mmbench_static_lmms", "mcq_circular_vlmevalkit", 1024),
    "mme": Task("mme", lambda s: _question(s).strip().replace(" Please answer yes or no.", "") + P1, _question, "mme_lmms", "yes_no_vlmevalkit", 16),
    "pope": Task("pope popeadv popeadversarial popepop popepopular poperandom popefull cocopope cocopopeadversarial "
                 "cocopoperandom cocopopepopular", _stripped(P1), _question, "pope_lmms", "yes_no_vlmevalkit", 128),
    "ocrbench": Task("ocrbench", _stripped(), _question, "ocrbench_lmms", "ocrbench_vlmevalkit", 128),
    "real_world_qa": Task("realworldqa", _stripped(), CHOICE, "realworldqa_lmms", "mcq_vlmevalkit", 16),
    "seed_bench": Task("seedbench seedbenchimg", _letters, CHOICE, "seed_bench_lmms", "mcq_vlmevalkit", 0),
    "math_vista": Task("mathvista mathvistatestminiformat", _mathvista, _question, "mathvista_lmms", "mathvista_vlmevalkit", 16384),
    "mmmu": Task("mmmu mmmua mmmudevval", _mmmu, CHOICE, "mmmu_lmms", "mmmu_vlmevalkit", 128),
    "mmmu_pro": Task("mmmupro mmmuprostandard mmmupro10c mmmupro4c mmmupro10options mmmupro4options mmmuprostandard10 "
                     "mmmuprovision mmmuprostandard4", _mmmu_pro, _CHOICE_PRO, "mmmu_pro_lmms", "mmmu_vlmevalkit", 256),
    "science_qa_img": Task("scienceqaimg scienceqa sqa sqaimg", _science, CHOICE, "scienceqa_lmms", "mcq_vlmevalkit", 16),
    "st_qa": Task("stqa stvqa", _SHORT, _SHORT, "anls_lmms", "anls_vlmevalkit", 32),
    "tally_qa": Task("tallyqa", _NUMBER, _NUMBER, "tallyqa_vlmevalkit", "tallyqa_vlmevalkit", 0),
    "coco_caption": Task("cococaption cococap coco2014cap coco2014capval cocoval cococaptions", lambda s: "Provide a one-sentence caption for the provided image.",
                         lambda s: s.question or _DESCRIBE, "captions", "captions", 64),
}
_TAILS = "val validation dev test testmini mini lite train tsv parquet local v1 en cn withqt"


def task_of(name: str) -> Optional[str]:
    """The data set that the name of a file or task means, in either tool's spelling; None for any other name.

    >>> task_of("MMBench_DEV_EN"), task_of("lmms-lab/DocVQA_VAL"), task_of("TextVQA_0.5.1_val"), task_of("ocrbench_v2")
    ('mmbench', 'doc_qa', 'text_vqa', None)
    """
    words = [word for word in re.split(r"[-_ .]+", name.rsplit("/", 1)[-1].lower()) if word]
    while words:
        folded = "".join(words)
        for task, of in TASKS.items():
            if folded in of.names.split() or folded == task.replace("_", ""):
                return task
        if len(words) == 1 or words.pop() not in _TAILS.split():
            return None
    return None


# rules of the program that score as the tool's rule does, or nearly; otherwise the tool itself scores (vlmprof.scores)
METRICS = {"anls": "anls", "relaxed": "relaxed", "textvqa": "vqa_official", "vqav2": "vqa_official",
           "vqa": "vqa_official", "mmmu": "mmmu", "realworldqa": "real_world_qa", **dict.fromkeys(("mcq", "ai2d", "scienceqa", "mmbench", "seed"), "mc")}


def metric_of(rule: Optional[str], has_options: bool) -> Optional[str]:
    """The program's metric for a tool's rule; None if it has none, or if it needs options that the record lacks.

    >>> metric_of("anls_lmms", False), metric_of("mcq_lmms", True), metric_of("mcq_lmms", False)
    ('anls', 'mc', None)
    """
    metric = METRICS.get((rule or "").split("_")[0])
    return None if metric == "mc" and not has_options else metric
