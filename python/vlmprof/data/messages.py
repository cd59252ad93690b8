"""Records that are messages: OpenAI, LLaVA, ShareGPT4V, AIPerf, vLLM, and LLaVA's evaluation questions."""
from __future__ import annotations

import re
from typing import Any, List, Optional

from .record import DataError, Picture, Row, Sample, decode_base64, id_of, text_of, texts_of


def _take(url: str, sample: Sample) -> Optional[Picture]:
    """The picture of a data: URL, a file: URL or a path. Nothing is downloaded: a web address fails the record."""
    if url.startswith("data:"):
        try:
            head, _, data = url.partition(",")
            if not head.lower().endswith(";base64"):
                raise DataError("a data: URL that is not base64")
            return Picture(data=decode_base64(data))
        except DataError as error:
            sample.fail(str(error))
            return None
    if url.lower().startswith(("http://", "https://")):
        sample.more.setdefault("image_urls", []).append(url)
        sample.fail(f"picture \"{url[:200]}\" is on the web, and nothing is downloaded: fetch it and give the file")
        return None
    return Picture(path=url[7:] if url.startswith("file://") else url)


def _add(url: str, sample: Sample) -> None:
    picture = _take(url, sample)
    if picture:
        sample.pictures.append(picture)


# ---- OpenAI

def _message_text(message: Row) -> Optional[str]:
    content = message.get("content")
    if not isinstance(content, list):
        return text_of(content)
    return "".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)


def _openai_content(content: Any, sample: Sample) -> None:
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        image = part.get("image_url") if isinstance(part, dict) else None
        if isinstance(text, str):
            sample.add_text(text)
        if image is not None:
            url = image.get("url") if isinstance(image, dict) else image
            sample.add_place(len(sample.pictures) + len(sample.more.get("image_urls", [])))
            if isinstance(url, str):
                _add(url, sample)
            else:
                sample.fail("an \"image_url\" has no \"url\"")
        elif not isinstance(text, str):
            sample.fail("a part of a message has neither \"text\" nor \"image_url\"")


def openai_sample(row: Row, number: int) -> Sample:
    """The last user message is the question; an assistant's message after it is the reference."""
    sample = Sample(number, id_of(row, ["custom_id", "id"], number), answers=[])
    body = row["body"] if isinstance(row.get("body"), dict) else row
    asked: Optional[Row] = None
    system = None
    for message in body.get("messages") or []:
        role = message.get("role") if isinstance(message, dict) else None
        if role == "user":
            asked, sample.answers = message, []
        elif role == "assistant":
            sample.answers = texts_of(_message_text(message))
        elif role in ("system", "developer"):
            system = _message_text(message)
    sample.more.update(max_new_tokens=body.get("max_tokens", body.get("max_completion_tokens")), system=system)
    if asked is None:
        sample.fail("\"messages\" has no message with the role \"user\"")
    else:
        _openai_content(asked.get("content"), sample)
    return sample


# ---- LLaVA

def llava_sample(row: Row, number: int) -> Sample:
    """The first human turn, cut at <image>; the first gpt turn is the reference."""
    sample = Sample(number, id_of(row, ["id"], number), answers=[])
    sample.pictures = [Picture(path=path) for path in texts_of(row.get("image"))]
    turns = 0
    for turn in row["conversations"]:
        speaker = turn.get("from") if isinstance(turn, dict) else None
        if speaker in ("human", "user"):
            turns += 1
            sample.question = text_of(turn.get("value")) if turns == 1 else sample.question
        elif speaker in ("gpt", "assistant") and turns == 1 and not sample.answers:
            sample.answers = texts_of(turn.get("value"))
    sample.more["turns"] = turns
    if sample.question is None:
        sample.fail("\"conversations\" has no turn \"from\": \"human\" with a text")
        return sample
    pieces = sample.question.split("<image>")
    extra = len(sample.pictures) - (len(pieces) - 1)
    if extra < 0:
        sample.fail(f"its text has <image> {len(pieces) - 1} times, but there are {len(sample.pictures)} pictures")
    for i in range(extra):
        sample.add_place(i)
    for i, piece in enumerate(pieces):
        if i:
            sample.add_place(max(extra, 0) + i - 1)
        sample.add_text(piece.strip("\n"))
    sample.prompt = "".join(pieces).strip(" \n\r\t")
    return sample


def llava_question(row: Row, number: int) -> Sample:
    """A line of LLaVA's evaluation: the text is the whole prompt."""
    sample = Sample(number, id_of(row, ["question_id"], number), question=text_of(row.get("text")), answers=[])
    sample.prompt = sample.question
    sample.pictures = [Picture(path=path) for path in texts_of(row.get("image"))]
    if sample.question is None:
        sample.fail("\"text\" must be a string")
    return sample


# ---- AIPerf

def _media(turn: Row, one: str, many: str, sample: Sample) -> List[str]:
    """Texts under `one` or `many`: a text, a list of texts, or a list of {"name", "contents"}."""
    if turn.get(one) is not None and turn.get(many) is not None:
        sample.fail(f"\"{one}\" and \"{many}\" are both set: AIPerf accepts only one")
    found = texts_of(turn.get(one))
    for item in turn.get(many) or []:
        found += texts_of(item.get("contents") if isinstance(item, dict) else item)
    return found


def aiperf_sample(row: Row, number: int) -> Sample:
    """A single turn, or the first of several."""
    sample = Sample(number, id_of(row, ["session_id"], number), answers=[])
    turn, is_single = row, not isinstance(row.get("turns"), list)
    if not is_single:
        sample.more["turns"] = len(row["turns"])
        turn = row["turns"][0] if row["turns"] and isinstance(row["turns"][0], dict) else {}
    texts = _media(turn, "text", "texts", sample)
    images = _media(turn, "image", "images", sample)
    for url in images:
        _add(url, sample)
    if turn.get("timestamp") is not None and turn.get("delay") is not None:
        sample.fail("\"timestamp\" and \"delay\" are both set: AIPerf accepts only one")
    if not texts and not images:
        sample.fail("it has no text and no picture; accepted keys: text, texts, image, images")
    if len(texts) > 1:
        sample.content = [{"image": i} for i in range(len(sample.pictures))] + [{"text": text} for text in texts]
    else:
        sample.prompt = texts[0] if texts else ""
    if is_single:
        sample.more["texts"] = texts
        sample.more.update({f"{key}_ms": turn[key] for key in ("timestamp", "delay") if turn.get(key) is not None})
    return sample


# ---- vLLM

def vllm_sample(row: Row, number: int) -> Sample:
    """A line of vLLM's custom files; of several pictures only the first is sent, as in vLLM."""
    sample = Sample(number, number, question=text_of(row.get("prompt")), answers=[])
    sample.prompt = sample.question
    if sample.question is None:
        sample.fail("\"prompt\" must be a string")
    if "image_files" in row:
        files = texts_of(row["image_files"])
        if files:
            _add(files[0], sample)
        sample.more["unused_images"] = max(len(files) - 1, 0)
    else:
        sample.more["max_new_tokens"] = row.get("output_tokens")
    return sample


def reader_of(row: Row) -> Any:
    """The function that reads records of this form; None: none of these forms."""
    if isinstance(row.get("messages"), list) or isinstance(row.get("body"), dict):
        return openai_sample
    if isinstance(row.get("conversations"), list):
        return llava_sample
    if isinstance(row.get("turns"), list):
        return aiperf_sample
    if "question_id" in row and "text" in row and "label" not in row:
        return llava_question
    if "prompt" in row and "dataset" not in row and not re.search("question|content", " ".join(row)):
        return vllm_sample
    if any(key in row for key in ("text", "texts", "image", "images")) and "question" not in row and "query" not in row:
        return aiperf_sample
    return None
