import bz2
import gzip
import lzma

import pytest

from albert_tf.data.text_files import sampled_lines, text_lines
from albert_tf.errors import InputError

TEXT = "\ufeffone\r\n\ntwo\u2028three\nlast"
LINES = ["one", "", "two\u2028three", "last"]


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".txt", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".BZ2", bz2.compress), ("", bytes)],
)
def test_lines_of_plain_and_packed_files(tmp_path, suffix, pack):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(pack(TEXT.encode()))
    assert list(text_lines(path)) == LINES


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.txt", b"good\n\xff\n", r"bad.txt, line 2: expected UTF-8 text, found byte 0xff"),
        ("cut.gz", gzip.compress(bytes(range(256)) * 9, mtime=0)[:40], r"cut.gz: expected a whole .gz file"),
        ("plain.gz", b"text", r"plain.gz: expected a whole .gz file, .* Not a gzipped file"),
        ("plain.xz", b"text", r"plain.xz: expected a whole .xz file"),
        ("plain.bz2", b"text", r"plain.bz2"),
    ],
)
def test_damaged_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(text_lines(tmp_path / name))


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none.txt: No such file"):
        list(text_lines(tmp_path / "none.txt"))
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
        list(text_lines(tmp_path))


def test_sample_is_repeatable_in_order_and_without_blank_lines(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"{n}\n \n" for n in range(1000)))
    sample = [int(line) for line in sampled_lines(path, 100)]
    assert sample == sorted(set(sample)) and len(sample) == 100
    assert sample == [int(line) for line in sampled_lines(path, 100)]
    assert 350 < sum(sample) / 100 < 650  # from the whole file
    assert max(sample) > 900 and min(sample) < 100


def test_sample_of_a_short_file_is_the_file(tmp_path):
    (tmp_path / "short.txt").write_text("b\n\na\n")
    assert sampled_lines(tmp_path / "short.txt", 5) == ["b", "a"]
