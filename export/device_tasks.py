"""Which runtime an app runs each task on, and what its file is like there. Loads no TensorFlow."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class DeviceTask:
    """Attributes:
    runtime: as `export_tflite` takes it.
    lengths: tokens of the file's signatures, as far as the model takes them; none for one signature of any length.
    """

    runtime: str
    lengths: tuple[int, ...] = ()


# MediaPipe Tasks have a class for texts with labels, which pays for real tokens only. The other tasks run on LiteRT, whose
# build for browsers takes fixed shapes alone: so several, on the same weights.
_LENGTHS = (16, 32, 64, 128, 256)
DEVICE_TASKS = {
    "classification": DeviceTask("mediapipe"),
    "question-answering": DeviceTask("litert", _LENGTHS),
    "tagging": DeviceTask("litert", _LENGTHS),
}
