"""Published settings of distillation, by name and task.

tinybert: Jiao et al., 2020. The general stage is general_distill.py of huawei-noah/Pretrained-Language-Model (its defaults;
batch size of its README); the task's stages are the two commands of that README, its training set enlarged 20 times
(data_augmentation.py for SST-2). The first stage learns inner states, "tinybert-prediction", the second, outputs.

distilbert: Sanh et al., 2019. The general stage is the command in the README of transformers' research project
"distillation" with the defaults of its train.py (5 texts, 50 accumulated); questions are run_squad_w_distillation.py.
"""

from typing import Any

from albert_tf.errors import InputError

_INNER = {"hard_weight": 0.0, "soft_weight": 0.0, "hidden_weight": 1.0, "attention_weight": 1.0, "layer_map": "uniform"}
_ENLARGED = {"augment": 20, "augment_probability": 0.4, "augment_candidates": 15, "batch_size": 32, "max_length": 128}
_TINYBERT = _INNER | _ENLARGED | {"learning_rate": 5e-5, "epochs": 10.0, "warmup": 0.1, "weight_decay": 0.01}
_PREDICTION = _ENLARGED | {"hard_weight": 0.0, "soft_weight": 1.0, "learning_rate": 3e-5, "epochs": 3.0, "warmup": 0.1}

# (name, task) → fields of the run.
RECIPES: dict[tuple[str, str], dict[str, Any]] = {
    ("tinybert", "fill-mask"): _INNER
    | {"learning_rate": 5e-5, "batch_size": 256, "epochs": 3.0, "warmup": 0.1, "weight_decay": 0.01, "max_length": 128},
    ("tinybert", "classification"): _TINYBERT,
    ("tinybert", "regression"): _TINYBERT,
    ("tinybert-prediction", "classification"): _PREDICTION | {"temperature": 1.0},
    ("tinybert-prediction", "regression"): _PREDICTION,
    ("distilbert", "fill-mask"): {
        "soft_weight": 5.0,
        "hard_weight": 2.0,
        "hidden_weight": 1.0,
        "hidden_loss": "cosine",
        "layer_map": "last",
        "temperature": 2.0,
        "learning_rate": 5e-4,
        "batch_size": 250,
        "epochs": 3.0,
        "warmup": 0.05,
        "weight_decay": 0.0,
        "clip_norm": 5.0,
    },
    ("distilbert", "question-answering"): {
        "soft_weight": 0.5,
        "hard_weight": 0.5,
        "temperature": 2.0,
        "learning_rate": 5e-5,
        "batch_size": 8,
        "epochs": 3.0,
        "warmup": 0.0,
        "weight_decay": 0.0,
        "max_length": 384,
        "doc_stride": 128,
    },
}


def recipe_names(task: str) -> list[str]:
    """The recipes for a task."""
    return [name for name, own in RECIPES if own == task]


def find_recipe(name: str, task: str) -> dict[str, Any] | None:
    """The fields of a run that a recipe sets; None where there is none of that name."""
    fields = RECIPES.get((name.lower(), task))
    return None if fields is None else dict(fields)


def recipe_fields(name: str, task: str) -> dict[str, Any]:
    """As `find_recipe`.

    Raises:
        InputError: no such recipe, or none for the task.
    """
    if (fields := find_recipe(name, task)) is not None:
        return fields
    known = ", ".join(recipe_names(task)) or "none, as nothing is published for it"
    others = sorted({own for other, own in RECIPES if other == name.lower()})
    what = f"is for {', '.join(others)}" if others else "is unknown"
    raise InputError(f"--recipe: expected {known}, for task {task}; {name!r} {what}")
