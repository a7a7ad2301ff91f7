"""Data sets that models are fine-tuned on, as `albert-tf finetune` takes them."""

import dataclasses
from pathlib import Path
from typing import Any

MRPC_HELD_BACK = 8  # every eighth pair: the dev file of the original download is not in the data


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One of them.

    Attributes:
        command: of `albert-tf finetune`.
        metric: the figure that counts.
        folder: in the folder of real data.
        train: the training file in it.
        epochs: passes over it.
        glue: the task of GLUE whose files they are.
        columns: of the text and of the label, by number, of a file without header.
    """

    command: str
    metric: str
    folder: str
    train: str = "train.tsv"
    epochs: int = 4
    glue: str | None = None
    columns: tuple[int, int] | None = None

    def files(self, data: Path, work: Path) -> tuple[Path, Path]:
        """The training file and the one that figures are of; MRPC's are written to `work`."""
        folder = data / self.folder
        if self.glue != "MRPC":
            return folder / self.train, folder / "dev.tsv"
        parts = work / "msr_paraphrase_train.txt", work / "msr_paraphrase_test.txt"
        header, *lines = (folder / self.train).read_text(encoding="utf-8-sig").splitlines()
        kept = [line for number, line in enumerate(lines) if number % MRPC_HELD_BACK]
        for path, rows in zip(parts, (kept, lines[::MRPC_HELD_BACK]), strict=True):
            path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return parts

    @property
    def options(self) -> list[Any]:
        """Of `finetune`: what the files are, and how long to train on them."""
        what = [] if self.glue is None else ["--glue", self.glue]
        if self.columns is not None:
            what = ["--text-column", self.columns[0], "--label-column", self.columns[1]]
        return [*what, "--epochs", self.epochs, "--best-metric", self.metric]

    def examples(self, file: Path) -> list[Any]:
        """What is in one of the files, with labels."""
        from albert_tf.data.glue import read_labelled

        if self.columns is None:
            return read_labelled(str(file), print, glue=self.glue)
        return read_labelled(str(file), print, text_column=self.columns[0], label_column=self.columns[1])


DATASETS = {
    "SST-2": Dataset(
        "classification", "accuracy", "glue_canonical/SST-2", "train_first20000.tsv", epochs=3, glue="SST-2"
    ),
    "CoLA": Dataset("classification", "matthews_correlation", "glue_canonical/CoLA", glue="CoLA"),
    "RTE": Dataset("classification", "accuracy", "glue_canonical/RTE", epochs=6, glue="RTE"),
    "MRPC": Dataset(
        "classification", "accuracy", "glue_canonical/MRPC", "msr_paraphrase_train.txt", epochs=6, glue="MRPC"
    ),
    "STS-B": Dataset("regression", "spearman", "glue_canonical/STS-B", epochs=6, glue="STS-B"),
    "STS-B, embeddings": Dataset("similarity", "spearman", "glue_canonical/STS-B", epochs=6),
    "ChnSentiCorp": Dataset("classification", "accuracy", "chnsenticorp", columns=(0, 1)),
}
