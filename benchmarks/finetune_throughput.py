"""Fine-tuning examples per second, side by side with keras-hub and with transformers (PyTorch), in one process.

    python benchmarks/finetune_throughput.py --data DATA --json throughput.json

DATA is a folder with glue_canonical/SST-2/train_first20000.tsv and albert_vocab_en/30k-clean.model. All sides have the
same size, batch, optimizer settings, threads and sentences, in float32:

- keras-hub's AlbertTextClassifier pads every batch to 128 tokens, its preprocessor's length;
- transformers' AlbertForSequenceClassification as its Trainer runs it: DataCollatorWithPadding pads a batch of random
  sentences to its longest, a fused AdamW, clipping; with the activation of its published configs (gelu_new, in several
  operators) and with PyTorch's own in one operator;
- albert-tf as it trains (batches of like length), and padded to 128.

The sides take turns of a few steps each, and a ratio is the median over the turns. Time is the processor's, over all
threads, which other work on the machine changes little; with one thread a side does not spend it waiting for another
thread (PyTorch's wait busily). Then each side trains in a process of its own: how much that grows, at its peak, from before
the model is made (Linux). Needs `pip install -e ".[peers]"`. Takes about ten minutes on two cores.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common

from albert_tf import AlbertConfig, AlbertTokenizer
from albert_tf.data.tables import read_examples

BATCH = 32
LENGTH = 128
LEARNING_RATE = 2e-5
WEIGHT_DECAY = 0.01
KERAS_HUB, TRANSFORMERS, FUSED = "keras-hub", "transformers", "transformers, fused activation"
OURS, OURS_PADDED = "albert-tf", "albert-tf, padded to 128"
# Short texts make quick steps of varying length: more of them for a turn of like duration.
STEPS = {KERAS_HUB: 2, TRANSFORMERS: 8, FUSED: 8, OURS: 24, OURS_PADDED: 2}
MEMORY_STEPS = 20  # enough to meet long sentences

Step = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all sides are given."""

    texts: list[str]
    labels: list[int]
    config: AlbertConfig
    vocabulary: Path


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--config", default="albert_small_en", help="size of all models (default albert_small_en)")
    parser.add_argument("--turns", type=int, default=8, help="turns of each side (default 8)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each side (default 1)")
    parser.add_argument("--measure", metavar="SIDE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    examples = read_examples(args.data / "glue_canonical/SST-2/train_first20000.tsv")
    config = dataclasses.replace(AlbertConfig.from_name(args.config), vocabulary_size=30000)
    texts, labels = [example.text for example in examples], [int(str(example.label)) for example in examples]
    setting = Setting(texts, labels, config, args.data / "albert_vocab_en/30k-clean.model")
    if args.measure:
        print(json.dumps(grown(args.measure, setting, args.threads)))
        return
    speeds = turns(setting, args.turns, args.threads)
    memory = {side: in_fresh_process(args, side) for side in SIDES}
    ratios = {side: ratio(speeds[OURS], values) for side, values in speeds.items()}
    rows = [
        {
            "side": side,
            "examples/CPU s": f"{statistics.median(values):.1f}",
            "albert-tf against it": f"{ratios[side]:.2f}×",
            "memory MB": f"{memory[side] / 1e6:.0f}",
        }
        for side, values in speeds.items()
    ]
    figures = {"examples_per_cpu_second": speeds, "median_ratio_of_albert_tf": ratios, "bytes_grown": memory}
    common.show(f"fine-tuning {args.config} on SST-2, batch {BATCH}, float32", rows, figures, args.json)


def turns(setting: Setting, count: int, threads: int) -> dict[str, list[float]]:
    """Examples a second of the processor of each side, turn by turn."""
    limit_threads(threads)
    steps = {side: make(setting) for side, make in SIDES.items()}
    speeds: dict[str, list[float]] = {side: [] for side in steps}
    for turn in range(count + 1):
        for side, step in steps.items():
            started = time.process_time()
            for _ in range(STEPS[side]):
                step()
            if turn:  # the first traces and fills caches
                speeds[side].append(STEPS[side] * BATCH / (time.process_time() - started))
        print(f"turn {turn} of {count}", {side: round(v[-1], 1) for side, v in speeds.items() if v}, flush=True)
    return speeds


def ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(own / other for own, other in zip(ours, theirs, strict=True))


def limit_threads(threads: int, side: str = "") -> None:
    """The same number for every side; a side's own process loads its own libraries alone."""
    if not side.startswith(TRANSFORMERS):
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    if not side or side.startswith(TRANSFORMERS):
        import torch

        torch.set_num_threads(threads)


def in_fresh_process(args: argparse.Namespace, side: str) -> int:
    command = [sys.executable, __file__, "--measure", side, "--data", str(args.data)]
    command += ["--config", args.config, "--threads", str(args.threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


def grown(side: str, setting: Setting, threads: int) -> int:
    """Bytes by which this process grows at its peak; its libraries and the texts are in memory before."""
    limit_threads(threads, side)
    if side.startswith(TRANSFORMERS):
        import transformers

        _ = transformers.AlbertForSequenceClassification
    elif side == KERAS_HUB:
        import keras_hub

        _ = keras_hub.models.AlbertTextClassifier
    else:
        from albert_tf import AlbertTextClassifier

        _ = AlbertTextClassifier
    start = common.resident("VmRSS")
    step = SIDES[side](setting)
    for _ in range(MEMORY_STEPS if STEPS[side] > 2 else 3):
        step()
    return common.resident("VmHWM") - start


def our_step(setting: Setting, length: int | None = None) -> Step:
    """As `albert-tf finetune` compiles and feeds it."""
    from albert_tf import AlbertBackbone, AlbertTextClassifier
    from albert_tf.data.pipeline import training_dataset
    from albert_tf.training.compiling import compile_model
    from albert_tf.training.optimizers import AdamW

    tokenizer = AlbertTokenizer.from_pretrained(setting.vocabulary, max_length=LENGTH)
    model = AlbertTextClassifier(AlbertBackbone(setting.config), tokenizer, labels=["0", "1"])
    optimizer = AdamW(LEARNING_RATE, WEIGHT_DECAY, global_clipnorm=1.0)
    compile_model(model, optimizer, precision="float32", accumulate=1, jit=False)
    encoded, pad_id = model.encode(setting.texts), tokenizer.vocabulary.pad_id
    targets = {"label": setting.labels}
    batches = iter(training_dataset(encoded, targets, batch_size=BATCH, pad_id=pad_id, seed=0, length=length))
    return lambda: model.train_on_batch(*next(batches))


def keras_hub_step(setting: Setting) -> Step:
    """As its fit() does with raw text."""
    import keras
    import keras_hub
    import tensorflow as tf

    config = setting.config
    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=config.vocabulary_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        embedding_dim=config.embedding_dim,
        hidden_dim=config.hidden_dim,
        intermediate_dim=config.intermediate_dim,
        dropout=config.hidden_dropout,
    )
    tokenizer = keras_hub.models.AlbertTokenizer(proto=str(setting.vocabulary))
    preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(tokenizer, sequence_length=LENGTH)
    model = keras_hub.models.AlbertTextClassifier(backbone=backbone, num_classes=2, preprocessor=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.AdamW(LEARNING_RATE, weight_decay=WEIGHT_DECAY, global_clipnorm=1.0)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
    dataset = tf.data.Dataset.from_tensor_slices((setting.texts, setting.labels))
    dataset = dataset.shuffle(len(setting.texts), seed=0).repeat().batch(BATCH)
    batches = iter(dataset.map(preprocessor, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))
    return lambda: model.train_on_batch(*next(batches))


def transformers_step(setting: Setting, activation: str = "gelu_new") -> Step:
    """The loop of its Trainer: a loader of random order, padding to the longest, clipping, AdamW."""
    import torch
    import transformers

    config = setting.config
    torch.manual_seed(0)
    model = transformers.AlbertForSequenceClassification(
        transformers.AlbertConfig(
            vocab_size=config.vocabulary_size,
            embedding_size=config.embedding_dim,
            hidden_size=config.hidden_dim,
            intermediate_size=config.intermediate_dim,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            hidden_act=activation,
            hidden_dropout_prob=config.hidden_dropout,
            attention_probs_dropout_prob=config.attention_dropout,
            classifier_dropout_prob=0.1,
            num_labels=2,
        )
    ).train()
    tokenizer = hugging_face_tokenizer(setting.vocabulary)
    encoded = tokenizer(setting.texts, truncation=True, max_length=LENGTH)
    rows: list[dict[str, Any]] = [
        {name: values[number] for name, values in encoded.items()} | {"labels": label}
        for number, label in enumerate(setting.labels)
    ]
    collate = transformers.DataCollatorWithPadding(tokenizer)
    loader = torch.utils.data.DataLoader(rows, batch_size=BATCH, shuffle=True, collate_fn=collate, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
    batches = (batch for _ in iter(int, 1) for batch in loader)

    def step() -> float:
        loss = model(**next(batches)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def hugging_face_tokenizer(vocabulary: Path) -> Any:
    import tempfile

    import transformers

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "spiece.model").write_bytes(vocabulary.read_bytes())
        return transformers.AlbertTokenizer.from_pretrained(folder)


SIDES: dict[str, Callable[[Setting], Step]] = {
    KERAS_HUB: keras_hub_step,
    TRANSFORMERS: transformers_step,
    FUSED: lambda setting: transformers_step(setting, "gelu_pytorch_tanh"),
    OURS: our_step,
    OURS_PADDED: lambda setting: our_step(setting, LENGTH),
}


if __name__ == "__main__":
    main()
