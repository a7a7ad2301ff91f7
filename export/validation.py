"""Is a TFLite file the model it was made from? Asked of every file before it is written."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from albert_tf.errors import CheckError, InputError
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.classification import softmax
from export.quantization import Recipe
from export.runtime import TFLiteRunner

# Graph, quantisation scales, and the biases and layer norms that stay float32 (none is over 1,024 values long).
OVERHEAD_SHARE = 0.03
OVERHEAD_BYTES = 200_000
# Where the Keras model prefers a label by this much, the file must prefer the same one.
CLEAR_MARGIN = 0.2

# Lengths from one word to a paragraph, more than one script.
CHECK_TEXTS = (
    "yes",
    "turn the light off in the kitchen, please",
    "a gripping, beautifully shot film that never finds its feet in the second half",
    "I paid $9,000 for it in 2019 and it broke within a week!",
    "明天下午三点提醒我开会",
    "Där är någonting konstigt med det här, sade hon.",
    "what time does the last train to the airport leave on Sundays?",
    "The plot is thin, the songs are worse, and yet by the end of its two long hours the whole cinema was on its feet, "
    "clapping along with the children on the screen and not a little ashamed of it. Nobody could say afterwards what "
    "had happened: the film has no story to speak of, one good joke, and a dog.",
)


class ExportError(CheckError):
    """An exported file that is not fit to be written; the message says which check it failed."""


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """Figures of one exported file.

    Attributes:
        size_bytes: the whole file.
        model_bytes: without the associated files.
        bytes_per_parameter: of the model.
        texts: how many texts were compared.
        max_difference, mean_difference: absolute, of outputs against the Keras model.
        agreement: share of texts with the same decision.
    """

    size_bytes: int
    model_bytes: int
    bytes_per_parameter: float
    texts: int
    max_difference: float
    mean_difference: float
    agreement: float


def check_export(
    content: bytes, *, model_bytes: int, task: AlbertTask, recipe: Recipe, texts: Sequence[str] | None = None
) -> ExportReport:
    """Compares the file with the task it was made from.

    Args:
        content: the whole file.
        model_bytes: length of the model in it, before the associated files.
        task: the float32 Keras task.
        recipe: how the file's weights are stored.
        texts: what to compare on.

    Raises:
        ExportError: the size does not fit the parameters, an output is not finite, or the answers differ too much.
    """
    parameters = task.count_params()
    expected = parameters * recipe.weight_bytes
    lowest, highest = 0.97 * expected, (1 + OVERHEAD_SHARE) * expected + OVERHEAD_BYTES
    if not lowest <= model_bytes <= highest:
        raise ExportError(
            f"{parameters:,} parameters as {recipe.name} should take about {expected:,} bytes (at most {highest:,.0f}), "
            f"the model has {model_bytes:,}: weights are missing from it or stored more than once"
        )
    texts = list(texts or CHECK_TEXTS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        runner = TFLiteRunner(path)
        encoded = runner.tokenizer.encode_batch(texts)
        from_file = np.concatenate([runner.run(*example) for example in encoded])
    if not np.isfinite(from_file).all():
        raise ExportError(f"the file gives outputs that are not finite numbers for {texts[0]!r} or another text")
    from_keras = softmax(task.raw_outputs(encoded))
    differences = np.abs(from_file - from_keras)
    agrees = from_file.argmax(-1) == from_keras.argmax(-1)
    ordered = np.sort(from_keras, axis=-1)
    clear = ordered[:, -1] - ordered[:, -2] > CLEAR_MARGIN
    report = ExportReport(
        size_bytes=len(content),
        model_bytes=model_bytes,
        bytes_per_parameter=model_bytes / parameters,
        texts=len(texts),
        max_difference=float(differences.max()),
        mean_difference=float(differences.mean()),
        agreement=float(agrees.mean()),
    )
    if report.mean_difference > recipe.max_mean_difference or not agrees[clear].all():
        raise ExportError(
            f"the file's answers differ from the Keras model's: mean difference {report.mean_difference:.2g} (at most "
            f"{recipe.max_mean_difference:.2g} for {recipe.name}), same decision on {report.agreement:.0%} of "
            f"{len(texts)} texts"
        )
    return report
