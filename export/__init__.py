"""From a trained task to files that serve and run on devices.

`export.runtime` and `export.metadata` need no TensorFlow: they are what an application on a device host uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from export.runtime import TFLiteRunner as TFLiteRunner
    from export.saved_model import export_saved_model as export_saved_model
    from export.tflite import export_tflite as export_tflite

_MODULES = {
    "TFLiteRunner": "export.runtime",
    "export_saved_model": "export.saved_model",
    "export_tflite": "export.tflite",
}
__all__ = ["TFLiteRunner", "export_saved_model", "export_tflite"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'export' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
