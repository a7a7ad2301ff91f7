"""Fine-tuning examples per second, side by side with keras-hub's AlbertTextClassifier, in one process.

    python benchmarks/finetune_throughput.py --data DATA --json throughput.json

DATA is a folder with glue_canonical/SST-2/train_first20000.tsv and albert_vocab_en/30k-clean.model. All sides have the
same size, batch, optimizer settings and sentences. keras-hub pads every batch to 128 tokens, its preprocessor's length;
albert-tf is measured as it trains (batches of like length) and padded to 128 as well. The sides take turns of a few
steps each, and the ratio is the median over the turns: other work on the machine slows neighbours in time alike.

Needs `pip install -e ".[peers]"`. Takes about five minutes on two cores.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import common
import keras
import keras_hub
import tensorflow as tf

from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier, AlbertTokenizer
from albert_tf.data.pipeline import training_dataset
from albert_tf.data.tables import read_examples
from albert_tf.training.optimizers import AdamW

BATCH = 32
LENGTH = 128
LEARNING_RATE = 2e-5
KERAS_HUB, OURS, OURS_PADDED = "keras-hub", "albert-tf", "albert-tf, padded to 128"
# Short texts make quick steps of varying length: more of them for a turn of like duration.
STEPS = {KERAS_HUB: 3, OURS: 24, OURS_PADDED: 3}

Step = Callable[[], object]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--config", default="albert_small_en", help="size of both models (default albert_small_en)")
    parser.add_argument("--turns", type=int, default=8, help="turns of each side (default 8)")
    args = parser.parse_args()
    texts, labels = read_sst2(args.data)
    vocabulary = args.data / "albert_vocab_en/30k-clean.model"
    config = dataclasses.replace(AlbertConfig.from_name(args.config), vocabulary_size=30000)
    sides: dict[str, Step] = {
        KERAS_HUB: keras_hub_step(texts, labels, config, vocabulary),
        OURS: our_step(texts, labels, config, vocabulary, length=None),
        OURS_PADDED: our_step(texts, labels, config, vocabulary, length=LENGTH),
    }
    speeds: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(args.turns + 1):
        for side, step in sides.items():
            speed = examples_per_second(step, STEPS[side])
            if turn:  # the first traces and fills caches
                speeds[side].append(speed)
    ratios = {
        side: statistics.median(ours / hub for ours, hub in zip(values, speeds[KERAS_HUB], strict=True))
        for side, values in speeds.items()
    }
    rows = [
        {"side": side, "examples/s": f"{statistics.median(values):.1f}", "against keras-hub": f"{ratios[side]:.2f}×"}
        for side, values in speeds.items()
    ]
    title = f"fine-tuning {args.config} on SST-2, batch {BATCH}, float32"
    common.show(title, rows, {"examples_per_second": speeds, "median_ratio": ratios}, args.json)


def examples_per_second(step: Step, count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        step()
    return count * BATCH / (time.perf_counter() - started)


def read_sst2(data: Path) -> tuple[list[str], list[int]]:
    examples = read_examples(data / "glue_canonical/SST-2/train_first20000.tsv")
    return [example.text for example in examples], [int(str(example.label)) for example in examples]


def our_step(
    texts: list[str], labels: list[int], config: AlbertConfig, vocabulary: Path, *, length: int | None
) -> Step:
    tokenizer = AlbertTokenizer.from_pretrained(vocabulary, max_length=LENGTH)
    model = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=["0", "1"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AdamW(LEARNING_RATE, global_clipnorm=1.0), loss, metrics=["accuracy"], jit_compile=False)
    batches = iter(
        training_dataset(
            model.encode(texts), labels, batch_size=BATCH, pad_id=tokenizer.vocabulary.pad_id, seed=0, length=length
        )
    )
    return lambda: model.train_on_batch(*next(batches))


def keras_hub_step(texts: list[str], labels: list[int], config: AlbertConfig, vocabulary: Path) -> Step:
    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=config.vocabulary_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        embedding_dim=config.embedding_dim,
        hidden_dim=config.hidden_dim,
        intermediate_dim=config.intermediate_dim,
        dropout=config.hidden_dropout,
    )
    tokenizer = keras_hub.models.AlbertTokenizer(proto=str(vocabulary))
    preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(tokenizer, sequence_length=LENGTH)
    model = keras_hub.models.AlbertTextClassifier(backbone=backbone, num_classes=2, preprocessor=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.AdamW(LEARNING_RATE, global_clipnorm=1.0)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(len(texts), seed=0).repeat().batch(BATCH)
    # As its fit() does with raw text.
    batches = iter(dataset.map(preprocessor, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))
    return lambda: model.train_on_batch(*next(batches))


if __name__ == "__main__":
    main()
