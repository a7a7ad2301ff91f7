"""The models that come with the package, by name. A file or folder of the same name is meant before them."""

from importlib import resources
from pathlib import Path

# The names of folders in albert_tf/assets; "-" in place of "_" is the same.
BUNDLED = ("albert_tiny_en",)


def bundled_model(source: str | Path) -> Path | None:
    """The folder of the bundled model that `source` names; None where it names none, or a path that there is."""
    name = str(source).replace("-", "_")
    if name not in BUNDLED or Path(source).exists():
        return None
    return Path(str(resources.files("albert_tf") / "assets" / name))
