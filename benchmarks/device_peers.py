"""One classifier, quantised to int8 by each way there is to a device: size, memory, latency.

    python benchmarks/device_peers.py --data DATA --json device_peers.json

DATA is a folder with glue_canonical/SST-2/dev.tsv and albert_vocab_en/30k-clean.model. The same random weights, of
transformers' AlbertForSequenceClassification, go into all sides, which run on the CPU with one thread:

- albert-tf: `export_tflite` as it is by default, a loop of dynamic_int8, on LiteRT;
- Keras: the same Keras model by Keras's own `export(format="litert")` with its optimisation DEFAULT, on LiteRT; for
  texts of 128 tokens, to which sentences are padded, as for any length its file does not run there;
- ONNX Runtime: torch.onnx.export of transformers' model, then onnxruntime's quantize_dynamic;
- PyTorch: torch.ao.quantization.quantize_dynamic of transformers' linear layers.

The size of albert-tf's file is without the vocabulary, which the others' do not have. Every side has a process of its
own, which first opens and runs a small model, so that what the runtime needs for itself does not count. Memory is how much
it grows from then until the model is loaded and all texts were run. Then the sides take turns, a pass over the sentences
and a pass over the long texts each; time is the processor's, and a figure is the median over the turns. Sentences keep
their length, one at a time. Needs `pip install -e ".[peers]"`; Linux only. Takes about five minutes on two cores.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np

OURS, KERAS, ONNX, TORCH = "albert-tf", "Keras export", "ONNX Runtime", "PyTorch"
SIDES = (OURS, KERAS, ONNX, TORCH)
LONG, LONG_TEXTS = 128, 10
SMALL = {"hidden_dim": 32, "intermediate_dim": 64, "num_layers": 2, "num_heads": 2, "embedding_dim": 16}
NAMES = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
# One text's inputs → its logits or probabilities.
Run = Callable[[dict[str, np.ndarray]], np.ndarray]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--config", default="albert_base_v2", help="model size (default albert_base_v2)")
    parser.add_argument("--texts", type=int, default=60, help="SST-2 dev sentences to run (default 60)")
    parser.add_argument("--turns", type=int, default=5, help="passes of each side (default 5)")
    parser.add_argument("--side", nargs=3, metavar=("SIDE", "FILE", "SMALL"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "-1"}
    if args.side:
        answer_turns(args.side[0], *map(Path, args.side[1:]))
        return
    with tempfile.TemporaryDirectory() as folder:
        files, inputs, task, model_bytes = made(args, Path(folder))
        rows = measured(files, inputs, args.turns)
    rows[0]["file_bytes"] = model_bytes
    for row in rows:
        row["bytes_per_parameter"] = row["file_bytes"] / task.count_params()
    tokens = statistics.fmean(len(ids[0]) for ids in (text["token_ids"] for text in inputs["sentences"]))
    title = f"{args.config}, int8, 1 thread; {args.texts} sentences of {tokens:.0f} tokens in the mean, texts of {LONG}"
    common.show(title, [shown(row, rows[0]) for row in rows], rows, args.json)


def shown(row: dict[str, Any], ours: dict[str, Any]) -> dict[str, str]:
    times = {
        f"{what}, ms": f"{row[key]:.1f} ({row[key] / ours[key]:.2f}×)"
        for what, key in (("128 tokens", "long_ms"), ("sentence", "sentences_ms"))
    }
    return {
        "side": row["side"],
        "MB": f"{row['file_bytes'] / 1e6:.2f}",
        "B/param": f"{row['bytes_per_parameter']:.2f}",
        "load ms": f"{row['load_ms']:.0f}",
        "memory MB": f"{row['memory_bytes'] / 1e6:.0f} ({row['memory_bytes'] / ours['memory_bytes']:.1f}×)",
        **times,
        "off by": f"{row['difference']:.3f}",
    }


# === Files ===


def made(
    args: argparse.Namespace, folder: Path
) -> tuple[dict[str, tuple[Path, Path]], dict[str, list[dict[str, Any]]], Any, int]:
    """Each side's files, of the model and of a small one; the inputs of both kinds; the task; its bytes in our file."""
    import torch

    from albert_tf import AlbertConfig
    from albert_tf.data.tables import read_examples
    from albert_tf.tokenization.packing import pad_batch

    config = AlbertConfig.from_name(args.config)
    model, task = both_models(config, folder / "hub", args.data)
    texts = [example.text for example in read_examples(args.data / "glue_canonical/SST-2/dev.tsv")]
    sentences = texts[:: max(1, len(texts) // args.texts)][: args.texts]
    rows = {"sentences": task.encode(sentences), "long": task.encode([" ".join(texts[:40])] * LONG_TEXTS)}
    inputs = {kind: [pad_batch([row], 0) for row in encoded] for kind, encoded in rows.items()}
    files, model_bytes = written(model, task, inputs["long"][0], folder)
    small = both_models(dataclasses.replace(config, **SMALL), folder / "small" / "hub", args.data)
    small_files, _ = written(*small, inputs["long"][0], folder / "small")
    with torch.inference_mode():
        for text in inputs["sentences"] + inputs["long"]:
            named = {NAMES[name]: torch.from_numpy(array).long() for name, array in text.items()}
            text["expected"] = model(**named).logits.softmax(-1).numpy()
    return {side: (files[side], small_files[side]) for side in SIDES}, inputs, task, model_bytes


def both_models(config: Any, folder: Path, data: Path) -> tuple[Any, Any]:
    """The same random weights in transformers and in Keras."""
    import torch
    import transformers

    from albert_tf import AlbertTextClassifier

    torch.manual_seed(0)
    published = transformers.AlbertConfig(**config.to_published_dict(), num_labels=2)
    model = transformers.AlbertForSequenceClassification(published).eval()
    model.save_pretrained(folder)
    shutil.copy(data / "albert_vocab_en/30k-clean.model", folder / "spiece.model")
    task = AlbertTextClassifier.from_pretrained(folder, labels=["0", "1"])
    task.required_tokenizer.max_length = LONG
    return model, task


def written(model: Any, task: Any, example: dict[str, np.ndarray], folder: Path) -> tuple[dict[str, Path], int]:
    """The file of each side, and the bytes of the model in ours."""
    import torch

    from export.tflite import export_tflite

    files = {side: folder / f"{side.replace(' ', '-')}.bin" for side in SIDES}
    model_bytes = export_tflite(task, files[OURS], measure=False, force=True).model_bytes
    write_keras(task, files[KERAS])
    write_onnx(model, example, files[ONNX])
    torch.save(torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8), files[TORCH])
    return files, model_bytes


def write_keras(task: Any, path: Path) -> None:
    import tensorflow as tf

    # Of any length it needs operators of TensorFlow (Flex), which LiteRT does not have.
    signature = {name: tf.TensorSpec((1, LONG), tf.int32, name) for name in NAMES}
    file = str(path.with_suffix(".tflite"))
    task.export(file, format="litert", input_signature=signature, optimizations=[tf.lite.Optimize.DEFAULT])
    path.with_suffix(".tflite").rename(path)


def write_onnx(model: Any, example: dict[str, np.ndarray], path: Path) -> None:
    import torch
    from onnxruntime.quantization import quantize_dynamic

    names = list(NAMES.values())
    exported = path.with_suffix(".float.onnx")
    torch.onnx.export(
        model,
        kwargs={NAMES[name]: torch.from_numpy(array).long() for name, array in example.items()},
        f=exported,
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "batch", 1: "sequence"} for name in names},
        dynamo=False,
    )
    quantize_dynamic(exported, path)


# === Measuring ===


def measured(
    files: dict[str, tuple[Path, Path]], inputs: dict[str, list[dict[str, Any]]], turns: int
) -> list[dict[str, Any]]:
    listed = {
        kind: [{name: array.tolist() for name, array in text.items()} for text in texts]
        for kind, texts in inputs.items()
    }
    with contextlib.ExitStack() as stack:
        sides = {side: stack.enter_context(side_process(side, *paths)) for side, paths in files.items()}
        rows = []
        for side, ask in sides.items():
            rows.append({"side": side, "file_bytes": files[side][0].stat().st_size, **ask(listed)})
        found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(turns):
            for side, ask in sides.items():
                found[side].append(ask(None))
    for row in rows:
        for key in ("sentences_ms", "long_ms"):
            row[key] = statistics.median(turn[key] for turn in found[row["side"]])
    return rows


@contextlib.contextmanager
def side_process(side: str, path: Path, small: Path) -> Iterator[Callable[[Any], dict[str, Any]]]:
    """A process that answers a JSON line with one."""
    command = [sys.executable, __file__, "--data", ".", "--side", side, str(path), str(small)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None

    def ask(question: Any) -> dict[str, Any]:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        while (line := process.stdout.readline()) and not line.startswith("{"):
            pass  # what a runtime says
        if not line:
            raise RuntimeError(f"{side}: the process ended")
        return dict(json.loads(line))

    try:
        yield ask
    finally:
        process.kill()


def answer_turns(side: str, path: Path, small: Path) -> None:
    """The other end of `side_process`."""
    listed = json.loads(sys.stdin.readline())
    inputs = {
        kind: [{name: np.asarray(array) for name, array in text.items()} for text in texts]
        for kind, texts in listed.items()
    }
    opened = {OURS: litert, KERAS: litert, ONNX: onnx, TORCH: pytorch}[side]()
    run_small = opened(small)
    run_small(inputs["sentences"][0])
    memory, started = common.resident("VmRSS"), time.perf_counter()
    run = opened(path)
    load_ms = 1e3 * (time.perf_counter() - started)
    answers = [(run(text), text["expected"]) for text in [*inputs["long"], *inputs["sentences"]]]
    figures = {
        "load_ms": load_ms,
        "memory_bytes": common.resident("VmRSS") - memory,
        "difference": max(float(np.abs(probabilities(answer) - wanted).max()) for answer, wanted in answers),
    }
    print(json.dumps(figures), flush=True)
    while sys.stdin.readline():
        print(json.dumps({f"{kind}_ms": mean_ms(run, texts) for kind, texts in inputs.items()}), flush=True)


def mean_ms(run: Run, texts: list[dict[str, np.ndarray]]) -> float:
    run(texts[0])  # other sides had the caches
    times = []
    for text in texts:
        started = time.process_time()
        run(text)
        times.append(1e3 * (time.process_time() - started))
    return statistics.fmean(times)


def probabilities(answer: np.ndarray) -> np.ndarray:
    if abs(answer.sum() - 1) < 1e-3 and answer.min() >= 0:
        return answer
    shares = np.exp(answer - answer.max())
    return shares / shares.sum()


def litert() -> Callable[[Path], Run]:
    from ai_edge_litert.interpreter import Interpreter

    def opened(path: Path) -> Run:
        interpreter = Interpreter(str(path), num_threads=1)
        signature = interpreter.get_signature_runner()
        details = signature.get_input_details()
        names = {given: next(own for own in NAMES if own in given) for given in details}
        fixed = all(-1 not in detail["shape_signature"] for detail in details.values())

        def run(text: dict[str, np.ndarray]) -> np.ndarray:
            given = {name: text[own].astype(np.int32) for name, own in names.items()}
            if fixed:
                given = {name: np.pad(ids, ((0, 0), (0, LONG - ids.shape[1]))) for name, ids in given.items()}
            return np.asarray(next(iter(signature(**given).values())))

        return run

    return opened


def onnx() -> Callable[[Path], Run]:
    import onnxruntime

    def opened(path: Path) -> Run:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return lambda text: np.asarray(
            session.run(None, {name: text[own].astype(np.int64) for own, name in NAMES.items()})[0]
        )

    return opened


def pytorch() -> Callable[[Path], Run]:
    import torch
    import transformers.models.albert.modeling_albert  # noqa: F401  # its code is not the model's memory

    torch.set_num_threads(1)

    def opened(path: Path) -> Run:
        model = torch.load(path, weights_only=False).eval()

        def run(text: dict[str, np.ndarray]) -> np.ndarray:
            with torch.inference_mode():
                named = {name: torch.from_numpy(text[own]).long() for own, name in NAMES.items()}
                return np.asarray(model(**named).logits)

        return run

    return opened


if __name__ == "__main__":
    main()
