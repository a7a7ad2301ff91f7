"""The model that comes with the package."""

import os
from importlib import resources
from pathlib import Path
from typing import Any

# Presets in albert_tf/assets; each is of the config of its name.
BUNDLED = ("albert_tiny_en",)


def bundled(source: Any) -> Any:
    """The folder in the package of the model that `source` names; `source` itself, if it names none.

    A file or folder of that name in the working folder goes first.
    """
    if not isinstance(source, (str, os.PathLike)) or os.fspath(source) not in BUNDLED or Path(source).exists():
        return source
    return Path(str(resources.files("albert_tf") / "assets" / os.fspath(source)))
