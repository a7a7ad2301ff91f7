"""Our model beside the framework that a checkpoint is of: the same weights and inputs, and how far outputs are apart.

Compared are the sequence output, every layer, the pooled output, and the logits of the heads that both have, on a padded
batch of lengths from 1 to the longest, wherever there is a token. The tolerance is `TOLERANCE` times the largest value
of the output, or of 1 where that is larger: what float32 rounding makes of other orders of summation.
"""

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.archive import is_archive_file, unpacked_model
from albert_tf.conversion.assign import assign, listing
from albert_tf.conversion.checkpoint import Checkpoint, Weights
from albert_tf.errors import CheckError
from albert_tf.evaluation.frameworks import FRAMEWORKS, Batch, Outputs, require

if TYPE_CHECKING:
    from rich.table import Table

TOLERANCE = 2e-5
LONGEST = 512

_OF_TOKENS = ("layer ", "sequence_output", "token_classification", "question_answering")


@dataclasses.dataclass(frozen=True)
class Difference:
    """Of one output: the largest absolute difference, and the largest absolute value."""

    output: str
    largest: float
    scale: float

    @property
    def limit(self) -> float:
        return TOLERANCE * max(1.0, self.scale)

    @property
    def passed(self) -> bool:
        return self.largest <= self.limit  # false for NaN


def compare_with_framework(checkpoint: Checkpoint) -> list[Difference]:
    """The differences between our model of a checkpoint and the framework of its form, run on the files.

    Raises:
        InputError: the framework is not installed.
        KeyError: there is none that can be run; see `FRAMEWORKS`.
    """
    framework = FRAMEWORKS[checkpoint.form]
    require(framework)
    config, weights = checkpoint.config, checkpoint.weights
    batch = parity_batch(config)
    source = Path(checkpoint.source)
    with unpacked_model(source) if is_archive_file(source) else contextlib.nullcontext(source) as files:
        theirs = framework.run(files, config, weights, batch)
    ours = our_outputs(config, weights, batch)
    return differences(ours, theirs, batch["padding_mask"])


def parity_batch(config: AlbertConfig) -> Batch:
    """Random ids in rows of four lengths, the longest (at most `LONGEST`) and the shortest among them."""
    random = np.random.default_rng(0)
    longest = min(config.max_sequence_length, LONGEST)
    lengths = np.array([longest, max(1, longest // 4), min(5, longest), 1])[:, None]
    shape = (len(lengths), longest)
    mask = (np.arange(longest) < lengths).astype(np.int32)
    return {
        "token_ids": random.integers(0, config.vocabulary_size, shape, np.int32) * mask,
        "segment_ids": random.integers(0, config.num_segments, shape, np.int32) * mask,
        "padding_mask": mask,
        "masked_positions": random.integers(0, lengths, (len(lengths), 3), np.int32),
    }


def our_outputs(config: AlbertConfig, weights: Weights, batch: Batch) -> Outputs:
    """What `albert_tf.evaluation.frameworks` describes, of our model."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.layers.heads import MaskedLMHead

    heads = {name.partition("/")[0] for name in weights} - {"embeddings", "encoder", "pooler"}
    backbone = AlbertBackbone(config, pooler="pooler/kernel" in weights, all_layers=True)
    encoder_weights = {name: weight for name, weight in weights.items() if name.partition("/")[0] not in heads}
    backbone.load_named_weights(encoder_weights, source="weights")
    found = backbone({name: batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}, training=False)
    last = config.num_inner_repetitions
    outputs = {f"layer {n}": np.asarray(layer) for n, layer in enumerate(found["layer_outputs"][last - 1 :: last], 1)}
    outputs |= {name: np.asarray(found[name]) for name in ("sequence_output", "pooled_output") if name in found}
    if "masked_lm" in heads:
        head = MaskedLMHead(config, name="masked_lm")
        head.build()
        own = {name: weight for name, weight in weights.items() if name.startswith("masked_lm/")}
        assign({variable.path: variable for variable in head.weights}, own, source="weights")
        matrices = backbone.embeddings.output_matrices()
        outputs["masked_lm_logits"] = np.asarray(head(found["sequence_output"], batch["masked_positions"], *matrices))
    for name in sorted(heads - {"masked_lm"}):
        if f"{name}/kernel" in weights:  # the head of SQuAD 2 has several; no other framework has it
            features = "sequence_output" if name in ("token_classification", "question_answering") else "pooled_output"
            outputs[f"{name}_logits"] = outputs[features] @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
    return outputs


def differences(ours: Outputs, theirs: Outputs, mask: np.ndarray) -> list[Difference]:
    """Output by output, of those that both have; of tokens only, where `mask` says that there are some.

    Raises:
        CheckError: an output has another shape, or the layers are not as many.
    """
    compared = []
    for name, expected in theirs.items():
        if name not in ours or ours[name].shape != expected.shape:
            shape = ours[name].shape if name in ours else "none"
            raise CheckError(f"{name} is {expected.shape} there; our model has {shape}")
        got = ours[name]
        if name.startswith(_OF_TOKENS):
            got, expected = got[mask == 1], expected[mask == 1]
        compared.append(Difference(name, float(np.abs(got - expected).max()), float(np.abs(expected).max())))
    if left := [name for name in ours if name.startswith("layer ") and name not in theirs]:
        raise CheckError(f"our model has more layers: {listing(left)}")
    return compared


def check_written(weights: Weights, written: Checkpoint) -> None:
    """Raises CheckError unless what was written reads as the same weights, bit for bit. A head may be left out."""
    heads = {name.partition("/")[0] for name in written.weights}
    expected = {name: weight for name, weight in weights.items() if name.partition("/")[0] in heads}
    odd = sorted(expected.keys() ^ written.weights.keys())
    odd += [name for name in expected if name in written.weights and not _same(expected[name], written.weights[name])]
    if odd:
        raise CheckError(f"{written.source}: {listing(odd)} do not read as they were written; do not use it")


def check_differences(compared: list[Difference], source: str) -> None:
    """Raises CheckError if one is above the tolerance."""
    if failed := [difference for difference in compared if not difference.passed]:
        worst = max(failed, key=lambda difference: difference.largest / difference.limit)
        raise CheckError(
            f"{source}: {len(failed)} of {len(compared)} outputs are above the tolerance; {worst.output} by "
            f"{worst.largest:.1e}, at most {worst.limit:.1e}"
        )


def difference_table(compared: list[Difference], title: str) -> "Table":
    """For the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    table.add_column("output")
    for name in ("largest difference", "at most", "largest value"):
        table.add_column(name, justify="right")
    table.add_column("")
    for difference in compared:
        figures = (f"{difference.largest:.1e}", f"{difference.limit:.1e}", f"{difference.scale:.3g}")
        table.add_row(difference.output, *figures, "ok" if difference.passed else "differs")
    return table


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.shape == second.shape and first.dtype == second.dtype and first.tobytes() == second.tobytes()
