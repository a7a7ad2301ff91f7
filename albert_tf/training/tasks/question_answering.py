"""Fine-tuning of question answerers."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.rows import start_of
from albert_tf.data.squad import Answer, QuestionExample, read_and_report
from albert_tf.errors import InputError
from albert_tf.inference.question_answering import Asked
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.training.task_runs import QuestionAnsweringRun
from albert_tf.training.tasks.finetune_task import TrainingRows

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_EQUAL_CLASSES = 0.0  # the no-answer score at which an answer and none are equally probable


class FinetuneQuestionAnswering:
    """SQuAD or CMRC files → `AlbertQuestionAnswerer`; see `FinetuneTask`."""

    model_class = AlbertQuestionAnswerer
    metric = "f1"

    def read(self, run: QuestionAnsweringRun, path: str, report: Callable[[str], None]) -> list[QuestionExample]:
        return read_and_report(path, report, leave_out_unusable=run.leave_out_unusable)

    def head_settings(self, run: QuestionAnsweringRun, examples: Sequence[QuestionExample]) -> dict[str, Any]:
        unanswerable = any(not example.answers for example in examples)
        return {
            "head": run.head,
            "doc_stride": run.doc_stride,
            "max_question_length": run.max_question_length,
            "max_answer_length": run.max_answer_length,
            "n_best": run.n_best,
            "start_beams": run.start_beams,
            "end_beams": run.end_beams,
            "no_answer_threshold": _EQUAL_CLASSES if unanswerable else None,  # a validation finds a better one
            "language": language_of(examples) if run.language == "auto" else run.language,
            "classifier_dropout": run.classifier_dropout,
        }

    def training_rows(
        self, model: AlbertQuestionAnswerer, examples: Sequence[QuestionExample], prepared: Prepared, source: str
    ) -> TrainingRows:
        """A target for each row: the first answer, where the row holds all of it; else the first token, as for a question
        without an answer (convert_examples_to_features of google-research/albert)."""
        if not any(example.answers for example in examples):
            raise InputError(f"{source}: expected questions with answers, found none")
        targets = []
        for example, asked in zip(examples, prepared.context, strict=True):
            answer = _tokens_of(example.answers[0], asked, example, source) if example.answers else None
            for start, end in asked.bounds:
                inside = answer is not None and start <= answer[0] and answer[1] < end
                shift = asked.before - start
                targets.append((answer[0] + shift, answer[1] + shift, 0) if answer and inside else (0, 0, 1))
        columns = np.array(targets, np.int32).T
        return TrainingRows(
            prepared.rows, {"start": columns[0], "end": columns[1], "unanswerable": columns[2].astype(np.float32)}
        )

    def describe(self, model: AlbertQuestionAnswerer) -> str:
        answering = model.answering
        none = "always one" if answering.no_answer_threshold is None else "or none"
        return f"an answer from the passage, {none}; head {answering.head}, rules of comparison {answering.language}"

    def write(self, folder: Path, model: AlbertQuestionAnswerer, metrics: dict[str, Any]) -> None:
        pass


def language_of(examples: Sequence[QuestionExample]) -> str:
    """ "chinese" where most characters of the passages are ideographs, else "english"."""
    passages = {example.context for example in examples}
    ideographs = sum(len(_IDEOGRAPH.findall(passage)) for passage in passages)
    characters = sum(len("".join(passage.split())) for passage in passages)
    return "chinese" if 2 * ideographs > characters else "english"


def _tokens_of(answer: Answer, asked: Asked, example: QuestionExample, source: str) -> tuple[int, int]:
    """The first and the last token of the passage that has a character of the answer."""
    first = bisect_right(asked.spans, answer.start, key=lambda span: span[1])
    last = bisect_left(asked.spans, answer.start + len(answer.text), key=lambda span: span[0]) - 1
    if first > last:
        raise InputError(
            f"{source}: question {example.identifier}: the tokenizer leaves nothing of the answer {start_of(answer.text)}"
        )
    return first, last
