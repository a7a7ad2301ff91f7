"""`albert-tf export android`: what is in the folder, and that its manifest is true."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_folders import NAMES, contents, golden_of
from command_line import albert_tf, assert_refused
from tiny_data import read_json
from tiny_exports import LABELS
from tiny_tasks import EXAMPLES, new_task

from albert_tf.errors import InputError
from albert_tf.tasks.trained import load_task
from export.android import export_android
from export.android_golden import golden_requests, is_clear
from export.android_manifest import manifest_of, read_manifest
from export.runtime import TFLiteRunner
from export.tflite_file import open_file

FILES = {"device.spm", "golden.json", "licence.txt", "model.json"}


# === What is app_folder ===


def test_each_model_has_what_an_app_needs(app_folder: Path) -> None:
    assert sorted(path.name for path in app_folder.iterdir()) == [
        *NAMES[:1],
        "manifest.json",
        "measurements.json",
        *NAMES[1:],
    ]
    for name in NAMES:
        labels = set() if name == "questions" else {"labels.txt"}
        assert {path.name for path in (app_folder / name).iterdir()} == FILES | labels | {f"{name}.tflite"}
    assert (app_folder / "messages" / "labels.txt").read_text("utf-8").splitlines() == list(LABELS)
    assert TFLiteRunner(app_folder / "messages" / "messages.tflite").settings["runtime"] == "mediapipe"
    answerer = TFLiteRunner(app_folder / "questions" / "questions.tflite")
    assert (answerer.settings["form"], answerer.lengths) == ("loop", (16, 24))  # no longer than the model takes
    note = (app_folder / "messages" / "licence.txt").read_text("utf-8")
    assert "encoder" in note and "train.tsv" in note and "somewhere" not in note


def test_the_manifest_says_what_the_files_are(app_folder: Path) -> None:
    manifest = read_manifest(app_folder)
    assert [model["name"] for model in manifest["models"]] == NAMES
    for model in manifest["models"]:
        own = app_folder / model["name"]
        for file in model["files"]:
            content = (own / file["name"]).read_bytes()
            assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert {file["name"] for file in model["files"]} == {path.name for path in own.iterdir()}
        runner = TFLiteRunner(own / f"{model['name']}.tflite")
        assert model["parameters"] == runner.settings["parameters"]
        assert model["recipe"] == runner.settings["recipe"] and model["settings"] == runner.task_settings
        graph = open_file(runner.path).model.subgraphs[0]
        (first, *_) = model["signatures"]
        assert {tensor["name"] for tensor in first["inputs"]} == {"token_ids", "segment_ids", "padding_mask"}
        assert sorted(tensor["shape"] for tensor in first["outputs"]) == sorted(
            list(graph.tensors[i].signature) for i in graph.outputs
        )
    assert manifest["total_bytes"] == sum(file["bytes"] for model in manifest["models"] for file in model["files"])
    (messages,) = (model for model in manifest["models"] if model["name"] == "messages")
    assert messages["source"]["training"] == {"source": "encoder", "train": "train.tsv", "valid": "gone.tsv", "seed": 3}
    taken = {verdict["runtime"]: verdict["takes"] for verdict in messages["runtimes"]}
    assert taken["LiteRT"] == "yes"
    assert next(takes for runtime, takes in taken.items() if "TextClassifier" in runtime) == "yes"


def test_made_again_of_the_files_it_is_the_same(app_folder: Path) -> None:
    assert json.loads(json.dumps(manifest_of(app_folder, NAMES))) == read_manifest(app_folder)


def test_the_same_bytes_twice(app_runs: list[Path], app_folder: Path, tmp_path: Path) -> None:
    export_android(list(reversed(app_runs)), tmp_path / "again", recipe="float32")
    first, second = contents(app_folder), contents(tmp_path / "again")
    measured = "measurements.json"
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name] and name != measured] == []
    figures = json.loads(first[measured])
    assert figures["machine"]["processor"] and figures["models"].keys() == set(NAMES)
    assert all(model["memory_growth_bytes"] > 0 and model["latencies_ms"] for model in figures["models"].values())


def test_golden_answers_are_the_files_and_the_models(app_runs: list[Path], app_folder: Path) -> None:
    for run in app_runs:
        golden, keras = golden_of(app_folder, run.name), load_task(run)
        runner = TFLiteRunner(app_folder / run.name / f"{run.name}.tflite")
        assert len(golden["examples"]) >= 24 and golden["task"] == runner.task
        asked = [entry["asked"] for entry in golden["examples"]]
        assert asked == golden_requests(runner.task) and max(len(next(iter(one.values()))) for one in asked) <= 1000
        assert max(len(entry["rows"]) for entry in golden["examples"]) > (run.name != "messages")  # long ones, in parts
        for entry in golden["examples"]:
            for row in entry["rows"]:
                (outputs,) = keras.run_rows([(row["token_ids"], row["segment_ids"])])
                for name, values in outputs.items():
                    np.testing.assert_allclose(row["outputs"][name], values, rtol=0, atol=golden["tolerance"][name])
        if run.name == "messages":
            said = runner([one["text"] for one in asked])
            assert [entry["answer"]["label"] for entry in golden["examples"]] == [answer.label for answer in said]
        elif run.name == "entities":
            found = runner([one["text"] for one in asked])
            shown = [
                [(e["type"], e["start"], e["end"]) for e in entry["answer"]["entities"]] for entry in golden["examples"]
            ]
            assert shown == [[(e.kind, e.start, e.end) for e in entities] for entities in found]
        else:
            answers = runner([one["question"] for one in asked], [one["context"] for one in asked])
            assert [entry["answer"]["answer"] for entry in golden["examples"]] == [answer.text for answer in answers]


def test_clear_answers_stay_where_outputs_are_off_by_the_tolerance(app_folder: Path) -> None:
    """What `clear` promises an app, with the worst that the tolerance allows, many times over."""
    from export.android_golden import answer_of, prepared_form
    from export.web.answers import ASKING

    random, clear = np.random.default_rng(0), 0
    for name in NAMES:
        golden = golden_of(app_folder, name)
        runner = TFLiteRunner(app_folder / name / f"{name}.tflite")
        for entry in golden["examples"]:
            prepared = runner.pipeline.prepare([prepared_form(ASKING[runner.task].example(entry["asked"]))])
            stored = [{k: np.array(v, np.float32) for k, v in row["outputs"].items()} for row in entry["rows"]]
            for tolerance in ({k: 20 * v for k, v in golden["tolerance"].items()}, golden["tolerance"]):
                wanted = answer_of(runner, prepared, stored)
                if not is_clear(runner, wanted, tolerance):
                    continue
                clear += 1
                for _ in range(5):
                    moved = [
                        {
                            k: v + tolerance[k] * random.choice([-1, 1], v.shape).astype(np.float32)
                            for k, v in row.items()
                        }
                        for row in stored
                    ]
                    assert said(answer_of(runner, prepared, moved)) == said(wanted), entry["asked"]
    assert clear > 20


def said(answer: Any) -> Any:
    for name in ("labels", "label", "text"):
        if hasattr(answer, name):
            return getattr(answer, name), getattr(answer, "start", None)
    raise AssertionError(answer)


# === The command ===


def test_the_command_writes_and_checks(
    app_runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, out, licence = albert_tf(capsys), tmp_path / "assets", tmp_path / "terms.txt"
    licence.write_text("Do as you like.\n", encoding="utf-8")
    (out / "java").mkdir(parents=True)
    (out / "java" / "A.java").write_text("class A {}\n", encoding="utf-8")
    (out / "README.md").write_text("# Mine\n", encoding="utf-8")
    done = command("export", "android", app_runs[0], "--out", out, "--licence", licence)
    assert done.code == 0, done.err
    assert "no validation file (gone.tsv), so the file is compared on built-in sentences" in done.out
    assert "messages.tflite against the Keras model" in done.out and "written to" in done.out
    assert (out / "messages" / "licence.txt").read_text("utf-8").endswith("\nDo as you like.\n")
    assert read_manifest(out)["models"][0]["recipe"]["name"] == "dynamic_int8"
    assert_refused(command("export", "android", app_runs[2], "--out", out), "manifest.json already; pass --overwrite")
    done = command("export", "android", app_runs[2], "--out", out, "--recipe", "float32", "--overwrite")
    assert done.code == 0, done.err
    # The models of the call before are gone, what is not its own is there.
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["README.md", "java", "entities", "manifest.json", "measurements.json"]
    )
    assert (out / "java" / "A.java").read_text("utf-8") == "class A {}\n"
    done = command("export", "android", "--check", out)
    assert (done.code, done.err) == (0, "") and "models: 1, files: 6; all as" in done.out


def test_metrics_on_the_runs_own_validation_file(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = albert_tf(capsys)("export", "android", finished_run, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    (model,) = read_manifest(tmp_path / "out")["models"]
    recorded = read_json(finished_run / "metrics.json")["valid"]["accuracy"]
    assert model["source"]["metrics"]["accuracy"]["float32"] == pytest.approx(recorded, abs=1e-4)
    assert model["source"]["compared_on"] == "labelled examples"
    assert model["source"]["training_examples"] == 64


def test_runs_that_stop_early_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = EXAMPLES["tagging"][0] | {"exits": {"rule": "confidence"}}
    new_task("tagging", **settings).save_pretrained(tmp_path / "run")
    done = albert_tf(capsys)("export", "android", tmp_path / "run", "--out", tmp_path / "out")
    assert_refused(done, "run: stops early, while an app's folder has files that make all passes")


@pytest.mark.parametrize("task", ["regression", "multi-label", "fill-mask"])
def test_runs_of_other_tasks_are_refused(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_task(task, **(EXAMPLES[task][0] if task in EXAMPLES else {})).save_pretrained(tmp_path / "run")
    done = albert_tf(capsys)("export", "android", tmp_path / "run", "--out", tmp_path / "out")
    assert_refused(done, f"a model for {task}; expected one for classification, question-answering, tagging")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_wrong_use(app_runs: list[Path], app_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, out = albert_tf(capsys), tmp_path / "out"
    assert_refused(command("export", "android"), "expected run folders and --out FOLDER, or --check FOLDER")
    assert_refused(command("export", "android", app_runs[0]), "expected run folders and --out FOLDER")
    assert_refused(
        command("export", "android", app_runs[0], "--check", app_folder), "neither run folders nor --out with it"
    )
    assert_refused(command("export", "android", tmp_path / "no", "--out", out), "no: no such file or folder")
    assert_refused(command("export", "android", "--check", tmp_path), "manifest.json: no such file")
    again = Path(shutil.copytree(app_runs[0], tmp_path / "more" / "messages"))
    assert_refused(command("export", "android", app_runs[0], again, "--out", out), "would both become messages/")
    (out / "messages").mkdir(parents=True)
    assert_refused(command("export", "android", app_runs[0], "--out", out), "is there, and no work of this command")
    shutil.rmtree(out)
    out.write_text("a file", encoding="utf-8")
    assert_refused(command("export", "android", app_runs[0], "--out", out, "--overwrite"), "found a file")
    assert_refused(command("export", "android", app_runs[0], "--out", tmp_path / "o", "--recipe", "int3"), "int3")
    done = command("export", "android", app_runs[0], "--out", tmp_path / "o", "--recipe", "int8")
    assert_refused(done, "recipe: int8 computes in integers alone")
    assert not (tmp_path / "o").exists()
    with pytest.raises(InputError, match="expected a list of at least one run folder"):
        export_android([], out)


def test_nothing_is_left_where_a_file_fails(
    app_runs: list[Path], app_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from export import android

    out = Path(shutil.copytree(app_folder, tmp_path / "out"))
    before = contents(out)
    monkeypatch.setattr(android, "golden_answers", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_android(app_runs, out, recipe="float32", overwrite=True)
    assert contents(out) == before and [path.name for path in tmp_path.iterdir()] == ["out"]
