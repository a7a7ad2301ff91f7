"""SavedModels in TensorFlow with TensorFlow Text, in a process of its own without this package: `predict`'s answers."""

import json
import sys

import numpy as np
import pytest
from client_python import run_python
from real_texts import reader_of_english, real_questions, real_sentences

from export.runtime import TFLiteRunner
from export.saved_model import export_saved_model
from export.tflite import export_tflite

pytestmark = pytest.mark.clients

ASK = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
fields = {name: tf.constant(values) for name, values in json.load(sys.stdin).items()}
answer = model.signatures["serving_default"](**fields)
assert not [name for name in sys.modules if name.split(".")[0] in ("albert_tf", "export")]
def plain(values):
    return [value.decode() for value in values.tolist()] if values.dtype == object else values.tolist()
print(json.dumps({name: plain(answer[name].numpy()) for name in sys.argv[2:]}))
"""


def ask(folder, names, **fields):
    """The outputs called `names` of the version that was written into `folder`."""
    [version] = [path for path in folder.iterdir() if path.is_dir()]
    done = run_python(sys.executable, "-c", ASK, version, *names, send=fields, TF_CPP_MIN_LOG_LEVEL="3")
    return json.loads(done.stdout.splitlines()[-1])


def test_labels_of_real_sentences(shared_data, tmp_path):
    lines, task = real_sentences(shared_data), reader_of_english(shared_data, "classification", labels=["no", "yes"])
    export_saved_model(task, tmp_path / "served")
    export_tflite(task, tmp_path / "m.tflite", recipe="float32", measure=False)
    found = ask(tmp_path / "served", ["label", "score"], texts=lines)
    for expected in (task.classify(lines), TFLiteRunner(tmp_path / "m.tflite")(lines)):
        assert found["label"] == [answer.label for answer in expected]
        assert found["score"] == pytest.approx([answer.score for answer in expected], abs=1e-3)


def test_embeddings_of_real_sentences(shared_data, tmp_path):
    lines, task = real_sentences(shared_data), reader_of_english(shared_data, "similarity")
    export_saved_model(task, tmp_path / "served")
    found = ask(tmp_path / "served", ["embedding"], texts=lines)
    np.testing.assert_allclose(found["embedding"], task.embed(lines), rtol=0, atol=1e-3)


def test_answers_to_real_questions(shared_data, tmp_path):
    asked = real_questions(shared_data, 40)
    questions, passages = [question for question, _ in asked], [passage for _, passage in asked]
    task = reader_of_english(shared_data, "question-answering", max_length=128, scale=0.2, doc_stride=32)
    export_saved_model(task, tmp_path / "served")
    export_tflite(task, tmp_path / "m.tflite", recipe="float32", measure=False)
    found = ask(tmp_path / "served", ["answer", "start", "end", "score"], questions=questions, passages=passages)
    expected = TFLiteRunner(tmp_path / "m.tflite")(questions, passages)
    assert found["answer"] == [answer.text for answer in expected]
    assert found["start"] == [-1 if answer.start is None else answer.start for answer in expected]
    assert found["score"] == pytest.approx([answer.score for answer in expected], abs=1e-3)
