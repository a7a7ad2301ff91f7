"""Fine-tuning examples per second, side by side with keras-hub's AlbertTextClassifier, in one run.

    python benchmarks/finetune_throughput.py --data DATA --json throughput.json

DATA is a folder with glue_canonical/SST-2/train_first20000.tsv and albert_vocab_en/30k-clean.model. Both sides have the
same size, batch, optimizer and sentences. keras-hub pads every batch to 128 tokens, its preprocessor's length; albert-tf
is measured as it trains (batches of like length) and padded to 128 as well. Each side runs in a process of its own,
in turns, and the best of the turns counts, since other work on a machine can only slow a run down.

Needs `pip install -e ".[peers]"`. Takes about ten minutes on two cores.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import common

BATCH = 32
LENGTH = 128
LEARNING_RATE = 2e-5


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--config", default="albert_small_en", help="size of both models (default albert_small_en)")
    parser.add_argument("--steps", type=int, default=40, help="measured steps of each turn (default 40)")
    parser.add_argument("--turns", type=int, default=2, help="turns of each side (default 2)")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        texts, labels = read_sst2(args.data)
        print(SIDES[args.side](texts, labels, args.config, args.data / "albert_vocab_en/30k-clean.model", args.steps))
        return
    best = dict.fromkeys(SIDES, 0.0)
    for _ in range(args.turns):
        for side in SIDES:
            command = [sys.executable, __file__, "--side", side, "--data", str(args.data), "--config", args.config]
            done = subprocess.run([*command, "--steps", str(args.steps)], stdout=subprocess.PIPE, text=True, check=True)
            best[side] = max(best[side], float(done.stdout.split()[-1]))
    rows = [
        {"side": side, "examples/s": f"{speed:.1f}", "against keras-hub": f"{speed / best['keras-hub']:.2f}×"}
        for side, speed in best.items()
    ]
    common.show(f"fine-tuning {args.config} on SST-2, batch {BATCH}, float32", rows, best, args.json)


def read_sst2(data: Path) -> tuple[list[str], list[int]]:
    from albert_tf.data.tables import read_examples

    examples = read_examples(data / "glue_canonical/SST-2/train_first20000.tsv")
    return [example.text for example in examples], [int(str(example.label)) for example in examples]


def ours(texts, labels, config_name, vocabulary, steps, length=None) -> float:
    import dataclasses

    import keras

    from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier, AlbertTokenizer
    from albert_tf.data.pipeline import training_dataset
    from albert_tf.training.optimizers import AdamW

    tokenizer = AlbertTokenizer.from_pretrained(vocabulary)
    tokenizer.max_length = LENGTH
    config = dataclasses.replace(AlbertConfig.from_name(config_name), vocabulary_size=tokenizer.vocabulary.size)
    model = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=["0", "1"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AdamW(LEARNING_RATE, global_clipnorm=1.0), loss, metrics=["accuracy"], jit_compile=False)
    dataset = training_dataset(
        model.encode(texts), labels, batch_size=BATCH, pad_id=tokenizer.vocabulary.pad_id, seed=0, length=length
    )
    return timed_fit(model, dataset, steps)


def ours_full_length(*args) -> float:
    return ours(*args, length=LENGTH)


def keras_hub(texts, labels, config_name, vocabulary, steps) -> float:
    import keras
    import keras_hub
    import tensorflow as tf

    from albert_tf import AlbertConfig

    config = AlbertConfig.from_name(config_name)
    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=30000,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        embedding_dim=config.embedding_dim,
        hidden_dim=config.hidden_dim,
        intermediate_dim=config.intermediate_dim,
        dropout=config.hidden_dropout,
    )
    tokenizer = keras_hub.models.AlbertTokenizer(proto=str(vocabulary))
    preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(tokenizer, sequence_length=LENGTH)
    model = keras_hub.models.AlbertTextClassifier(backbone=backbone, num_classes=2, preprocessor=preprocessor)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(LEARNING_RATE, global_clipnorm=1.0), loss, metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(len(texts), seed=0).repeat().batch(BATCH)
    return timed_fit(model, dataset, steps)


def timed_fit(model, dataset, steps) -> float:
    """Examples per second of `steps` steps of `fit`, after as many to warm up."""
    model.fit(dataset, epochs=1, steps_per_epoch=steps, verbose=0)
    started = time.perf_counter()
    model.fit(dataset, epochs=1, steps_per_epoch=steps, verbose=0)
    return steps * BATCH / (time.perf_counter() - started)


SIDES = {"keras-hub": keras_hub, "albert-tf": ours, "albert-tf, padded to 128": ours_full_length}

if __name__ == "__main__":
    main()
