"""Golden answers of a folder for apps, asked of other runtimes and of the Java that an app takes along."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from java_client import Java

from export.runtime import TFLiteRunner

# A row's outputs for JavaClient's "golden": one after the other, as the model puts them out, padding included.


def golden_of(folder: Path, name: str) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads((folder / name / "golden.json").read_text("utf-8"))
    return golden


def mediapipe_differences(
    ask: Callable[[Path, list[str]], list[dict[str, float]]], folder: Path, name: str
) -> list[str]:
    """What MediaPipe's own class says otherwise than golden.json.

    Args:
        ask: a file and texts → the scores of each by label.
    """
    golden = golden_of(folder, name)
    found = ask(folder / name / f"{name}.tflite", [entry["asked"]["text"] for entry in golden["examples"]])
    lines = []
    for entry, scores in zip(golden["examples"], found, strict=True):
        wanted = dict(entry["answer"]["scores"])
        largest = max(abs(scores[label] - wanted[label]) for label in wanted)
        if scores.keys() != wanted.keys() or not largest <= golden["tolerance"]["probabilities"]:
            lines.append(f"{entry['asked']}: scores differ by {largest:.3g}")
        if entry["clear"] and max(scores, key=lambda label: scores[label]) != entry["answer"]["label"]:
            lines.append(f"{entry['asked']}: another label")
    return lines


def java_differences(java: Java, folder: Path, name: str, golden: Path | None = None) -> list[str]:
    """What GoldenCheck tells, first how many examples there are: with outputs of ai-edge-litert.

    Args:
        golden: another file of golden answers, for the same rows.
    """
    path = folder / name / f"{name}.tflite"
    runner = TFLiteRunner(path)
    lines = []
    for entry in golden_of(folder, name)["examples"]:
        for row in entry["rows"]:
            outputs = runner._model.run(row["token_ids"], row["segment_ids"], runner.tokenizer.vocabulary.pad_id)
            named = sorted(outputs)
            lines.append("\t".join(" ".join(map(repr, outputs[n].ravel().tolist())) for n in named))
    return java.run("golden", path, golden or folder / name / "golden.json", "outputs", lines=lines)
