"""Questions about passages that a tiny model learns to answer in seconds, in the form of SQuAD 2.0."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from tiny_data import FILLERS, WORDS, TinyFiles

from albert_tf.training.task_runs import QuestionAnsweringRun

QUESTIONS = {"cold": "is it very cold", "warm": "the sun and a day of it"}


def questions(count: int, seed: int = 0) -> dict[str, Any]:
    """Two questions a passage: its word for cold, and its word for warm, which every third passage lacks."""
    random = np.random.default_rng(seed)
    paragraphs = []
    for index in range(count):
        words = [str(word) for word in random.choice(FILLERS.split(), random.integers(6, 24))]
        own = {kind: str(random.choice(WORDS[kind].split())) for kind in WORDS}
        if index % 3 == 0:
            del own["warm"]
        for word in own.values():
            words.insert(int(random.integers(len(words))), word)
        context = " ".join(words)
        asked = []
        for kind, question in QUESTIONS.items():
            word = own.get(kind)
            place = re.search(rf"\b{word}\b", context) if word else None
            answers = [{"text": word, "answer_start": place.start()}] if place else []
            fields = {"id": f"{seed}-{index}-{kind}", "question": question, "answers": answers}
            asked.append(fields | {"is_impossible": not answers})
        paragraphs.append({"context": context, "qas": asked})
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}


def write_questions(path: Path, content: dict[str, Any]) -> Path:
    """A SQuAD file."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def question_run(files: TinyFiles, folder: Path, out: Path, **changes: Any) -> QuestionAnsweringRun:
    """A run on files that are written into `folder`; passages need up to six rows."""
    fields: dict[str, Any] = {
        "train": str(write_questions(folder / "train.json", questions(64))),
        "valid": str(write_questions(folder / "dev.json", questions(24, seed=1))),
        "out": str(out),
        "from_scratch": str(files.shape),
        "tokenizer": str(files.vocabulary),
        "epochs": 12.0,
        "batch_size": 8,
        "learning_rate": 5e-3,
        "max_length": 28,
        "doc_stride": 8,
        "max_question_length": 10,
    }
    return QuestionAnsweringRun(**fields | changes)
