"""Messages quote what was found, which may be anything: they stay one line of a readable length."""

from albert_tf.errors import InputError


def test_control_characters_are_escaped() -> None:
    assert str(InputError("a\nb\x1b[31mc\x85\u2028\ud800 中文 ü")) == r"a\nb\x1b[31mc\x85\u2028\ud800 中文 ü"


def test_a_long_message_keeps_its_beginning_and_end() -> None:
    message = str(InputError(f"config.json: got {'y' * 100_000}; expected a number"))
    assert message.startswith("config.json: got yyy") and message.endswith("y; expected a number")
    assert len(message) < 3100
    assert str(InputError("x" * 3000)) == "x" * 3000
