"""ALBERT for TensorFlow and Keras 3.

The public names below load TensorFlow when they are first used; importing the package does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tf.backbone import AlbertBackbone as AlbertBackbone
    from albert_tf.config import CONFIGS as CONFIGS
    from albert_tf.config import AlbertConfig as AlbertConfig
    from albert_tf.errors import CheckError as CheckError
    from albert_tf.errors import InputError as InputError
    from albert_tf.tasks.classification import AlbertTextClassifier as AlbertTextClassifier
    from albert_tf.tasks.fill_mask import AlbertMaskedLM as AlbertMaskedLM
    from albert_tf.tasks.multi_label import AlbertMultiLabelClassifier as AlbertMultiLabelClassifier
    from albert_tf.tasks.multiple_choice import AlbertMultipleChoice as AlbertMultipleChoice
    from albert_tf.tasks.pretraining import AlbertPretrainer as AlbertPretrainer
    from albert_tf.tasks.question_answering import AlbertQuestionAnswerer as AlbertQuestionAnswerer
    from albert_tf.tasks.regression import AlbertTextRegressor as AlbertTextRegressor
    from albert_tf.tasks.similarity import AlbertTextEmbedder as AlbertTextEmbedder
    from albert_tf.tasks.token_classification import AlbertTokenClassifier as AlbertTokenClassifier
    from albert_tf.tokenization.tokenizer import AlbertTokenizer as AlbertTokenizer

__version__ = "0.1.0"

_MODULES = {
    "AlbertBackbone": "albert_tf.backbone",
    "AlbertConfig": "albert_tf.config",
    "AlbertMaskedLM": "albert_tf.tasks.fill_mask",
    "AlbertMultiLabelClassifier": "albert_tf.tasks.multi_label",
    "AlbertMultipleChoice": "albert_tf.tasks.multiple_choice",
    "AlbertPretrainer": "albert_tf.tasks.pretraining",
    "AlbertQuestionAnswerer": "albert_tf.tasks.question_answering",
    "AlbertTextClassifier": "albert_tf.tasks.classification",
    "AlbertTextEmbedder": "albert_tf.tasks.similarity",
    "AlbertTextRegressor": "albert_tf.tasks.regression",
    "AlbertTokenClassifier": "albert_tf.tasks.token_classification",
    "AlbertTokenizer": "albert_tf.tokenization.tokenizer",
    "CONFIGS": "albert_tf.config",
    "CheckError": "albert_tf.errors",
    "InputError": "albert_tf.errors",
}
__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
