"""What a TF Model Garden checkpoint does not say comes from one place that does, or is asked for."""

import dataclasses
import itertools

import pytest
from garden_writer import (
    CONFIG,
    RECORDED,
    RECORDED_MASKED_LM,
    arrays,
    encoder_layer,
    metadata,
    objects,
    save,
    save_saved_model,
    trackable,
)

from albert_tf.conversion.model_garden import read_model_garden
from albert_tf.errors import InputError

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# As hyperparams.save_params_dict_to_yaml writes it, much shortened.
PARAMS = """\
runtime:
  num_gpus: 0
task:
  init_checkpoint: ''
  model:
    encoder:
      albert:
        attention_dropout_rate: 0.2
        dropout_rate: 0.1
        embedding_width: 8
        hidden_activation: gelu
        hidden_size: 12
        initializer_range: 0.03
        intermediate_size: 20
        max_position_embeddings: 9
        num_attention_heads: 3
        num_layers: 3
        type_vocab_size: 2
        vocab_size: 40
      type: albert
    mlm_activation: gelu
"""
# A list of one list twice, that of one twice, and so on: 2 ** 40 numbers to be printed.
DOUBLED = "a: &a [1, 1]\n" + "".join(f"{new}: &{new} [*{old}, *{old}]\n" for old, new in itertools.pairwise(LETTERS))
DOUBLED += "task: {{model: {{encoder: {{type: albert, albert: {{{}}}}}}}}}\n"
TRAINED = dataclasses.replace(CONFIG, hidden_dropout=0.1, attention_dropout=0.2, initializer_range=0.03)


@pytest.fixture
def bare(tmp_path):
    """A checkpoint without a config."""
    return save(tmp_path / "bare", {"model": objects(arrays(RECORDED))}, config=None)


# === Config files ===


def test_none_is_asked_for(bare):
    with pytest.raises(InputError, match=r"--config FILE or NAME.*found none"):
        read_model_garden(bare)


def test_a_config_given(bare, tmp_path):
    relu = dataclasses.replace(CONFIG, activation="relu", num_layers=7, attention_dropout=0.5)
    assert read_model_garden(bare, relu).config == relu
    relu.to_json(tmp_path / "own.json")
    relu.to_json(tmp_path / "published.json", published=True)
    assert read_model_garden(bare, tmp_path / "own.json").config == relu
    assert read_model_garden(bare, str(tmp_path / "published.json")).config == relu
    (tmp_path / "params.yaml").write_text(PARAMS)
    assert read_model_garden(bare, tmp_path / "params.yaml").config == TRAINED


def test_a_config_given_goes_before_one_beside_the_checkpoint(bare):
    CONFIG.to_json(bare / "albert_config.json", published=True)
    assert read_model_garden(bare).config == CONFIG
    deeper = dataclasses.replace(CONFIG, num_layers=5)
    assert read_model_garden(bare, deeper).config == deeper


def test_a_params_yaml_beside_the_checkpoint(bare):
    (bare / "params.yaml").write_text(PARAMS)
    assert read_model_garden(bare).config == TRAINED
    CONFIG.to_json(bare / "config.json")
    with pytest.raises(InputError, match=r"found params\.yaml, config\.json"):
        read_model_garden(bare)


def test_the_name_of_a_published_config_must_fit(bare):
    with pytest.raises(InputError, match="the config disagrees with the weights: ") as error:
        read_model_garden(bare, "albert_base_v2")
    for wrong in ("vocabulary_size is 30000, not 40", "hidden_dim is 768, not 12", "num_heads is 12, not 3"):
        assert wrong in str(error.value)
    assert "num_layers" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 4}, "num_heads is 4, not 3"),
        ({"embedding_dim": 4}, "embedding_dim is 4, not 8"),
        ({"num_groups": 3}, "num_groups is 3, not 1"),
        ({"sharing": "ffn"}, "sharing is 'ffn', not 'all'"),
        ({"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon is 1e-05, not 1e-12"),
    ],
)
def test_a_config_that_disagrees_with_the_weights(changes, message, bare):
    with pytest.raises(InputError, match=f"the config disagrees with the weights: {message}$"):
        read_model_garden(bare, dataclasses.replace(CONFIG, **changes))


def test_the_segment_table_is_as_long_as_it_is(tmp_path):
    """AlbertEncoder has 16 rows where nobody says otherwise; configs say 2."""
    recorded = RECORDED | {"layer_with_weights-2/embeddings": ("embeddings/segment_embedding/embeddings", (16, 8))}
    checkpoint = read_model_garden(save(tmp_path, {"model": objects(arrays(recorded))}))
    assert checkpoint.config == dataclasses.replace(CONFIG, num_segments=16)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type: albert", "type: bert", "found 'bert'; albert-tf reads ALBERT only"),
        ("      albert:", "      bert:", "expected an encoder of type albert"),
        ("hidden_activation: gelu", "hidden_activation: swish", "hidden_activation: expected one of gelu, relu"),
        ("mlm_activation: gelu", "mlm_activation: mish", "mlm_activation: expected one of gelu, relu"),
        ("num_layers: 3", "num_layers: 0", "num_layers: expected a whole number of at least 1"),
        ("        num_layers: 3\n", "", "does not say how many layers"),
        ("task:", "tusk:", "expected a Model Garden params.yaml"),
        ("runtime:", "runtime: [", "expected a Model Garden params.yaml"),
        ("runtime:", "runtime: " + "[" * 5000, "found no YAML that can be read"),
        ("num_gpus: 0", "num_gpus: 2001-99-99", "found no YAML that can be read: month must be"),
        ("num_gpus: 0", "a: &a {x: 1}\n  b: {<<: [*a, *a]}", "<< is not taken"),
        ("num_gpus: 0", "a: &a !!python/object/apply:os.getcwd []", "found no YAML that can be read"),
        ("num_gpus: 0", "a: " + "x" * 2**20, "which is small; found 1049"),
        ("num_layers: 3", "num_layers: [3]", "encoder: albert: num_layers: expected a number or a name"),
        ("num_layers: 3", "norm_first: true", "unknown keys norm_first: no AlbertEncoder has them"),
        (PARAMS, DOUBLED.format("num_layers: *z"), "num_layers: expected a number or a name"),
        (PARAMS, DOUBLED.format("hidden_activation: *z"), "hidden_activation: expected a number or a name"),
        (PARAMS, DOUBLED.format("a: 1").replace("type: albert", "type: *z"), "expected an encoder of type albert"),
    ],
)
def test_a_params_yaml_that_cannot_be_used(old, new, message, bare):
    assert old in PARAMS
    (bare / "params.yaml").write_text(PARAMS.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_model_garden(bare)


def test_pyyaml_is_asked_for(bare, monkeypatch):
    (bare / "params.yaml").write_text(PARAMS)
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(InputError, match="needs PyYAML: pip install pyyaml"):
        read_model_garden(bare)


def test_a_masked_word_head_with_another_activation(tmp_path):
    tree = objects(arrays(RECORDED))
    words = tree["layer_with_weights-0"]["embeddings"]
    head = objects(arrays(RECORDED_MASKED_LM)) | {"embedding_table": words}
    folder = save(tmp_path, {"encoder": tree, "masked_lm": head}, config=None)
    (folder / "params.yaml").write_text(PARAMS)
    assert read_model_garden(folder).head == "masked_lm"
    (folder / "params.yaml").write_text(PARAMS.replace("mlm_activation: gelu", "mlm_activation: relu"))
    with pytest.raises(InputError, match="masked-word head has the activation relu, the encoder gelu_tanh"):
        read_model_garden(folder)


# === SavedModels ===


@pytest.fixture
def saved(tmp_path):
    """A SavedModel that says nothing of depth and activation."""
    return save_saved_model(tmp_path / "saved", objects(arrays(RECORDED)))


def test_what_keras_says_of_the_encoder(saved):
    other = {"class_name": "Functional", "config": {"name": "model"}}
    (saved / "keras_metadata.pb").write_bytes(metadata(other, encoder_layer(num_layers=6), other))
    assert read_model_garden(saved).config == dataclasses.replace(TRAINED, num_layers=6)


@pytest.mark.parametrize(
    ("said", "activation"),
    [
        ("Text>gelu", "gelu_tanh"),  # the Garden's own
        ("gelu", "gelu_erf"),  # Keras's
        ({"class_name": "function", "config": "gelu"}, "gelu_erf"),
        ("relu", "relu"),
    ],
)
def test_which_gelu_it_is(said, activation, saved):
    (saved / "keras_metadata.pb").write_bytes(metadata(encoder_layer(activation=said)))
    assert read_model_garden(saved).config.activation == activation


def test_what_keras_said_in_2020_stands_in_the_graph_file(saved):
    import json

    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    model = SavedModel.FromString((saved / "saved_model.pb").read_bytes())
    said = encoder_layer(num_layers=4) | {"class_name": "AlbertTransformerEncoder"}
    model.meta_graphs[0].object_graph_def.nodes[1].user_object.metadata = json.dumps(said)
    (saved / "saved_model.pb").write_bytes(model.SerializeToString())
    assert read_model_garden(saved).config == dataclasses.replace(TRAINED, num_layers=4)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (metadata(encoder_layer(), encoder_layer(num_layers=4)), "found 2 different ones"),
        (metadata(encoder_layer(activation="Text>swish")), "activation: expected one of Text>gelu, gelu"),
        (metadata(encoder_layer(hidden_size=16)), "hidden_dim is 16, not 12"),
        (metadata(encoder_layer())[:-5], "keras_metadata.pb: damaged"),
        (metadata(encoder_layer(activation=[["gelu"]])), "activation: expected one of Text>gelu, gelu"),
        (
            metadata(encoder_layer(num_layers=[3])),
            r"saved: num_layers: expected a whole number of at least 1, got \[3\]",
        ),
        (metadata(encoder_layer(initializer={"config": {"stddev": "x"}})), "initializer_range: expected a number"),
        (metadata(encoder_layer() | {"config": [1]}), "--config FILE or NAME"),
        (metadata(), "--config FILE or NAME"),
    ],
)
def test_what_keras_says_cannot_be_used(contents, message, saved):
    (saved / "keras_metadata.pb").write_bytes(contents)
    with pytest.raises(InputError, match=message):
        read_model_garden(saved)


def test_a_config_beside_a_saved_model_that_does_not_say(saved):
    CONFIG.to_json(saved / "albert_config.json", published=True)
    assert read_model_garden(saved).config == CONFIG


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_erf", "relu"])
def test_what_the_graph_shows(activation, tmp_path):
    """Operations are named after the Garden's layers; some are called twice, some stand in functions of their own."""
    import tensorflow as tf

    functions = {
        "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True),
        "gelu_erf": lambda x: tf.nn.gelu(x, approximate=False),
        "relu": tf.nn.relu,
    }

    def layer(x):
        with tf.name_scope("albert_encoder/transformer"):
            with tf.name_scope("self_attention/softmax"):
                x = tf.nn.softmax(x)
            with tf.name_scope("activation"):
                return functions[activation](x)

    inner = tf.function(layer)

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32)])
    def serve(x):
        for _ in range(2):
            x = inner(layer(x))
        with tf.name_scope("albert_encoder/pooler_transform"):
            x = tf.tanh(x)
        return {"probabilities": tf.nn.softmax(x)}

    root = trackable(objects(arrays(RECORDED)))
    tf.saved_model.save(root, str(tmp_path / "saved"), signatures={"serving_default": serve, "other": serve})
    expected = dataclasses.replace(CONFIG, num_layers=4, activation=activation)
    assert read_model_garden(tmp_path / "saved").config == expected


def served(folder, bodies):
    """Puts functions into a SavedModel's file: name → names of the functions it calls; the first is served."""
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    model = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    graph = model.meta_graphs[0]
    for name, called in bodies.items():
        function = graph.graph_def.library.function.add()
        function.signature.name = name
        function.node_def.add(name=f"{name}/self_attention/softmax", op="Softmax")
        function.node_def.add(name=f"{name}/transformer/activation/Relu", op="Relu")
        for other in called:
            function.node_def.add(name="call", op="PartitionedCall").attr["f"].func.name = other
    graph.graph_def.node.add(name="served", op="PartitionedCall").attr["f"].func.name = next(iter(bodies))
    graph.signature_def["serving_default"].outputs["x"].name = "served:0"
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    return folder


def test_functions_that_call_functions(saved):
    assert read_model_garden(served(saved, {"f": ["g", "g"], "g": ["h"], "h": []})).config.num_layers == 5


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ({f"f{n}": [f"f{n + 1}"] * 2 for n in range(200)}, "num_layers: expected at most"),
        ({f"f{n}": [f"f{n + 1}"] for n in range(5000)}, "functions that call functions, a thousand deep"),
    ],
)
def test_functions_without_end(saved, bodies, message):
    with pytest.raises(InputError, match=message):
        read_model_garden(served(saved, bodies))


def test_a_function_that_calls_itself_is_counted_once(saved):
    assert read_model_garden(served(saved, {"f": ["g", "f"], "g": ["f"]})).config.num_layers == 2
