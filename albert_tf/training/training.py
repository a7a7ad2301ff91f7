"""`Training`: what a run trains, and how; here a task on its labels, in `albert_tf.training.distill` by a teacher."""

from collections.abc import Sequence
from typing import Any

from albert_tf.backbone import AlbertBackbone
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Prepared, Runner
from albert_tf.tasks.accumulation import AccumulatingModel
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.finetune_rounds import Examples
from albert_tf.training.run_config import RunConfig
from albert_tf.training.starting_point import backbone_options, config_changes, scratch_config
from albert_tf.training.tasks.finetune_task import FinetuneTask


class Training:
    """Fine-tuning.

    Attributes:
        task: what the task's files hold and its rows should give.
    """

    def __init__(self, task: FinetuneTask) -> None:
        self.task = task

    def build(self, run: RunConfig, settings: dict[str, Any]) -> AlbertTask:
        """The model to train, with these settings of its head."""
        return build_model(run, self.task.model_class, settings)

    def prepare(self, model: Any, examples: Sequence[Any]) -> Prepared:
        """The rows of examples."""
        return prepared_by_pipeline(model, examples)

    def learner(self, model: AlbertTask) -> AccumulatingModel:
        """What `fit` is called on."""
        return model

    def origin(self, run: RunConfig, model: AlbertTask) -> str:
        """A line on where the model's weights are from."""
        new = "new head and new pooler" if model.pooler_is_new else "new head"
        return f"encoder from {run.source}, " + (new if model.head_is_new else "and its head too")

    def compare(self, runner: Runner, valid: Examples | None) -> dict[str, Any]:
        """More for metrics.json, of the model with the best weights."""
        return {}


def prepared_by_pipeline(model: Any, examples: Sequence[Any]) -> Prepared:
    """The rows of examples for a model, or for what stands for one, as its task's pipeline makes them."""
    return pipeline_of(model).prepare(examples)


def build_model(run: RunConfig, model_class: type[AlbertTask], settings: dict[str, Any]) -> AlbertTask:
    """The model to train: a checkpoint's encoder, or a new one of the shape that `run.from_scratch` names.

    Args:
        run: the settings of the run.
        model_class: the task's model.
        settings: those of the head.
    """
    options = backbone_options(run)
    if run.source is not None:
        model = model_class.from_pretrained(
            run.source, config_changes=config_changes(run), backbone_options=options, **settings
        )
    else:
        tokenizer = AlbertTokenizer.from_pretrained(str(run.tokenizer))
        config = scratch_config(run, tokenizer.vocabulary.size)
        backbone = AlbertBackbone(config, pooler=model_class.uses_pooler, **options)
        model = model_class(backbone, tokenizer, **settings)
    cut_to_length(run, model)
    return model


def cut_to_length(run: RunConfig, model: AlbertTask) -> None:
    """Makes the model's tokenizer cut texts where the run says."""
    tokenizer = model.required_tokenizer
    tokenizer.max_length = min(run.max_length, model.backbone.config.max_sequence_length)
