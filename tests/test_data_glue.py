"""GLUE's files in the layouts they are spread in: columns, labels, quotes, faults; and the real ones."""

from collections import Counter
from pathlib import Path

import pytest

from albert_tf.data.glue import GLUE_TASKS, glue_file, glue_task, read_glue, read_glue_test, read_labelled, run_settings
from albert_tf.data.schema import TextExample
from albert_tf.errors import InputError

# Task → header (none: ""), a row, and what is read from it. Headers as in the files of gluebenchmark.com.
LAYOUTS = {
    "CoLA": ("", 'gj04\t0\t*\tHe said "no.', ('He said "no.', None, "0")),
    "SST-2": ("sentence\tlabel", 'a "gripping film \t1', ('a "gripping film ', None, "1")),
    "MRPC": ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t7\t8\tthe "a\tthe b"', ('the "a', 'the b"', "1")),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "5\t1\t2\twhy?\thow?\t0", ("why?", "how?", "0")),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "0\tmain\tMSRvid\t2012\t1\tnone\tnone\ta plane.\tan air plane.\t4.750",
        ("a plane.", "an air plane.", "4.750"),
    ),
    "MNLI": (
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
        "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        "0\t1\t1n\tfiction\t( a )\t( b )\t(A)\t(B)\tit rains\tit is wet\tneutral\tentailment",
        ("it rains", "it is wet", "entailment"),
    ),
    "QNLI": ("index\tquestion\tsentence\tlabel", "0\twho?\tHe.\tnot_entailment", ("who?", "He.", "not_entailment")),
    "RTE": ("index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", ("a", "b", "entailment")),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "0\ta\tb\t1", ("a", "b", "1")),
    "AX": (
        "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel",
        "\t\tNegation\t\tNews\tThe cat sat.\tThe cat did not sit.\tcontradiction",
        ("The cat sat.", "The cat did not sit.", "contradiction"),
    ),
}
LAYOUTS["MNLI-mm"] = LAYOUTS["MNLI"]
SPLIT_NAMES = {
    "MNLI": ("train.tsv", "dev_matched.tsv", "test_matched.tsv"),
    "MNLI-mm": ("train.tsv", "dev_mismatched.tsv", "test_mismatched.tsv"),
}


def written(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_bytes("".join(line + end for line in lines if line).encode())
    return path


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_every_layout(name: str, end: str, tmp_path: Path) -> None:
    header, row, expected = LAYOUTS[name]
    assert read_glue(written(tmp_path / "train.tsv", header, row, end=end), GLUE_TASKS[name]) == [
        TextExample(*expected)
    ]


def test_all_tasks_have_a_layout_and_names_without_regard_to_case() -> None:
    assert set(LAYOUTS) == set(GLUE_TASKS)
    for name in ("sst2", "SST-2", "Sst_2"):
        assert glue_task(name).name == "SST-2"
    with pytest.raises(InputError, match=r"--glue: expected one of CoLA, SST-2, .* got 'imdb'"):
        glue_task("imdb")


def test_official_figures() -> None:
    # https://gluebenchmark.com/faq, "What format should my submission be in?"
    assert {task.handed_in for task in GLUE_TASKS.values()} == {
        *("AX.tsv", "CoLA.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "MRPC.tsv", "QNLI.tsv", "QQP.tsv", "RTE.tsv", "SST-2.tsv"),
        *("STS-B.tsv", "WNLI.tsv"),
    }
    assert {name: task.metrics for name, task in GLUE_TASKS.items()} == {
        "CoLA": ("matthews_correlation",),
        "SST-2": ("accuracy",),
        "MRPC": ("f1", "accuracy"),
        "QQP": ("f1", "accuracy"),
        "STS-B": ("pearson", "spearman"),
        "MNLI": ("accuracy",),
        "MNLI-mm": ("accuracy",),
        "QNLI": ("accuracy",),
        "RTE": ("accuracy",),
        "WNLI": ("accuracy",),
        "AX": ("matthews_correlation",),
    }


def test_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("train.tsv", "dev.tsv", "test.tsv", "dev_matched.tsv", "dev_mismatched.tsv", "test_mismatched.tsv"):
        (tmp_path / name).write_text("x")
    assert glue_file(tmp_path, GLUE_TASKS["RTE"], "dev") == tmp_path / "dev.tsv"
    assert glue_file(tmp_path, GLUE_TASKS["MNLI-mm"], "dev") == tmp_path / "dev_mismatched.tsv"
    assert glue_file(tmp_path / "any.tsv", GLUE_TASKS["RTE"], "dev") == tmp_path / "any.tsv"
    with pytest.raises(InputError, match=r"expected the folder of GLUE's MNLI with test_matched.tsv"):
        glue_file(tmp_path, GLUE_TASKS["MNLI"], "test")
    with pytest.raises(InputError, match="--glue AX: GLUE has no file for train of it"):
        glue_file(tmp_path, GLUE_TASKS["AX"], "train")


def test_mrpc_as_microsoft_spreads_it(tmp_path: Path) -> None:
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = [f"{n % 2}\t{n}\t{n + 100}\ta{n}\tb{n}" for n in range(5)]
    path = written(tmp_path / "msr_paraphrase_train.txt", header, *rows)
    notes: list[str] = []
    assert len(read_glue(path, GLUE_TASKS["MRPC"], notes.append)) == 5
    assert "no dev_ids.tsv beside it" in notes[0]
    written(tmp_path / "dev_ids.tsv", "1\t101", "4\t104")
    train, dev = (glue_file(tmp_path, GLUE_TASKS["MRPC"], split) for split in ("train", "dev"))
    assert [e.text for e in read_glue(train, GLUE_TASKS["MRPC"])] == ["a0", "a2", "a3"]
    assert [(e.pair, e.label) for e in read_glue(dev, GLUE_TASKS["MRPC"])] == [("b1", "1"), ("b4", "0")]
    written(tmp_path / "dev_ids.tsv", "1\t101", "4")
    with pytest.raises(InputError, match=r"dev_ids.tsv, line 2: expected two ids of a pair, got '4'"):
        read_glue(dev, GLUE_TASKS["MRPC"])


def test_rows_of_qqp_that_lost_columns_are_left_out_and_counted(tmp_path: Path) -> None:
    header, row, expected = LAYOUTS["QQP"]
    path = written(tmp_path / "train.tsv", header, row, "6\t3\t4\tbroken", row)
    notes: list[str] = []
    assert read_glue(path, GLUE_TASKS["QQP"], notes.append) == [TextExample(*expected)] * 2
    assert notes == [f"{path}: 1 rows left out that lack columns, the first on line 3"]


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("RTE", ("index\tsentence1\tsentence2\tlabel", "0\ta\tb"), "line 2: expected the 4 fields index, .* got 3"),
        ("SST-2", ("sentence\tlabel", "a\tb\t1"), "got 3 .a tab inside a text"),
        ("SST-2", ("sentence\tlabel", "a\t１"), "line 2 .'a'.: expected one of the labels 0, 1 of SST-2, got '１'"),
        ("RTE", ("index\tsentence1\tsentence2\tlabel", "0\ta\tb\t "), "expected one of the labels .* got ''"),
        ("RTE", ("sentence\tlabel", "a\t1"), "expected a column 'sentence1', found sentence, label; is it another"),
        ("SST-2", ("sentence\tlabel",), "expected rows of SST-2, found none"),
        ("SST-2", (), "the file is empty; expected rows of SST-2"),
    ],
)
def test_what_is_no_such_file(name: str, lines: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    path = written(tmp_path / "train.tsv", *lines)
    with pytest.raises(InputError, match=expected):
        read_glue(path, GLUE_TASKS[name])


@pytest.mark.parametrize(
    ("name", "lines", "index", "example"),
    [
        ("CoLA", ("index\tsentence", '7\ta "b'), ["7"], TextExample('a "b')),
        ("CoLA", ("gj04\t1\t\tof a file with labels",), ["0"], TextExample("of a file with labels")),
        ("MRPC", ("index\t#1 ID\t#2 ID\t#1 String\t#2 String", "0\t1\t2\ta\tb"), ["0"], TextExample("a", "b")),
        ("QQP", ("id\tquestion1\tquestion2", "3\ta\tb"), ["3"], TextExample("a", "b")),
        ("AX", ("index\tsentence1\tsentence2", "0\ta\tb"), ["0"], TextExample("a", "b")),
        ("AX", LAYOUTS["AX"][:2], ["0"], TextExample("The cat sat.", "The cat did not sit.")),
        ("SST-2", ("index\tsentence", "0\ta"), ["0"], TextExample("a")),
    ],
)
def test_files_for_the_test(
    name: str, lines: tuple[str, ...], index: list[str], example: TextExample, tmp_path: Path
) -> None:
    assert read_glue_test(written(tmp_path / "test.tsv", *lines), GLUE_TASKS[name]) == (index, [example])


def test_an_index_that_stands_twice(tmp_path: Path) -> None:
    path = written(tmp_path / "test.tsv", "index\tsentence", "0\ta", "1\tb", "0\tc")
    with pytest.raises(InputError, match=r"test.tsv, line 4: the index '0' stands on line 2 already"):
        read_glue_test(path, GLUE_TASKS["SST-2"])


def test_a_run_on_a_folder(tmp_path: Path) -> None:
    for name in ("train.tsv", "dev.tsv"):
        written(tmp_path / name, *LAYOUTS["CoLA"][:2])
    none = (None, None, None)
    settings = run_settings("cola", str(tmp_path), None, task="classification", columns=none)
    assert settings == {
        "glue": "CoLA",
        "train": str(tmp_path / "train.tsv"),
        "valid": str(tmp_path / "dev.tsv"),
        "best_metric": "matthews_correlation",
    }
    assert "valid" not in run_settings("cola", str(tmp_path / "train.tsv"), None, task="classification", columns=none)
    with pytest.raises(InputError, match="--glue STS-B is for finetune regression"):
        run_settings("stsb", str(tmp_path), None, task="classification", columns=none)
    with pytest.raises(InputError, match="--glue says which columns there are"):
        run_settings("cola", str(tmp_path), None, task="classification", columns=("0", None, None))
    assert read_labelled(tmp_path, glue="CoLA") == [TextExample(*LAYOUTS["CoLA"][2])]
    with pytest.raises(InputError, match="--text-column: --glue says which columns there are"):
        read_labelled(tmp_path, glue="CoLA", text_column="0")


def test_real_files(shared_data: Path) -> None:
    """As many rows and labels as published (Wang et al., 2018, table 1; RTE without the rows that GLUE left out)."""
    folder = shared_data / "glue_canonical"
    found = {}
    for name, split in (("CoLA", "train"), ("CoLA", "dev"), ("SST-2", "dev"), ("RTE", "dev"), ("STS-B", "dev")):
        examples = read_glue(glue_file(folder / name, GLUE_TASKS[name], split), GLUE_TASKS[name])
        found[name, split] = len(examples), Counter(example.label for example in examples).most_common(1)[0][1]
    assert found["CoLA", "train"] == (8551, 6023) and found["CoLA", "dev"] == (1043, 721)
    assert found["SST-2", "dev"] == (872, 444) and found["RTE", "dev"] == (277, 146)
    assert found["STS-B", "dev"][0] == 1500
    pairs = read_glue(folder / "MRPC" / "msr_paraphrase_train.txt", GLUE_TASKS["MRPC"], lambda line: None)
    assert len(pairs) == 4076 and '"' in pairs[0].text and pairs[0].pair is not None
