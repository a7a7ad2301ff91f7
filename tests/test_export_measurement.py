"""Figures of one file, taken in a process of its own."""

import dataclasses
import subprocess

import pytest
from conftest import ROOT
from small_vocabularies import LINES
from tiny_exports import BASE, FIXED_LENGTH, classifier, exported, new_classifier

from albert_tf.errors import InputError
from export import measurement
from export.measurement import measure
from export.tflite import export_tflite


def test_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the new process must find the package from anywhere
    figures = measure(exported(), LINES, threads=2, repeats=2)
    assert figures.threads == 2
    lengths = [len(token_ids) for token_ids, _ in classifier().encode(LINES)]
    assert figures.mean_tokens == pytest.approx(sum(lengths) / len(lengths))
    assert 0 < figures.tokenizer_load_ms < figures.load_ms < 5000
    assert 0 < figures.median_latency_ms < 100
    # A tiny file; this process, with TensorFlow in it, would show hundreds of megabytes or nothing.
    assert 0.1e6 < figures.tokenizer_growth_bytes < figures.memory_growth_bytes < 30e6


def test_lengths_are_the_files():
    figures = measure(exported("all", "float32", "unrolled", FIXED_LENGTH), ["the old mill by the river " * 99])
    assert figures.mean_tokens == FIXED_LENGTH


def test_latencies_of_lengths():
    figures = measure(exported(), ["the mill"], repeats=1, lengths=[24, 3])
    assert list(figures.latencies_ms) == [3, 24]
    assert all(0 < latency < 100 for latency in figures.latencies_ms.values())
    for length in (1, 25):
        with pytest.raises(InputError, match=f"lengths: expected 2 to 24 tokens, got {length}"):
            measure(exported(), ["the mill"], lengths=[length])


def test_the_loop_saves_memory(tmp_path):
    config = dataclasses.replace(BASE, hidden_dim=256, intermediate_dim=1024, num_layers=8)
    task = new_classifier(config, scale=0.05)
    growth = {}
    for form in ("loop", "unrolled"):
        export_tflite(task, tmp_path / form, recipe="float32", form=form, measure=False)
        figures = measure(tmp_path / form, LINES)
        growth[form] = figures.memory_growth_bytes - figures.tokenizer_growth_bytes
    # Unrolled, the runtime packs the block's weights once for each of 8 layers. Measured: 35 MB against 13 MB.
    block_bytes = 4 * (4 * 256 * 256 + 2 * 256 * 1024)
    assert growth["unrolled"] - growth["loop"] > 6 * block_bytes
    assert growth["unrolled"] > 2.2 * growth["loop"]


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([], {}, "texts: expected a list of at least one text"),
        ("a text", {}, "texts: expected a list of at least one text"),
        (["a"], {"repeats": 0}, "repeats: expected at least 1, got 0"),
        (["a"], {"threads": 0}, "threads: expected at least 1, got 0"),
        ([1], {}, r"cannot be measured: texts\[0\]: expected a string, got int"),
    ],
)
def test_wrong_arguments(texts, options, message):
    with pytest.raises(InputError, match=message):
        measure(exported(), texts, **options)


def test_files_that_cannot_be_run(tmp_path):
    damaged = tmp_path / "damaged.tflite"
    content = exported().read_bytes()
    damaged.write_bytes(content[:500] + bytes(500) + content[1000:])
    with pytest.raises(InputError) as error:
        measure(damaged, ["a"])
    assert str(error.value).startswith(f"{damaged}: cannot be measured: damaged: the model's sha256 differs")
    with pytest.raises(InputError, match="cannot be measured: cannot read"):
        measure(tmp_path / "none.tflite", ["a"])


def test_a_process_that_dies_without_a_word(monkeypatch):
    died = subprocess.CompletedProcess([], -9, stdout="", stderr="")
    monkeypatch.setattr(measurement.subprocess, "run", lambda *_, **__: died)
    with pytest.raises(InputError, match="cannot be measured: the process ended with -9"):
        measure(exported(), ["a"])


def test_as_a_program():
    from json import loads
    from sys import executable

    command = [executable, "-m", "export.measurement", str(exported()), "1", "1"]
    done = subprocess.run(
        command, input='{"texts": ["the mill"], "lengths": [3]}', capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert set(loads(done.stdout)) == {field.name for field in dataclasses.fields(measurement.Measurement)}
    assert done.stderr == ""
