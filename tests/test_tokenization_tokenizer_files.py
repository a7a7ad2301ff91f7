import json

import pytest
from small_vocabularies import LINES, TOKENS, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer

BOTH = pytest.mark.parametrize("vocabulary", [sentencepiece_vocabulary, wordpiece_vocabulary], ids=["spm", "wordpiece"])


@BOTH
def test_saved_and_read_again(tmp_path, vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(lower=False), 64)
    (tmp_path / "config.json").write_text("{}")
    tokenizer.save(tmp_path)
    loaded = AlbertTokenizer.from_pretrained(tmp_path)
    assert loaded.max_length == 64
    assert loaded.vocabulary.options() == tokenizer.vocabulary.options()
    for line in LINES:
        assert loaded.encode(line, "a b") == tokenizer.encode(line, "a b")
    assert AlbertTokenizer.from_pretrained(tmp_path, max_length=16).max_length == 16
    before = sorted(file.name for file in tmp_path.iterdir())
    with pytest.raises(InputError, match="exists already"):
        tokenizer.save(tmp_path)
    tokenizer.save(tmp_path, overwrite=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == before
    with pytest.raises(InputError, match="records the text rules already; drop lower"):
        AlbertTokenizer.from_pretrained(tmp_path, lower=True)


def test_nothing_is_written_where_one_file_exists(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json exists already"):
        AlbertTokenizer(wordpiece_vocabulary()).save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]


def test_bare_files_and_release_folders(tmp_path):
    spm, wordpiece = tmp_path / "spm" / "30k-clean.model", tmp_path / "zh" / "vocab_chinese.txt"
    for path in (spm, wordpiece):
        path.parent.mkdir()
        (path.parent / "model.ckpt-best.index").write_bytes(b"")
    spm.write_bytes(sentencepiece_vocabulary().model)
    wordpiece.write_text("".join(f"{token}\n" for token in TOKENS), encoding="utf-8")
    for path in (spm, wordpiece, spm.parent, wordpiece.parent):
        kind = "sentencepiece" if "spm" in str(path) else "wordpiece"
        tokenizer = AlbertTokenizer.from_pretrained(path)
        assert (tokenizer.vocabulary.kind, tokenizer.max_length) == (kind, 512)
        assert not AlbertTokenizer.from_pretrained(path, lower=False).vocabulary.options()["lower"]
    with pytest.raises(InputError, match="wordpiece vocabulary are lower, each true or false; got quotes=True"):
        AlbertTokenizer.from_pretrained(wordpiece, quotes=True)


def test_folder_of_transformers(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0", "model": {}}')
    (tmp_path / "spiece.model").write_bytes(sentencepiece_vocabulary().model)
    assert AlbertTokenizer.from_pretrained(tmp_path).vocabulary.size == 140


def test_what_was_found_is_named(tmp_path):
    def message(path):
        with pytest.raises(InputError) as caught:
            AlbertTokenizer.from_pretrained(path)
        return str(caught.value)

    assert "no such file or folder" in message(tmp_path / "absent")
    assert "found nothing" in message(tmp_path)
    (tmp_path / "notes.md").write_text("")
    assert "found notes.md" in message(tmp_path)
    assert "cannot tell the kind" in message(tmp_path / "notes.md")
    for name in ("vocab.txt", "a.model"):
        (tmp_path / name).write_text("")
    assert "found a.model, vocab.txt. Name the file itself" in message(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{", r"tokenizer\.json, line 1: not JSON"),
        (
            {"kind": "bpe", "options": {}, "max_length": 9},
            "kind: expected one of sentencepiece, wordpiece; found 'bpe'",
        ),
        ({"kind": "wordpiece", "options": {}}, "expected the keys kind, options, max_length; found kind, options"),
        ({"kind": "wordpiece", "options": 3, "max_length": 9}, "options: expected an object"),
        ({"kind": "wordpiece", "options": {"lower": "yes"}, "max_length": 9}, "true or false; got lower='yes'"),
        ({"kind": "wordpiece", "options": {}, "max_length": 9}, r"cannot read .*vocab\.txt"),
        ({"kind": ["wordpiece"], "options": {}, "max_length": 9}, "kind: expected one of sentencepiece, wordpiece"),
        ({"kind": "wordpiece", "options": {}, "max_length": True}, r"tokenizer\.json: max_length: expected a whole"),
        ({"kind": "wordpiece", "options": {}, "max_length": 2}, r"tokenizer\.json: max_length: expected a whole"),
    ],
)
def test_bad_settings(tmp_path, settings, message):
    (tmp_path / "tokenizer.json").write_text(settings if isinstance(settings, str) else json.dumps(settings))
    with pytest.raises(InputError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_vocabularies_that_have_no_end(tmp_path):
    for name in ("vocab.txt", "vocabulary.spm"):
        (tmp_path / name).symlink_to("/dev/zero")
        kind = "wordpiece" if name == "vocab.txt" else "sentencepiece"
        settings = {"kind": kind, "options": {}, "max_length": 9}
        (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
        with pytest.raises(InputError, match=f"{name}: neither a file nor a folder"):
            AlbertTokenizer.from_pretrained(tmp_path)


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*File name too long"):
        AlbertTokenizer.from_pretrained(tmp_path / ("n" * 5000))
