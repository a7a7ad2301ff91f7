"""Golden answers of a folder for apps, asked of other runtimes and of the Java that an app takes along."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from app_folders import golden_of
from browser_client import MODULES, browse
from java_client import Java
from web_pages import serving

from export.runtime import TFLiteRunner

# A row's outputs for JavaClient's "golden": one after the other, as the model puts them out, padding included.


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


def java_differences(
    java: Java, folder: Path, name: str, golden: Path | None = None, *, outputs: bool = True
) -> list[str]:
    """What GoldenCheck tells, first how many examples there are.

    Args:
        golden: another file of golden answers, for the same rows.
        outputs: with outputs of ai-edge-litert; else tokenizer and decoders alone.
    """
    path = folder / name / f"{name}.tflite"
    golden = golden or folder / name / "golden.json"
    if not outputs:
        return java.run("golden", path, golden, "none")
    runner = TFLiteRunner(path)
    lines = []
    for entry in golden_of(folder, name)["examples"]:
        for row in entry["rows"]:
            found = runner._model.run(row["token_ids"], row["segment_ids"], runner.tokenizer.vocabulary.pad_id)
            lines.append("\t".join(" ".join(map(repr, found[key].ravel().tolist())) for key in sorted(found)))
    return java.run("golden", path, golden, "outputs", lines=lines)


def browser_differences(folder: Path, names: Iterable[str]) -> tuple[list[str], int]:
    """What the page answers in the browser otherwise than golden.json says; and how many requests it was asked.

    The page asks for a text, so blank ones are left out; so are texts that npm's SentencePiece cuts otherwise, no more than
    one in ten.
    """
    with serving([folder / name / f"{name}.tflite" for name in names], MODULES) as asker:
        calls, entries = [], []
        for name in names:
            golden = golden_of(folder, name)
            for entry in golden["examples"]:
                if all(text.strip() for text in entry["asked"].values()):
                    calls.append({"file": f"{name}.tflite", "asked": entry["asked"], "where": "browser"})
                    entries.append((golden["tolerance"], entry))
        results = browse(asker.url, calls=calls)["results"]
    lines, otherwise = [], 0
    for (tolerance, entry), result in zip(entries, results, strict=True):
        if "error" in result or "in this browser" not in result["runtime"]:
            lines.append(f"{entry['asked']}: {result.get('error', result.get('why'))}")
        elif result["tokens"]["count"] != sum(len(row["token_ids"]) for row in entry["rows"]):
            otherwise += 1
        elif entry["clear"] and _said(result["answer"]) != _said(entry["answer"]):
            lines.append(f"{entry['asked']}: {_said(result['answer'])}, golden says {_said(entry['answer'])}")
        elif "scores" in entry["answer"]:
            pairs = zip(result["answer"]["scores"], entry["answer"]["scores"], strict=True)
            if max(abs(found - wanted) for (_, found), (_, wanted) in pairs) > tolerance["probabilities"]:
                lines.append(f"{entry['asked']}: other scores")
    assert otherwise <= 0.1 * len(calls), f"{otherwise} of {len(calls)} texts are cut otherwise"
    return lines, len(calls)


def _said(answer: dict[str, Any]) -> Any:
    """An answer without its scores."""
    if "entities" in answer:
        return [(entity["type"], entity["start"], entity["end"]) for entity in answer["entities"]]
    return {name: value for name, value in answer.items() if "score" not in name}
