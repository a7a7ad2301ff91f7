"""How long fine-tuning steps wait for their batches, and how fast batches are made when nothing else is done.

    python benchmarks/data_waiting.py --data DATA --json data_waiting.json

DATA is a folder with glue_canonical/SST-2/train_first20000.tsv and albert_vocab_en/30k-clean.model. The sentences are
fine-tuned on as `albert-tf finetune classification` does, in batches of 32 and in batches of 2,048 tokens: for each step
the time until its batch is there, and the time of the step. Then the same batches are made without a step between them:
examples per second that the pipeline could feed to a faster machine. About two minutes on two cores.
"""

import dataclasses
import time
from typing import Any

import common
import numpy as np

from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier, AlbertTokenizer
from albert_tf.data.pipeline import training_dataset
from albert_tf.data.tables import read_examples
from albert_tf.training.compiling import compile_model
from albert_tf.training.optimizers import AdamW

WAYS: dict[str, dict[str, int]] = {"32 examples": {"batch_size": 32}, "2,048 tokens": {"batch_tokens": 2048}}
ALONE = 500  # batches made without training
LIMIT = 0.03


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--config", default="albert_small_en", help="size of the model (default albert_small_en)")
    parser.add_argument("--steps", type=int, default=60, help="steps of each way (default 60)")
    args = parser.parse_args()
    examples = read_examples(args.data / "glue_canonical/SST-2/train_first20000.tsv")
    tokenizer = AlbertTokenizer.from_pretrained(args.data / "albert_vocab_en/30k-clean.model", max_length=128)
    config = dataclasses.replace(AlbertConfig.from_name(args.config), vocabulary_size=30000)
    model = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=["0", "1"])
    compile_model(model, AdamW(2e-5, global_clipnorm=1.0), precision="float32", accumulate=1, jit=False)
    encoded = model.encode([example.text for example in examples])
    targets = {"label": [int(str(example.label)) for example in examples]}
    figures = {}
    for name, way in WAYS.items():
        dataset = training_dataset(encoded, targets, pad_id=tokenizer.vocabulary.pad_id, seed=0, **way)
        figures[name] = measured(model, dataset, args.steps)
    rows = [
        {
            "batches of": name,
            "waiting": f"{found['waiting_share']:.2%}",
            "examples/s": f"{found['examples_per_second']:,.0f}",
            "examples/s, data alone": f"{found['alone']:,.0f}",
        }
        for name, found in figures.items()
    ]
    common.show(f"fine-tuning {args.config} on SST-2, float32", rows, figures, args.json)
    worst = max(found["waiting_share"] for found in figures.values())
    raise SystemExit(f"steps wait {worst:.1%} of their time for data" if worst > LIMIT else 0)


def measured(model: AlbertTextClassifier, dataset: Any, steps: int) -> dict[str, float]:
    batches = iter(dataset)
    model.train_on_batch(*next(batches))  # traces
    waiting = stepping = 0.0
    seen = 0
    for _ in range(steps):
        started = time.perf_counter()
        batch = next(batches)
        there = time.perf_counter()
        model.train_on_batch(*batch)
        waiting, stepping = waiting + there - started, stepping + time.perf_counter() - there
        seen += len(batch[1]["label"])
    started = time.perf_counter()
    alone = sum(len(labels["label"]) for _, labels in dataset.take(ALONE))
    return {
        "waiting_share": waiting / (waiting + stepping),
        "examples_per_second": seen / (waiting + stepping),
        "alone": alone / (time.perf_counter() - started),
        "examples_per_step": float(np.mean(seen / steps)),
    }


if __name__ == "__main__":
    main()
