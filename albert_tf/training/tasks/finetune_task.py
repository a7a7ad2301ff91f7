"""What `albert_tf.training.finetune` asks of a task."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from albert_tf.data.pipeline import Remade
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.packing import Packed


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """What `albert_tf.data.pipeline.training_dataset` takes.

    Attributes:
        rows: token ids and segment ids, `rows_per_example` for each example.
        targets: by the names that the model's `training_losses` takes.
        rows_per_example: rows that belong together, one after the other.
        remade: makes of each batch what is trained on in its epoch; None for batches that stay as they are.
        made_by: a checksum of what else the training goes by, such as a teacher's weights.
    """

    rows: list[Packed]
    targets: dict[str, Any]
    rows_per_example: int = 1
    remade: Remade | None = None
    made_by: str = ""


class FinetuneTask(Protocol):
    """One task.

    Attributes:
        model_class: the model.
        metric: the figure drawn beside the loss.
    """

    @property
    def model_class(self) -> type[AlbertTask]: ...

    @property
    def metric(self) -> str: ...

    def read(self, run: Any, path: str, report: Callable[[str], None]) -> list[Any]:
        """The examples in a file; what is left out of them is reported."""

    def head_settings(self, run: Any, examples: Sequence[Any]) -> dict[str, Any]:
        """The constructor's arguments of a new head, from the training examples."""

    def training_rows(self, model: Any, examples: Sequence[Any], prepared: Prepared, source: str) -> TrainingRows:
        """The rows to train on, with what each should give.

        Args:
            model: the model to train.
            examples: of one file.
            prepared: the examples as the model's pipeline prepares them.
            source: the file.

        Raises:
            InputError: an example has no usable answer.
        """

    def describe(self, model: Any) -> str:
        """A few words on the head for the line of a started run."""

    def write(self, folder: Path, model: Any, metrics: dict[str, Any]) -> None:
        """Writes what a run folder of this task has beside the model and the figures."""
