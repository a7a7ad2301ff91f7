"""What tests of archives have in common: contents to pack, and unpacking as a reader of checkpoints does."""

from pathlib import Path

import pytest

from albert_tf.conversion.archive import unpacked
from albert_tf.errors import InputError

CONTENTS = {"model/config.json": b"{}", "model/data": bytes(range(256)) * 20}


def unpack(path: Path) -> dict[str, bytes]:
    """Name → contents of every file."""
    with unpacked(path) as folder:
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refuse_member(path: Path, message: str) -> None:
    """Checks that the archive is refused with its name and this message, and leaves nothing beside it."""
    with pytest.raises(InputError, match=message) as error:
        unpack(path)
    assert str(path) in str(error.value)
    assert not (path.parent / "up").exists()
