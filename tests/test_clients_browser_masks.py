"""Fill-mask in headless Chromium: rows, candidates and texts are those of Python, and the page shows them.

Needs what test_clients_browser.py needs.
"""

import random

import pytest
from browser_client import MODULES, browse
from small_vocabularies import LINES
from tiny_tasks import tiny_task
from web_pages import serving

from albert_tf.inference.fill_mask import MASK
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

pytestmark = pytest.mark.clients

RECIPES = ("float32", "dynamic_int8", "int4")
MANY = 600


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for recipe in RECIPES:
        path = folder / f"{recipe}.tflite"
        export_tflite(tiny_task("fill-mask"), path, recipe=recipe, length=(8, 24), measure=False, force=True)
    return {recipe: folder / f"{recipe}.tflite" for recipe in RECIPES}


@pytest.fixture(scope="module")
def asker(files):
    with serving(list(files.values()), MODULES) as found:
        yield found


def masked_texts(count):
    """Words with masks before, after, between and inside them, with spaces of several kinds or none."""
    rng = random.Random(0)
    words = [word for word in " ".join(LINES).split() if "22," not in word]  # which the device model cannot say
    parts = [*words, "😀", "가나", "\u2581the", "[CLS]", "<unk>", "\u00a0", "\x1c", "\ufeff"]
    for _ in range(count):
        chosen = [rng.choice((MASK, " ", "", "  ", rng.choice(parts))) for _ in range(rng.randrange(1, 40))]
        yield "".join([*chosen, MASK, rng.choice(("", ".", "s", " the", " "))])


def test_candidates_and_texts_are_those_of_python(asker, files):
    texts = [*masked_texts(60), MASK, MASK * MANY, f"{LINES[0]} " * 60 + MASK]
    runner = TFLiteRunner(files["float32"])
    results = browse(asker.url, calls=[{"file": "float32.tflite", "asked": {"text": text}} for text in texts])[
        "results"
    ]
    for text, found, expected in zip(texts, results, runner(texts), strict=True):
        assert "in this browser" in found["runtime"] and found["why"] == ""
        rows = [runner.tokenizer.pieces(ids) for ids, _ in runner.pipeline.prepare([text]).rows]
        assert found["tokens"]["rows"] == rows[: len(found["tokens"]["rows"])]
        assert found["answer"]["filled"] == expected.text
        assert [(mask["start"], mask["end"]) for mask in found["answer"]["masks"]] == list(expected.places)
        for mask, candidates in zip(found["answer"]["masks"], expected.masks, strict=True):
            assert [piece for piece, _ in mask["scores"]] == [one.piece for one in candidates]
            scores = [score for _, score in mask["scores"]]
            assert scores == pytest.approx([one.probability for one in candidates], abs=1e-5)


def test_the_page(asker, tmp_path):
    names = [f"{recipe}.tflite" for recipe in RECIPES]
    html = f"<img src=x onerror=alert(1)> the {MASK}<script>alert(2)</script>"
    for width, height in ((1280, 900), (390, 844)):
        steps = [
            {"files": names, "values": {"text": html}, "keyboard": "#text"},
            {"files": names[:1], "values": {"text": "the mill"}},
            {"values": {"text": "the "}, "click": "#sign", "keyboard": "#text"},
            {"values": {"text": f"{MASK} " * MANY}},
        ]
        for number, step in enumerate(steps):
            step["screenshot"] = str(tmp_path / f"{width}_{number}.png")
        shown = browse(asker.url, width=width, height=height, steps=steps)["shown"]
        assert all(step["overflow"] <= 0 and step["unlabelled"] == [] for step in shown)
        assert all((step["scripts"], step["images"]) == (0, 0) for step in shown)
        beside, without, inserted, many = shown
        assert [card["name"] for card in beside["cards"]] == names
        for card in beside["cards"]:
            (filled,) = card["marks"]
            assert card["passage"].startswith(html.partition(f" {MASK}")[0]) and filled in card["passage"]
            assert "LiteRT for the web" in card["text"]
        assert (
            without["status"] == f"Write {MASK} in the text where a word is to be found." and without["focus"] == "text"
        )
        assert len(inserted["cards"][0]["marks"]) == 1 and inserted["focus"] == "text"
        assert len(many["cards"][0]["marks"]) == MANY and f"and {MANY - 12} more masks" in many["cards"][0]["text"]
