"""What a page tells of the machine and the speed."""

import platform
from importlib.metadata import version

import albert_tf
from albert_tf.training.environment import environment


def test_environment_of_no_round_and_of_two() -> None:
    assert environment("float32", [])["examples per second"] is None
    rounds = [{"seconds": 1.0, "examples_per_second": 10.0}, {"seconds": 3.0, "examples_per_second": 20.0}]
    told = environment("mixed_bfloat16", rounds)
    assert told["examples per second"] == 17.5 and told["seconds of training"] == 4.0 and told["device"]
    assert told["precision"] == "mixed_bfloat16" and told["albert-tf"] == albert_tf.__version__
    assert told["tensorflow"] == version("tensorflow") and told["Python"] == platform.python_version()
    assert "jax" not in told and told["Keras backend"] == "tensorflow"
