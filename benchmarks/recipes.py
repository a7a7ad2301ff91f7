"""What each recipe costs and gives: size, bytes per parameter, latency, and the cosine with float32 on trained weights.

    python benchmarks/recipes.py --data DATA --json recipes.json

DATA is a folder with kokoro_plbert and glue_canonical/SST-2/dev.tsv. Cosines are those of the encoder's output with the
float32 outputs published beside the weights of kokoro_plbert, over the tokens of three strings. The recipes of integer
activations are calibrated on other strings: letters of SST-2 sentences, as this model's symbols. The sizes of
albert_base_v2 are of the encoder with pooler, with random weights. About five minutes on two cores.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np

from albert_tf import AlbertBackbone, AlbertConfig
from albert_tf.data.tables import read_examples
from export.device_graph import convert
from export.quantization import RECIPES, Recipe

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from test_parity_published import kokoro_weights  # how the published file names its weights

LENGTH = 64
CALIBRATION_TEXTS = 60
KOKORO = "kokoro_plbert"


@dataclasses.dataclass
class Symbols:
    """Symbols of a string → ids, as a tokenizer gives them."""

    ids: dict[str, int]
    max_length: int = 512
    vocabulary: Any = dataclasses.field(default_factory=lambda: type("Vocabulary", (), {"pad_id": 0}))

    def encode_batch(self, texts: Sequence[str], pairs: Any, length: int) -> list[tuple[list[int], list[int]]]:
        known = [[self.ids[c] for c in text if c in self.ids][: length - 2] for text in texts]
        rows = [[0, *ids, 0] for ids in known]
        return [(row, [0] * len(row)) for row in rows]


@dataclasses.dataclass
class Encoder:
    """A backbone alone, as `export.tflite.convert` wants a task."""

    backbone: AlbertBackbone
    required_tokenizer: Any
    takes_pairs: bool = False
    task: str = "encoder"
    layers: tuple[Any, ...] = ()  # no head
    head_layers: tuple[Any, ...] = ()

    def row_outputs(self, sequence_output: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        if self.backbone.pooler is None:
            return {"sequence_output": sequence_output}
        return {"pooled_output": self.backbone.pool(sequence_output)}

    def named_weights(self) -> dict[str, Any]:
        return {variable.path: variable for variable in self.backbone.weights}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), help="recipes to measure (default: all)")
    args = parser.parse_args()
    texts = [example.text for example in read_examples(args.data / "glue_canonical/SST-2/dev.tsv")][:CALIBRATION_TEXTS]
    trained, golden = kokoro(args.data / KOKORO)
    base = Encoder(AlbertBackbone(AlbertConfig.from_name("albert_base_v2")), trained.required_tokenizer)
    rows = []
    for name in args.recipes:
        recipe = RECIPES[name]
        forms = ("loop", "unrolled") if recipe.activation_bits is None else ("unrolled",)
        for form in forms:
            length = None if recipe.activation_bits is None else LENGTH
            options: dict[str, Any] = {"form": form, "length": length}
            if recipe.activation_bits is not None:
                options["calibration"] = texts
            figures = {"recipe": name, "form": form, "length": length or "any"}
            figures |= compared(convert(trained, recipe, **options), golden, length)  # type: ignore[arg-type]
            if recipe.activation_bits is not None:
                options["calibration"] = texts[:2]  # random weights: only the size is looked at
            figures |= size_of(base, recipe, options)
            rows.append(figures)
            print(shown(figures), flush=True)
    common.show("albert_base_v2 and kokoro_plbert, 2 threads", [shown(row) for row in rows], rows, args.json)


def kokoro(folder: Path) -> tuple[Encoder, list[tuple[np.ndarray, np.ndarray]]]:
    """The trained encoder, and three strings with their published float32 outputs."""
    published = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = AlbertConfig(
        vocabulary_size=published["vocab_size"],
        hidden_dim=published["hidden_size"],
        intermediate_dim=published["intermediate_size"],
        num_layers=published["num_hidden_layers"],
        num_heads=published["num_attention_heads"],
        embedding_dim=published["embedding_size"],
    )
    backbone = AlbertBackbone(config, pooler=False)
    with np.load(folder / "plbert_int8_weights_hfnames.npz") as stored:
        backbone.load_named_weights(kokoro_weights(stored), source=folder.name)
    with np.load(folder / "golden_onnxruntime.npz") as golden:
        strings = [(golden[f"ids_{i}"][0].astype(np.int32), golden[f"float_{i}"][0]) for i in range(3)]
    symbols = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    return Encoder(backbone, Symbols(symbols["vocab"])), strings


def compared(model: bytes, golden: Sequence[tuple[np.ndarray, np.ndarray]], length: int | None) -> dict[str, Any]:
    """Mean and worst cosine over all tokens, and the time of the longest string."""
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_content=model, num_threads=2).get_signature_runner()
    cosines = []
    milliseconds = 0.0
    for ids, wanted in golden:
        padding = 0 if length is None else length - len(ids)
        row = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        inputs = {name: np.pad(values, (0, padding))[None] for name, values in row.items()}
        runner(**inputs)
        start = time.perf_counter()
        found = runner(**inputs)["sequence_output"][0, : len(ids)]
        milliseconds = max(milliseconds, 1000 * (time.perf_counter() - start))
        norms = np.linalg.norm(found, axis=-1) * np.linalg.norm(wanted, axis=-1)
        cosines.append((found * wanted).sum(-1) / norms)
    every = np.concatenate(cosines)
    return {"mean_cosine": float(every.mean()), "worst_cosine": float(every.min()), "milliseconds": milliseconds}


def size_of(task: Encoder, recipe: Recipe, options: dict[str, Any]) -> dict[str, Any]:
    model = convert(task, recipe, **options)  # type: ignore[arg-type]
    return {"model_bytes": len(model), "bytes_per_parameter": len(model) / task.backbone.count_params()}


def shown(row: dict[str, Any]) -> dict[str, str]:
    return {
        "recipe": row["recipe"],
        "form": row["form"],
        "length": str(row["length"]),
        "base MB": f"{row['model_bytes'] / 1e6:.2f}",
        "B/param": f"{row['bytes_per_parameter']:.3f}",
        "kokoro cosine": f"{row['mean_cosine']:.4f}",
        "worst token": f"{row['worst_cosine']:.3f}",
        "ms": f"{row['milliseconds']:.0f}",
    }


if __name__ == "__main__":
    main()
