"""Google TF1 checkpoints: every tensor arrives under our name, and whatever is wrong is named."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tf1_writer
from tf1_folders import same_block, same_rest
from tf1_writer import PUBLISHED, SQUAD_2_NAMES, encoder, save, save_folder, save_published, squad_1, squad_2, variables

from albert_tf.config import AlbertConfig
from albert_tf.conversion.tf1 import read_tf1
from albert_tf.errors import InputError
from albert_tf.parameters import count_parameters

DATA = "model.ckpt-best.data-00000-of-00001"
BLOCK = "bert/encoder/transformer/group_{}/inner_group_{}"


def test_every_variable_arrives_under_our_name(released):
    checkpoint = read_tf1(released)
    values = variables(PUBLISHED)
    same_block(checkpoint.weights, values, 0, 0, 0)
    same_rest(checkpoint.weights, values)
    assert len(checkpoint.weights) == len(values)
    assert checkpoint.form == "google tf1"
    assert checkpoint.source == str(released)
    assert checkpoint.head == "pretraining"
    assert checkpoint.tokenizer_path == released / "30k-clean.model"
    assert checkpoint.config == AlbertConfig(11, 6, 10, 4, 2, embedding_dim=4, max_sequence_length=7)
    assert all(weight.dtype == np.float32 for weight in checkpoint.weights.values())


def test_groups_and_inner_groups_are_counted_as_the_encoder_counts_them(tmp_path):
    config = PUBLISHED | {"num_hidden_groups": 2, "inner_group_num": 2}
    weights = read_tf1(save_folder(tmp_path, config)).weights
    values = variables(config)
    for ours, (group, inner) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        same_block(weights, values, ours, group, inner)
    assert "encoder/attention_4/query/kernel" not in weights


def test_equal_widths_have_no_projection(tmp_path):
    checkpoint = read_tf1(save_folder(tmp_path, PUBLISHED | {"embedding_size": 6}))
    assert "embeddings/projection/kernel" not in checkpoint.weights


def test_a_hub_module_is_read_from_its_folder(tmp_path):
    values = variables(PUBLISHED)
    in_module = {f"module/{name}": v for name, v in values.items() if "seq_relationship" not in name}
    save(tmp_path / "variables" / "variables", in_module)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "albert_config.json").write_text(json.dumps(PUBLISHED))
    (tmp_path / "assets" / "30k-clean.model").write_bytes(b"model")
    checkpoint = read_tf1(tmp_path)
    same_block(checkpoint.weights, values, 0, 0, 0)
    assert checkpoint.head == "masked_lm"
    assert checkpoint.tokenizer_path == tmp_path / "assets" / "30k-clean.model"


def test_training_state_is_left_behind(tmp_path):
    values = variables(PUBLISHED)
    slots = {f"{name}/adam_{slot}": np.zeros_like(value) for name, value in values.items() for slot in "mv"}
    folder = save_folder(tmp_path, values=values | slots | {"global_step": np.int64(7)})
    assert set(read_tf1(folder).weights) == set(read_tf1(save_folder(tmp_path / "plain")).weights)


def test_a_classifier_head_is_transposed(tmp_path):
    values = {name: value for name, value in variables(PUBLISHED).items() if not name.startswith("cls/")}
    kernel = np.arange(18, dtype=np.float32).reshape(3, 6)
    values |= {"output_weights": kernel, "output_bias": np.array([1, 2, 3], np.float32)}
    checkpoint = read_tf1(save_folder(tmp_path, values=values))
    assert checkpoint.head == "classifier"
    np.testing.assert_array_equal(checkpoint.weights["classifier/kernel"], kernel.T)
    np.testing.assert_array_equal(checkpoint.weights["classifier/bias"], [1, 2, 3])
    assert checkpoint.weights["classifier/kernel"].flags.c_contiguous


def test_the_head_of_squad_1(tmp_path):
    kernel = np.arange(12, dtype=np.float32).reshape(2, 6)
    checkpoint = read_tf1(save_folder(tmp_path, values=encoder() | squad_1(kernel)))
    assert checkpoint.head == "question_answering"
    assert checkpoint.head_weights.keys() == {"question_answering/kernel", "question_answering/bias"}
    np.testing.assert_array_equal(checkpoint.weights["question_answering/kernel"], kernel.T)
    np.testing.assert_array_equal(checkpoint.weights["question_answering/bias"], [1, 2])


def test_the_head_of_squad_2(tmp_path):
    values = squad_2(hidden=6)
    checkpoint = read_tf1(save_folder(tmp_path, values=encoder() | values))
    assert checkpoint.head == "question_answering"
    for ours, theirs in SQUAD_2_NAMES.items():
        np.testing.assert_array_equal(checkpoint.weights[f"question_answering/{ours}"], values[theirs])
    assert len(checkpoint.head_weights) == len(SQUAD_2_NAMES) == len(values)


def test_an_encoder_alone_is_enough(tmp_path):
    values = {
        name: value for name, value in variables(PUBLISHED).items() if not name.startswith(("cls/", "bert/pooler"))
    }
    checkpoint = read_tf1(save_folder(tmp_path, values=values))
    assert checkpoint.head == "none"
    assert "pooler/kernel" not in checkpoint.weights


@pytest.mark.parametrize("given", ["", "model.ckpt-best", "model.ckpt-best.index", DATA])
def test_every_way_to_give_it_reads_the_same(released, given):
    assert len(read_tf1(released / given).weights) == len(variables(PUBLISHED))


def test_a_meta_file_stands_for_its_checkpoint(copied):
    meta = copied / "model.ckpt-best.meta"
    meta.write_bytes(b"a graph that nobody reads")
    assert read_tf1(meta).head == "pretraining"


def test_a_folder_above_is_searched(released):
    assert read_tf1(released.parent).tokenizer_path == released / "30k-clean.model"


def test_names_that_tensorflow_takes_for_patterns_are_refused(released, tmp_path):
    folder = Path(shutil.copytree(released, tmp_path / "my [best] model"))
    with pytest.raises(InputError, match=r"TensorFlow takes \[ in a path for a pattern; rename"):
        read_tf1(folder)
    assert read_tf1(shutil.copytree(released, tmp_path / "my (best), model é")).head == "pretraining"


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (
            {"bert/embeddings/word_embeddings": np.zeros((12, 4), np.float32)},
            ["disagreement in vocab_size", "bert/embeddings/word_embeddings is (12, 4), expected (11, 4)"],
        ),
        (
            {"bert/embeddings/position_embeddings": np.zeros((9, 4), np.float32)},
            ["disagreement in max_position_embeddings", "is (9, 4), expected (7, 4)"],
        ),
        (
            {BLOCK.format(0, 0) + "/ffn_1/intermediate/dense/bias": np.zeros(12, np.float32)},
            ["disagreement in intermediate_size", "is (12,), expected (10,)"],
        ),
        ({"bert/pooler/dense/bias": np.zeros((6, 1), np.float32)}, ["bert/pooler/dense/bias is (6, 1), expected (6,)"]),
        (
            {"cls/seq_relationship/output_weights": np.zeros((3, 6), np.float32)},
            ["cls/seq_relationship/output_weights is (3, 6), expected (2, 6)"],
        ),
        ({"bert/pooler/dense/kernel": None}, ["1 missing: bert/pooler/dense/kernel (our pooler/kernel)"]),
        (
            {"bert/embeddings/LayerNorm/beta": None, "cls/predictions/output_bias": None},
            ["2 missing: bert/embeddings/LayerNorm/beta (our embeddings/layer_norm/beta), cls/predictions/output_bias"],
        ),
        ({"output_weights": np.zeros((3, 6), np.float32)}, ["1 missing: output_bias (our classifier/bias)"]),
        (
            {"cls/squad/output_bias": np.zeros(2, np.float32)},
            ["1 missing: cls/squad/output_weights (our question_answering/kernel)"],
        ),
        (
            {
                "cls/squad/output_bias": np.zeros(3, np.float32),
                "cls/squad/output_weights": np.zeros((2, 6), np.float32),
            },
            ["cls/squad/output_bias is (3,), expected (2,)"],
        ),
        (
            {"start_logits/dense/bias": np.zeros(1, np.float32)},
            ["10 missing: ", "(our question_answering/start/kernel)"],
        ),
        ({"cls/mrc/output_bias": np.zeros(2, np.float32)}, ["1 unknown: cls/mrc/output_bias (2,)"]),
        ({"bert/pooler/dense/kernel/Momentum": np.zeros(1, np.float32)}, ["1 unknown: bert/pooler/dense/kernel/Mom"]),
        ({"module/bert/pooler/dense/kernel": np.zeros((6, 6), np.float32)}, ["1 unknown: module/bert/pooler"]),
        (
            {BLOCK.format(1, 0) + "/LayerNorm/beta": np.zeros(6, np.float32)},
            ["1 unknown: bert/encoder/transformer/gro"],
        ),
        ({"bert/embeddings/LayerNorm/beta": np.full(4, np.nan, np.float32)}, ["embeddings/layer_norm/beta: 4 of 4"]),
        ({"bert/embeddings/LayerNorm/beta": np.zeros(4, np.int32)}, ["LayerNorm/beta: expected floating-point"]),
        (
            {"bert/embeddings/word_embeddings_2": np.zeros((4, 6), np.float32)},
            [
                "16 missing: bert/encoder/layer_shared/attention/self/query/kernel (our encoder/attention_0/query/kernel)"
            ],
        ),
        ({"bert/encoder/layer_0/output/dense/bias": np.zeros(6, np.float32)}, ["a BERT checkpoint"]),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, messages):
    values = {name: value for name, value in (variables(PUBLISHED) | change).items() if value is not None}
    with pytest.raises(InputError) as error:
        read_tf1(save_folder(tmp_path, values=values))
    for message in messages:
        assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_config_of_more_groups_finds_them_missing(tmp_path):
    folder = save_folder(tmp_path)
    (folder / "albert_config.json").write_text(json.dumps(PUBLISHED | {"num_hidden_groups": 2}))
    with pytest.raises(InputError, match="16 missing: bert/encoder/transformer/group_1/inner_group_0/attention_1/self"):
        read_tf1(folder)


def test_a_config_with_other_sharing_is_refused(copied):
    ours = AlbertConfig(11, 6, 10, 4, 2, embedding_dim=4, max_sequence_length=7, sharing="attention")
    ours.to_json(copied / "albert_config.json", overwrite=True)
    with pytest.raises(InputError, match="sharing"):
        read_tf1(copied)


def test_other_float_types_become_float32(tmp_path):
    values = {name: value.astype(np.float16) for name, value in variables(PUBLISHED).items()}
    weights = read_tf1(save_folder(tmp_path, values=values)).weights
    assert {weight.dtype for weight in weights.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(weights["pooler/bias"], values["bert/pooler/dense/bias"].astype(np.float32))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_published_variables_are_read(shared_data, tmp_path, language):
    published = shared_data / "tf1_ckpt_index" / f"google_albert_base_{language}"
    values = save_published(tmp_path, published)
    checkpoint = read_tf1(tmp_path / "model.ckpt-best.index")
    same_block(checkpoint.weights, values, 0, 0, 0)
    same_rest(checkpoint.weights, values)
    assert checkpoint.config == AlbertConfig.from_name({"en": "albert_base_v2", "zh": "albert_base_zh"}[language])
    total = sum(weight.size for weight in checkpoint.weights.values())
    assert total == {"en": 11_813_810, "zh": 10_669_322}[language]
    assert total == count_parameters(checkpoint.config, heads=True).total


def test_the_published_index_without_its_data_is_refused(shared_data):
    with pytest.raises(InputError, match="the weights belong in"):
        read_tf1(shared_data / "tf1_ckpt_index" / "google_albert_base_en")


def test_the_writer_writes_what_the_published_list_says(shared_data):
    listed = (shared_data / "tf1_ckpt_index" / "google_albert_base_en" / "model.ckpt-best.index.tsv").read_text()
    names = {line.split("\t")[0] for line in listed.splitlines() if not line.startswith("#")}
    assert set(tf1_writer.variables(PUBLISHED)) | {"global_step"} == names
