"""Golden answers: what an exported file says to fixed texts, for an app to compare itself with on its own device.

For each example: the request, the rows of ids, what the file put out for each, the answer made of that, and what the
float32 model said. Runs without TensorFlow.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.inference.classification import PROBABILITIES
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.question_answering import FoundAnswer
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs
from albert_tf.inference.tagging import Tagged
from export.comparison import spread
from export.recorded import Recorded
from export.runtime import TFLiteRunner
from export.web.answers import ASKING, Fields, prepared_form
from export.web.examples import example_texts

FORMAT = 1
EACH = 12  # of an example set
# How far other kernels may be, in parts of the outputs' spread: integers are rounded in another order elsewhere.
TOLERANCES = {"float32": 1e-4, "float16": 1e-3}
# Measured between LiteRT's own kernels, with and without XNNPACK: 0.015 of 40 texts; 0.034 of 30 texts token by token.
INTEGER_TOLERANCE, INTEGER_TOLERANCE_OF_TOKENS = 0.02, 0.05
SAME_SCORE = 1e-4  # of two decoders on the same outputs
_DIGITS = 6
_LONG = (
    "It rained in the night, the road was wet in the morning, and the bus to the old mill by the river came twenty "
    "minutes late. Nobody on it said a word. "
)
_WORD = (
    "pneumonoultramicroscopicsilicovolcanoconiosishippopotomonstrosesquippedaliophobiafloccinaucinihilipilification"
    "supercalifragilisticexpialidociousantidisestablishmentarianismincomprehensibilities"
)
# What goes wrong first in a new tokenizer or decoder.
_EDGES = (
    "",
    "  ",
    "ok",
    "TURN OFF ALL THE LIGHTS IN THE KITCHEN!",
    "Zoë’s café: crème brûlée, naïve résumés – Ångström",
    "wake me at 7 ⏰😀 please 👩‍👩‍👧",
    "12,000 people paid $9,000 in 1999, and 1,2,3,",
    "ﬁne ½ ℌ ＦＵＬＬ ｗｉｄｔｈ ΟΔΥΣΣΕΥΣ",
    " tabs\tand\nnew  lines\u00a0\u2003around ",
    "``quoted'' \"twice\" 'so'",
    "明天下午三点提醒我开会",
    "שלום мир",
    "[CLS] the [SEP] <pad> [MASK]",
    "<b>bold</b> &amp; <script>alert(1)</script>",
    _WORD,
    _LONG * 6,
)
_QUESTION = "When did the bus come?"
_PASSAGE_AT_THE_END = _LONG * 6 + "Lena Ruiz sold the mill for 40,000 euros in May."


def golden_requests(task: str) -> list[Fields]:
    """What golden answers are given to: edge cases, and texts of the example sets, as the page's requests."""
    sets = [{name: value for name, value in asked.items() if name != "file"} for asked in example_texts(EACH)[task]]
    if task != "question-answering":
        return [*({"text": text} for text in _EDGES), *sets]
    edges = [{"question": _QUESTION, "context": text} for text in _EDGES]
    asked_far = {"question": "Who sold the mill?", "context": _PASSAGE_AT_THE_END}
    shouted = {"question": "WHO SOLD THE MILL", "context": "Léna Ruiz sold the mill 😀 for 40,000 euros in May."}
    return [*edges, asked_far, shouted, *sets]


def golden_answers(runner: TFLiteRunner, keras: Runner) -> dict[str, Any]:
    """What the file and the float32 model say, as JSON.

    Args:
        runner: the file.
        keras: the task that it was made from.
    """
    requests = golden_requests(runner.task)
    examples = [ASKING[runner.task].example(asked) for asked in requests]
    found = [_run(runner, runner.pipeline.prepare([prepared_form(example)])) for example in examples]
    floats = [keras.run_rows(prepared.rows) for prepared, _ in found]
    tolerance = _tolerances(runner.settings["recipe"]["name"], [row for rows in floats for row in rows])
    entries = []
    for asked, example, (prepared, outputs), unrounded in zip(requests, examples, found, floats, strict=True):
        rows: list[dict[str, Any]] = [
            {"token_ids": list(ids), "segment_ids": list(segments), "outputs": _numbers(row)}
            for (ids, segments), row in zip(prepared.rows, outputs, strict=True)
        ]
        stored = [_arrays(row["outputs"]) for row in rows]
        answer = answer_of(runner, prepared, stored)
        largest = max(_largest_difference(a, b) for a, b in zip(outputs, unrounded, strict=True))
        entries.append(
            {
                "asked": dict(asked),
                "rows": rows,
                "answer": _rounded(ASKING[runner.task].fields(example, answer)),
                "clear": is_clear(runner, answer, tolerance),
                "float32": {
                    "answer": _rounded(ASKING[runner.task].fields(example, answer_of(runner, prepared, unrounded))),
                    "largest_difference": _rounded(largest),
                },
            }
        )
    return {"format": FORMAT, "task": runner.task, "tolerance": tolerance, "examples": entries}


def golden_text(golden: Mapping[str, Any]) -> str:
    """The JSON text: a line for each example."""
    head = json.dumps({name: value for name, value in golden.items() if name != "examples"}, ensure_ascii=False)
    lines = ",\n".join(json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in golden["examples"])
    return f'{head[:-1]}, "examples": [\n{lines}\n]}}\n'


def golden_differences(runner: TFLiteRunner, golden: Mapping[str, Any]) -> list[str]:
    """What the file does otherwise than `golden` says, a line each; none where it is as it was."""
    if golden["task"] != runner.task:
        return [f"task: golden has {golden['task']}, the file {runner.task}"]
    lines = []
    for number, entry in enumerate(golden["examples"], start=1):
        shown = json.dumps(entry["asked"], ensure_ascii=False)
        where = f"example {number} ({shown if len(shown) <= 70 else shown[:69] + '…'})"
        lines += [f"{where}: {line}" for line in _entry_differences(runner, entry, golden["tolerance"])]
    return lines


def _entry_differences(runner: TFLiteRunner, entry: Mapping[str, Any], tolerance: Mapping[str, float]) -> list[str]:
    example = ASKING[runner.task].example(entry["asked"])
    prepared = runner.pipeline.prepare([prepared_form(example)])
    rows = [(list(ids), list(segments)) for ids, segments in prepared.rows]
    if rows != [(row["token_ids"], row["segment_ids"]) for row in entry["rows"]]:
        return ["other token ids or segment ids"]
    stored = [_arrays(row["outputs"]) for row in entry["rows"]]
    lines = []
    decoded = _rounded(ASKING[runner.task].fields(example, answer_of(runner, prepared, stored)))
    if not _same_answer(decoded, entry["answer"], SAME_SCORE):
        lines.append(f"the outputs of golden decode to {_short(decoded)}, golden says {_short(entry['answer'])}")
    _, outputs = _run(runner, prepared)
    for name, allowed in tolerance.items():
        largest = max(float(np.abs(a[name] - b[name]).max(initial=0)) for a, b in zip(outputs, stored, strict=True))
        if not largest <= allowed:
            lines.append(f"{name} differ by {largest:.3g}, more than {allowed:.3g}")
    found = _rounded(ASKING[runner.task].fields(example, answer_of(runner, prepared, outputs)))
    if entry["clear"] and not _same_answer(found, entry["answer"]):
        lines.append(f"answers {_short(found)}, golden says {_short(entry['answer'])}")
    return lines


def answer_of(runner: TFLiteRunner, prepared: Prepared, outputs: Sequence[Outputs]) -> Any:
    """What the task's pipeline makes of these outputs."""
    (answer,) = pipeline_of(Recorded(runner, outputs)).answer(prepared)
    return answer


def is_clear(runner: TFLiteRunner, answer: Any, tolerance: Mapping[str, float]) -> bool:
    """Whether outputs that are within the tolerance must give the same answer."""
    most = max(tolerance.values())
    if isinstance(answer, Tagged):
        return all(score > 0.5 + most for score in answer.scores)
    if isinstance(answer, FoundAnswer):
        # A span's score is a sum of two outputs, and so is that of no answer; two of each are compared.
        shares = [span.score for span in answer.spans[:2]]
        apart = len(shares) < 2 or shares[1] <= 0 or math.log(shares[0] / shares[1]) > 4 * most
        threshold = runner.pipeline.settings.no_answer_threshold  # type: ignore[attr-defined]  # of this task's pipeline
        return apart and (threshold is None or abs(answer.no_answer_score - threshold) > 4 * most)
    second, best = sorted(answer.probabilities.values())[-2:]
    return bool(best - second > 2 * most)


def _run(runner: TFLiteRunner, prepared: Prepared) -> tuple[Prepared, list[Outputs]]:
    return prepared, finite_outputs(runner, prepared.rows)


def _tolerances(recipe: str, floats: Sequence[Outputs]) -> dict[str, float]:
    found = {}
    for name in sorted(floats[0]):
        share = TOLERANCES.get(recipe, INTEGER_TOLERANCE if name == PROBABILITIES else INTEGER_TOLERANCE_OF_TOKENS)
        found[name] = float(f"{share * spread(name, [row[name] for row in floats]):.2g}")
    return found


def _largest_difference(file: Outputs, keras: Outputs) -> float:
    return max(float(np.abs(np.asarray(file[name], np.float64) - keras[name]).max(initial=0)) for name in keras)


def _numbers(outputs: Outputs) -> dict[str, Any]:
    return {name: _rounded(np.asarray(values, np.float64).tolist()) for name, values in sorted(outputs.items())}


def _arrays(stored: Mapping[str, Any]) -> Outputs:
    return {name: np.asarray(values, np.float32) for name, values in stored.items()}


def _rounded(value: Any) -> Any:
    """The value with its numbers to `_DIGITS` digits, as JSON has it."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: _rounded(entry) for name, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _same_answer(found: Any, wanted: Any, apart: float = math.inf) -> bool:
    """Whether two answers say the same, with scores no further apart than this."""
    if isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_same_answer(found[name], wanted[name], apart) for name in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(_same_answer(a, b, apart) for a, b in zip(found, wanted, strict=True))
    if isinstance(wanted, float):
        return isinstance(found, float) and abs(found - wanted) <= apart * max(1.0, abs(wanted))
    return bool(found == wanted)


def _short(answer: Mapping[str, Any]) -> str:
    told = {name: value for name, value in answer.items() if "score" not in name}
    text = json.dumps(told, ensure_ascii=False)
    return text if len(text) <= 120 else text[:119] + "…"
