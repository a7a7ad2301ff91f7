"""Pairs of texts with scores or labels, pairs that belong together, and triples, for training and judging embeddings."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from albert_tf.data.columns import position_of
from albert_tf.data.rows import format_of, json_rows, start_of, table_rows
from albert_tf.data.schema import TextExample
from albert_tf.data.tables import Column, encode_values, read_examples
from albert_tf.data.text_files import text_lines
from albert_tf.errors import InputError
from albert_tf.files import read_text, refuse_special

# Text, pair and negative, beside the columns that `read_examples` knows.
_TRIPLES = (("anchor", "positive", "negative"), ("query", "positive", "negative"), ("sent0", "sent1", "hard_neg"))

_ROWS_AT_ONCE = 65536


@dataclasses.dataclass(frozen=True)
class SimilarityExample(TextExample):
    """Texts that are compared.

    Attributes:
        text: the first text (the anchor).
        pair: the second; of a text alone, None.
        label: a score or label, or None for two texts that belong together.
        negative: a third one, which does not belong to the first.
        vector: of a text alone, another encoder's embedding of it, float (D,).
    """

    negative: str | None = None
    vector: np.ndarray | None = dataclasses.field(default=None, compare=False, repr=False)


def read_similarity(
    path: str | Path,
    *,
    text_column: Column | None = None,
    pair_column: Column | None = None,
    label_column: Column | None = None,
    negative_column: Column | None = None,
) -> list[SimilarityExample]:
    """Reads pairs or triples from a table; see `read_examples` for the files and the columns found by themselves.

    Beside those, "anchor" + "positive", "query" + "positive" and "sent0" + "sent1" are found, with "negative" or
    "hard_neg" as the third text. A label is kept where there is one.

    Raises:
        InputError: as `read_examples`; no second text; or a blank third one.
    """
    asked = (text_column, pair_column, label_column, negative_column)
    numbered = all(isinstance(column, int) or column.isdecimal() for column in asked if column is not None)
    kind = format_of(path, None)
    header = None if kind == "jsonl" else not numbered or asked == (None,) * 4
    if text_column is None and pair_column is None and header is not False:
        text_column, pair_column, negative_column = _usual_triple(path, kind, negative_column)
    examples = read_examples(
        path,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        header=header,
        labels_required=False,
    )
    if examples[0].pair is None:
        raise InputError(f"{path}: expected two texts in each row, found one; choose the second with --pair-column")
    negatives: list[str | None] = [None] * len(examples)
    if negative_column is not None:
        read = read_examples(path, text_column=negative_column, header=header, labels_required=False)
        negatives = [example.text for example in read]
        if (row := next((n for n, text in enumerate(read, start=1) if not text.text.strip()), None)) is not None:
            raise InputError(f"{path}, row {row}: expected a third text that does not belong to the first, found none")
    return [
        SimilarityExample(example.text, example.pair, example.label, negative)
        for example, negative in zip(examples, negatives, strict=True)
    ]


def read_embedded(path: str | Path, vectors: str | Path) -> list[SimilarityExample]:
    """Texts with the embeddings that another encoder gave them.

    Args:
        path: a text file, one text a line; .gz, .xz and .bz2 are unpacked.
        vectors: a NumPy file (.npy), float (lines, D), a row for each line of `path`. It is mapped, not read.

    Raises:
        InputError: a file that cannot be read, a blank line, another number of rows than lines, or a row that is not
            finite or has no direction.
    """
    texts = list(text_lines(path))
    if (blank := next((n for n, text in enumerate(texts, start=1) if not text.strip()), None)) is not None:
        raise InputError(f"{path}, line {blank}: expected a text, found a blank line; leave it and its vector out")
    rows = read_vectors(vectors)
    if len(rows) != len(texts) or not texts:
        raise InputError(f"{vectors}: expected a row for each of the {len(texts)} lines of {path}, found {len(rows)}")
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        lengths = np.linalg.norm(rows[start : start + _ROWS_AT_ONCE].astype(np.float64), axis=1)
        if (bad := np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))).size:
            raise InputError(f"{vectors}, row {start + bad[0]}: expected finite numbers that are not all 0")
    return [SimilarityExample(text, vector=row) for text, row in zip(texts, rows, strict=True)]


def read_vectors(path: str | Path) -> np.ndarray:
    """float (N, D) from a .npy file, mapped."""
    refuse_special(path)
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # of a damaged file NumPy raises half a dozen types, from EOFError to TokenError
        raise InputError(f"{path}: expected a NumPy file (numpy.save): {error}") from error
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind != "f" or not rows.shape[1]:
        found = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else "several arrays"
        raise InputError(f"{path}: expected an array of float numbers (texts, length of a vector), found {found}")
    return rows


def columns_there(path: str | Path, asked: Mapping[str, Column | None]) -> dict[str, Column | None]:
    """What is asked of a file that need not be of the kind it is asked for.

    Args:
        path: a table; with columns asked by number, any of them has to be there.
        asked: a column for each argument of `read_similarity`.

    Returns:
        `asked` without a third text that the file does not have; and, of a file with none of the named columns, without
        all of them, so that `read_similarity` finds the usual ones.

    Raises:
        InputError: a file that cannot be read, or two columns of one of the names.
    """
    named = {role: column for role, column in asked.items() if isinstance(column, str) and not column.isdecimal()}
    names = _names(path, format_of(path, None)) if named else []
    missing = {role for role, column in named.items() if position_of(column, names, path) is None}
    left_out = missing if missing == set(named) else missing & {"negative_column"}
    return {role: None if role in left_out else column for role, column in asked.items()}


def _names(path: str | Path, kind: str) -> list[str]:
    content = read_text(path)
    return (json_rows(content, path) if kind == "jsonl" else table_rows(content, path, kind, header=True))[0]


def _usual_triple(
    path: str | Path, kind: str, negative: Column | None
) -> tuple[Column | None, Column | None, Column | None]:
    """The columns of anchor, positive and negative where the file has such; None for what is left to be found."""
    known = {name.strip().casefold(): name for name in _names(path, kind)}
    for text_name, pair_name, negative_name in _TRIPLES:
        if text_name in known and pair_name in known:
            return known[text_name], known[pair_name], negative or known.get(negative_name)
    return None, None, negative


def belonging_together(
    examples: Sequence[SimilarityExample], positive: str, negative: str | None, source: str | Path
) -> list[SimilarityExample]:
    """Pairs or triples made of labelled pairs.

    As Sentence-BERT's successors do with NLI corpora (Gao et al., 2021, section 4.2): of each premise, the entailed text
    is the positive and the contradicted one the negative.

    Args:
        examples: pairs with labels.
        positive: the label of two texts that belong together.
        negative: the label of a text that does not belong to the first one of its row. Of each first text, the k-th
            positive goes with the k-th such text (the last one, if there are fewer); pairs without one are left out.
        source: the file.

    Raises:
        InputError: no row has the label, or nothing is left.
    """
    found = {example.label for example in examples}
    for label in (positive, negative):
        if label is not None and label not in found:
            listed = ", ".join(sorted(map(str, found))[:20])
            raise InputError(f"{source}: no row has the label {label!r}; the labels found are {listed}")
    others: dict[str, list[str]] = {}
    for example in examples:
        if negative is not None and example.label == negative:
            others.setdefault(example.text, []).append(example.pair or "")
    result: list[SimilarityExample] = []
    used: dict[str, int] = {}
    for example in examples:
        if example.label != positive or (negative is not None and example.text not in others):
            continue
        own, number = others.get(example.text, []), used.get(example.text, 0)
        used[example.text] = number + 1
        third = own[min(number, len(own) - 1)] if own else None
        result.append(SimilarityExample(example.text, example.pair, None, third))
    if not result:
        raise InputError(f"{source}: no text has both a pair labelled {positive!r} and one labelled {negative!r}")
    return result


def scores_of(examples: Sequence[TextExample], source: str | Path) -> list[float] | None:
    """The examples' scores; None where no example has one.

    Raises:
        InputError: some examples have a score and others have none, or a label is not a number.
    """
    if all(example.label is None for example in examples):
        return None
    for row, example in enumerate(examples, start=1):
        if example.label is None:
            raise InputError(
                f"{source}, row {row} ({start_of(example.text)}): expected a score, found none; give all rows one or none"
            )
    return encode_values(examples, source)
