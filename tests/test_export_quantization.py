"""What each recipe does to the weights, read in the files themselves."""

import pytest
from tflite_graph import read_graph, weights
from tiny_exports import BASE, FIXED_LENGTH, exported, wide_classifier

import export.device_graph
from albert_tf.errors import InputError
from export.metadata import read_files
from export.quantization import RECIPES, Recipe, recipe_by_name
from export.tflite import export_tflite
from export.validation import CHECK_TEXTS, ExportError

# Bytes per parameter without the associated files, at 1.25 million parameters.
LIMITS = {
    "float32": (4.0, 4.05),
    "float16": (2.0, 2.05),
    "dynamic_int8": (1.0, 1.1),
    "weight_only_int8": (1.0, 1.1),
    "int4": (0.5, 0.6),
    "int4_int8_table": (0.8, 1.05),
    "int8": (1.0, 2.2),
    "int16x8": (1.0, 2.2),
}
INTEGERS = ("int8", "int16x8")


def options_of(recipe):
    return {"length": 16, "calibration": CHECK_TEXTS} if recipe in INTEGERS else {}


def _large_weights(path):
    """(type, shape) of the stored matrices that int8 is meant for."""
    stored = weights(read_graph(path)).values()
    return [(t.type, t.shape) for t in stored if len(t.shape) == 2 and t.shape[0] * t.shape[1] >= 1024]


@pytest.mark.parametrize("form", ["loop", "unrolled"])
@pytest.mark.parametrize(("recipe", "kind"), [("float32", "FLOAT32"), ("float16", "FLOAT16"), ("dynamic_int8", "INT8")])
def test_large_weights_have_the_recipes_type(recipe, kind, form):
    hidden, wide = BASE.hidden_dim, BASE.intermediate_dim
    square = (hidden, hidden)  # q, k, v, attention output, pooler
    found = _large_weights(exported("all", recipe, form))
    assert sorted(shape for _, shape in found) == sorted([(140, 16), *[square] * 5, (wide, hidden), (hidden, wide)])
    assert {t for t, _ in found} == {kind}


def test_what_int8_leaves_in_float():
    stored = weights(read_graph(exported("all", "dynamic_int8", "loop", FIXED_LENGTH))).values()
    small = {t.type for t in stored if 0 < len(t.shape) <= 2 and t.stored_bytes >= 32 * 4 and t.type != "INT8"}
    assert small == {"FLOAT32", "FLOAT16"}  # biases, layer norms, the segment table; the scales of words


def test_everything_is_half_under_float16():
    kinds = {t.type for t in weights(read_graph(exported("all", "float16", "loop"))).values() if t.stored_bytes >= 64}
    assert kinds == {"FLOAT16"}


@pytest.mark.parametrize("recipe", RECIPES)
def test_bytes_per_parameter(tmp_path, recipe):
    task, path = wide_classifier(), tmp_path / "m.tflite"
    report = export_tflite(task, path, recipe=recipe, **options_of(recipe))
    lowest, highest = LIMITS[recipe]
    assert report.bytes_per_parameter == report.model_bytes / task.count_params()
    assert lowest <= report.bytes_per_parameter <= highest
    assert report.size_bytes == path.stat().st_size
    assert 0 < report.size_bytes - report.model_bytes - sum(map(len, read_files(path).values())) < 2000  # zip headers


def test_a_recipe_that_does_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Recipe, "configure", lambda self, converter: None)
    monkeypatch.setattr(export.device_graph, "rewrite_weights", lambda model, bits: model)
    for recipe in ("dynamic_int8", "float16", "int4"):
        with pytest.raises(ExportError, match=f"parameters as {recipe} should take"):
            export_tflite(wide_classifier(), tmp_path / "m.tflite", recipe=recipe)
    assert list(tmp_path.iterdir()) == []


def test_stored_bytes():
    dense, vector, positions, words = (
        ("d/kernel", (64, 32)),
        ("d/bias", (2000,)),
        ("embeddings/position_embedding/e", (512, 8)),
        ("embeddings/word_embedding/e", (512, 8)),
    )
    expected = {
        "float32": (8192, 8000, 16384, 16384),
        "float16": (4096, 4000, 8192, 8192),
        "dynamic_int8": (2048 + 12 * 32, 8000, 4096 + 12 * 512, 4096 + 12 * 512),
        "int4": (1024 + 2 * 64 + 12 * 32, 8000, 4096 + 12 * 512, 2048 + 12 * 512),
        "int4_int8_table": (1024 + 2 * 16 + 12 * 32, 8000, 4096 + 12 * 512, 4096 + 12 * 512),
    }
    for name, sizes in expected.items():
        assert tuple(RECIPES[name].stored_bytes(*weight) for weight in (dense, vector, positions, words)) == sizes
    assert RECIPES["dynamic_int8"].stored_bytes("d/kernel", (31, 33)) == 4 * 31 * 33


def test_recipes_by_name():
    names = ["float32", "float16", "dynamic_int8", "weight_only_int8", "int4", "int4_int8_table", *INTEGERS]
    assert [recipe_by_name(name).name for name in RECIPES] == names
    with pytest.raises(InputError, match="no recipe is called 'int2'; there are float32, float16, dynamic_int8"):
        recipe_by_name("int2")
