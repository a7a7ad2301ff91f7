"""`albert_tf.training.tasks.fill_mask`: lines of text, masked anew in every epoch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_data import TinyFiles
from tiny_teachers import begun, save_teacher

from albert_tf.data.pipeline import training_dataset
from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.training.distill_runs import DistillFillMaskRun
from albert_tf.training.tasks.fill_mask import read_lines


def test_masks_are_drawn_anew_in_every_epoch(tiny_files: TinyFiles, tmp_path: Path) -> None:
    own = save_teacher(tmp_path / "teacher", "fill-mask", tiny_files)
    texts = [example.text for example in read_examples(tiny_files.train)][:20]
    plain = tmp_path / "texts.txt"
    plain.write_text("".join(text + "\n" for text in [*texts, "", " "]), encoding="utf-8")
    run = DistillFillMaskRun(out=str(tmp_path / "run"), train=str(plain), teacher=str(own), layers=1, max_length=32)
    training, model, rows = begun(run)
    assert len(rows.rows) == 20 and training.task.runs_in_steps
    vocabulary = model.required_tokenizer.vocabulary

    def batches(start: int, count: int) -> list[Any]:
        dataset = training_dataset(
            rows.rows,
            rows.targets,
            batch_size=5,
            pad_id=vocabulary.pad_id,
            seed=0,
            start_step=start,
            remade=rows.remade,
        )
        return list(dataset.take(count).as_numpy_iterator())

    first = batches(0, 8)
    seen: dict[tuple[int, ...], list[bytes]] = {}
    for x, y in first:
        predicted = y["labels"] >= 0
        original = np.where(predicted, y["labels"], x["token_ids"])
        assert (predicted <= (x["padding_mask"] == 1)).all() and predicted.any(axis=1).all()
        assert not np.isin(original[predicted], [vocabulary.cls_id, vocabulary.sep_id]).any()
        for ids, mask, masked in zip(original, x["padding_mask"], x["token_ids"], strict=True):
            seen.setdefault(tuple(ids[mask == 1]), []).append(masked[mask == 1].tobytes())
    assert sorted(seen) == sorted({tuple(ids) for ids, _ in rows.rows})
    assert sum(len(set(masked)) == 2 for masked in seen.values()) > 10
    for (x, y), (again_x, again_y) in zip(first[6:], batches(6, 2), strict=True):
        np.testing.assert_array_equal(x["token_ids"], again_x["token_ids"])
        np.testing.assert_array_equal(y["labels"], again_y["labels"])


def test_a_file_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(InputError, match="expected a text a line, found none"):
        read_lines(str(tmp_path / "texts.txt"))
