"""Similarity from a table to a run folder and a `.tflite` file, for each loss; what does not go together."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from small_vocabularies import sentencepiece_vocabulary
from tiny_data import TinyFiles, pair_rows, run_quietly, separable_rows, tiny_run, write_table

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.data.similarity import SimilarityExample, read_similarity
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.inference.similarity import SimilarityPipeline
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.run_config import RunConfig
from albert_tf.training.task_runs import SimilarityRun
from albert_tf.training.tasks.similarity import FinetuneSimilarity
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24)
HEADER = ("sentence1", "sentence2", "score")


def similarity_run(files: TinyFiles, out: Path, train: Path, **changes: Any) -> SimilarityRun:
    fields = dataclasses.asdict(tiny_run(files, out, train=str(train), valid=None))
    shared = {field.name for field in dataclasses.fields(RunConfig)} - {"best_metric"}
    return SimilarityRun(**{name: fields[name] for name in shared} | changes)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of texts of one kind have the score 5, others 0."""
    rows = [(a, b, "5.0" if label == "same" else "0") for a, b, label in pair_rows(96)]
    return write_table(tmp_path_factory.mktemp("scored") / "train.tsv", rows, HEADER)


def test_from_scores_to_a_file(tiny_files: TinyFiles, scored: Path, tmp_path: Path) -> None:
    summary = run_quietly(similarity_run(tiny_files, tmp_path / "run", scored, valid=str(scored), epochs=8.0))
    assert summary["valid"]["spearman"] > 0.7
    trained, examples = AlbertTextEmbedder.from_pretrained(tmp_path / "run"), read_similarity(scored)
    assert trained.settings()["objective"] == "cosine" and trained.backbone.pooler is None
    cosines = SimilarityPipeline(trained)([e.text for e in examples], [e.pair or "" for e in examples])
    truth = [float(example.label or "nan") for example in examples]
    assert summary["valid"]["spearman"] == pytest.approx(stats.spearmanr(truth, cosines).statistic)
    assert summary["valid"]["pearson"] == pytest.approx(stats.pearsonr(truth, cosines).statistic)
    for recipe, length, tolerance in (("float32", None, 1e-5), ("dynamic_int8", 32, 0.05)):
        export_tflite(trained, tmp_path / f"{recipe}.tflite", recipe=recipe, length=length)
        on_file = TFLiteRunner(tmp_path / f"{recipe}.tflite")
        texts = [example.text for example in examples[:6]]
        np.testing.assert_allclose(on_file(texts), trained.embed(texts), rtol=0, atol=tolerance)
        assert evaluate(on_file, examples, source="x")["spearman"] == pytest.approx(
            summary["valid"]["spearman"], abs=0.05
        )


def test_from_pairs_that_belong_together(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """A text and the same words in another order; retrieval against chance, 1 in 32."""
    random = np.random.default_rng(0)
    texts = list(dict.fromkeys(text for text, _ in separable_rows(60)))[:48]
    rows = [(text, " ".join(random.permutation(text.split()).tolist())) for text in texts if len(text.split()) > 3]
    train = write_table(tmp_path / "pairs.tsv", rows, ("anchor", "positive"))
    run = similarity_run(
        tiny_files,
        tmp_path / "run",
        train,
        valid=str(train),
        loss="contrastive",
        pooling="mean",
        best_metric="mean_reciprocal_rank",
        hidden_dropout=0.0,
    )
    summary = run_quietly(run)
    assert summary["valid"]["recall_at_10"] >= summary["valid"]["recall_at_1"] > 0.5
    assert summary["valid"]["examples"] == len(rows)


def test_from_nli_labels_to_triples(tiny_files: TinyFiles, tmp_path: Path) -> None:
    rows = [("ice and snow", "the frost", "entailment"), ("ice and snow", "the sun", "contradiction")]
    rows += [("fire", "the lava", "entailment"), ("fire", "a winter", "contradiction"), ("fire", "day", "neutral")]
    train = write_table(tmp_path / "nli.tsv", rows * 4, ("premise", "hypothesis", "gold_label"))
    lines: list[str] = []
    changes = {"loss": "contrastive", "positive_label": "entailment", "negative_label": "contradiction", "epochs": 1.0}
    run_quietly(similarity_run(tiny_files, tmp_path / "run", train, **changes), report=lines.append)
    assert any("8 of 20 pairs belong together" in line for line in lines)
    assert any("mean pooling, contrastive loss" in line for line in lines)


def test_triples_judged_by_scored_pairs(tiny_files: TinyFiles, scored: Path, tmp_path: Path) -> None:
    rows = [("ice and snow", "the frost", "the sun"), ("fire", "the lava", "a winter")]
    train = write_table(tmp_path / "triples.tsv", rows * 4, ("a", "b", "c"))
    columns = {"text_column": "a", "pair_column": "b", "negative_column": "c"}
    changes = {"loss": "contrastive", "pooling": "cls", "epochs": 1.0, "valid": str(scored)}
    summary = run_quietly(similarity_run(tiny_files, tmp_path / "run", train, **columns, **changes))
    assert summary["valid"].keys() >= {"spearman", "pearson"}


def test_from_labels_by_softmax_and_on(tiny_files: TinyFiles, scored: Path, tmp_path: Path) -> None:
    """Sentence-BERT's two steps: a classifier of pairs, then the regression on scores, from its encoder."""
    train = write_table(tmp_path / "labelled.tsv", pair_rows(48), ("sentence1", "sentence2", "label"))
    first = similarity_run(tiny_files, tmp_path / "nli", train, valid=str(scored), loss="softmax", epochs=2.0)
    summary = run_quietly(first)
    assert summary["valid"].keys() >= {"spearman", "pearson"}
    assert AlbertTextEmbedder.from_pretrained(tmp_path / "nli").labels == ("other", "same")
    lines: list[str] = []
    second = {"source": str(tmp_path / "nli"), "from_scratch": None, "tokenizer": None, "epochs": 1.0}
    run_quietly(similarity_run(tiny_files, tmp_path / "sts", scored, **second), report=lines.append)
    assert any("new head" in line for line in lines)
    assert AlbertTextEmbedder.from_pretrained(tmp_path / "sts").labels == ()


def test_from_vectors_to_a_file(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """The teacher: sums of random vectors, one for each word."""
    texts = [text for text, _ in separable_rows(300)]
    random = np.random.default_rng(0)
    words = {word: random.standard_normal(12) for word in sorted({word for text in texts for word in text.split()})}
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    teacher = np.stack([sum(words[word] for word in text.split()) for text in texts])
    np.save(tmp_path / "vectors.npy", teacher.astype(np.float16))
    run = similarity_run(
        tiny_files,
        tmp_path / "run",
        tmp_path / "texts.txt",
        loss="vectors",
        vectors=str(tmp_path / "vectors.npy"),
        epochs=20.0,
    )
    run_quietly(run)
    trained = AlbertTextEmbedder.from_pretrained(tmp_path / "run")
    assert trained.embedding_dim == 12
    unit = teacher / np.linalg.norm(teacher, axis=1, keepdims=True)
    cosines = (trained.embed(texts) * unit).sum(-1)
    constant = unit.mean(0) / np.linalg.norm(unit.mean(0))
    assert cosines.mean() > 0.9 > (unit @ constant).mean() + 0.1
    export_tflite(trained, tmp_path / "m.tflite", recipe="float32")
    on_file = TFLiteRunner(tmp_path / "m.tflite")(texts[:4])
    np.testing.assert_allclose(on_file, trained.embed(texts[:4]), rtol=0, atol=1e-5)


def examples_of(*rows: tuple[str, ...], label: str | None = None) -> list[SimilarityExample]:
    return [SimilarityExample(row[0], row[1], label, row[2] if len(row) > 2 else None) for row in rows]


@pytest.mark.parametrize(
    ("changes", "examples", "expected"),
    [
        ({}, examples_of(("a", "b")), "t.tsv: --loss cosine needs a number for each pair; found none"),
        (
            {"loss": "contrastive"},
            examples_of(("a", "b"), label="1"),
            "--loss contrastive needs pairs that belong together, without labels .* found labels such as '1'",
        ),
        (
            {"loss": "softmax"},
            examples_of(("a", "b", "c")),
            "has triples, which --loss contrastive takes; softmax takes pairs",
        ),
        ({"loss": "softmax"}, examples_of(("a", "b"), label="x"), "found one class only"),
        ({}, examples_of(("a", "b"), label="x"), "expected a number as the label, got 'x'"),
        ({}, examples_of(("a", "b"), label="6"), r"t.tsv: has scores from 6 to 6; give as --max-score \(now 5\)"),
        ({}, examples_of(("a", "b"), label="1"), r"t.tsv: has scores from 1 to 1; give as --max-score \(now 5\)"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_a_loss_cannot_use(changes: dict[str, Any], examples: list[SimilarityExample], expected: str) -> None:
    run = SimilarityRun(train="t.tsv", out="run", source="x", **changes)
    with pytest.raises(InputError, match=expected):
        FinetuneSimilarity().head_settings(run, examples)


def test_rows_and_targets() -> None:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), 24)

    def rows_of(examples: list[SimilarityExample], **settings: Any) -> Any:
        model = AlbertTextEmbedder(AlbertBackbone(CONFIG, pooler=False), tokenizer, **settings)
        pipeline = SimilarityPipeline(model)
        return FinetuneSimilarity().training_rows(model, examples, pipeline.prepare(examples), "t.tsv")

    triples = examples_of(("the mill", "a river", "wood"), ("wood", "The  Mill", "a river"))
    found = rows_of(triples, objective="contrastive")
    assert found.rows_per_example == 3 and len(found.rows) == 6
    np.testing.assert_array_equal(found.targets["texts"], [[0, 1, 2], [2, 0, 1]])
    found = rows_of(examples_of(("a", "b"), label="2.5"))
    assert (found.rows_per_example, list(found.targets["value"])) == (2, [2.5])
    found = rows_of(examples_of(("a", "b"), label="y"), objective="softmax", labels=["x", "y"])
    assert list(found.targets["label"]) == [1]
    vectors = [SimilarityExample(text, vector=np.float16([n, 1])) for n, text in enumerate("ab")]
    found = rows_of(vectors, objective="vectors", projection_dim=2)
    assert found.rows_per_example == 1 and found.targets["vector"].tolist() == [[0, 1], [1, 1]]
    with pytest.raises(InputError, match=r"--projection-dim 3: the vectors in v\.npy have the length 2"):
        run = SimilarityRun(train="t.txt", out="r", source="x", loss="vectors", vectors="v.npy", projection_dim=3)
        FinetuneSimilarity().head_settings(run, vectors)
    with pytest.raises(InputError, match=r"t.tsv, row 1 \('a'\): the second and the third text are the same"):
        rows_of(examples_of(("a", "the mill", " The mill")), objective="contrastive")
    with pytest.raises(InputError, match=r"t\.tsv: expected pairs of two different texts, found none"):
        rows_of(examples_of(("the mill", " The mill")))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"loss": "contrastive", "batch_size": 1}, "--batch-size: expected at least 2 for --loss contrastive"),
        ({"negative_label": "no"}, "--negative-label goes with --positive-label"),
        ({"positive_label": "yes"}, "--positive-label goes with --loss contrastive, not with cosine"),
        ({"label_file": "x"}, "--label-file goes with --loss softmax, not with cosine"),
        ({"scale": 0.0}, "--scale: expected a number above 0"),
        ({"max_score": 0.0}, "--max-score: expected a number above 0"),
        ({"loss": "triplet"}, "--loss: expected one of cosine, contrastive, softmax, vectors; got 'triplet'"),
        ({"loss": "vectors"}, "--vectors FILE and --loss vectors go together"),
        ({"vectors": "v.npy"}, "--vectors FILE and --loss vectors go together"),
        ({"projection_dim": 0}, "--projection-dim: expected a number at least 1"),
    ],
    ids=str,
)
def test_settings_that_do_not_go_together(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        SimilarityRun(train="t.tsv", out="run", source="x", **changes)


@pytest.mark.parametrize(
    ("content", "metric", "expected"),
    [
        (
            "text\tpair\na\tb\n",
            "spearman",
            "has no scores, so --best-metric must be one of mean_reciprocal_rank, recall",
        ),
        (
            "text\tpair\tscore\na\tb\t1\n",
            "recall_at_5",
            "has scores, so --best-metric must be one of spearman, pearson",
        ),
        ("text\tpair\tlabel\na\tb\tyes\n", "spearman", "expected a number as the label, got 'yes'"),
    ],
)
def test_a_validation_file_that_gives_no_such_figure(content: str, metric: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "dev.tsv"
    path.write_text(content)
    run = SimilarityRun(train="t.tsv", valid=str(path), out="run", source="x", best_metric=metric)
    with pytest.raises(InputError, match=expected):
        FinetuneSimilarity().read(run, str(path), print)


def test_going_on_from_a_run(tiny_files: TinyFiles, scored: Path, tmp_path: Path) -> None:
    """Scores after scores: nothing is new."""
    lines: list[str] = []
    run_quietly(similarity_run(tiny_files, tmp_path / "first", scored, epochs=1.0))
    on = {"source": str(tmp_path / "first"), "from_scratch": None, "tokenizer": None, "epochs": 1.0}
    run_quietly(similarity_run(tiny_files, tmp_path / "second", scored, **on), report=lines.append)
    assert any("and its head too" in line for line in lines)
