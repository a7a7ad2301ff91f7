"""Published settings of fine-tuning, by the name of the data set.

GLUE: run_glue.sh of google-research/albert, whose steps are exact. SQuAD: its README, and for 2.0 its script. RACE: the
paper's table of hyper-parameters; for v2 checkpoints the README's lower rate, as "otherwise" training diverges. Settings of
the body's dropout are the checkpoint's own: none for v2.
"""

from typing import Any

from albert_tf.errors import InputError


def _steps(task: str, learning_rate: float, batch_size: int, steps: int, warmup_steps: int, **others: Any) -> Any:
    fields = {
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "steps": steps,
        "warmup": warmup_steps / steps,
        "max_length": 512,
    }
    return task, fields | others


# Name → (task, fields of its run).
RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "cola": _steps("classification", 1e-5, 16, 5336, 320),
    "stsb": _steps("regression", 2e-5, 16, 3598, 214),
    "sst2": _steps("classification", 1e-5, 32, 20935, 1256),
    "mnli": _steps("classification", 3e-5, 128, 10000, 1000),
    "qnli": _steps("classification", 1e-5, 32, 33112, 1986),
    "qqp": _steps("classification", 5e-5, 128, 14000, 1000),
    "rte": _steps("classification", 3e-5, 32, 800, 200),
    "mrpc": _steps("classification", 2e-5, 32, 800, 200),
    "wnli": _steps("classification", 2e-5, 16, 2000, 250),
    "squad1": (
        "question-answering",
        {"learning_rate": 5e-5, "batch_size": 48, "epochs": 2.0, "warmup": 0.1, "max_length": 384},
    ),
    "squad2": _steps("question-answering", 3e-5, 48, 8144, 814, head="squad2"),
    "race": _steps("multiple-choice", 2e-5, 32, 12000, 1000),
    "race-v2": _steps("multiple-choice", 1e-5, 32, 12000, 1000),
}
RECIPE_HELP = (
    "published settings for a data set, unless given otherwise: " + ", ".join(RECIPES) + "; default: those below"
)


def recipe_fields(name: str, task: str) -> dict[str, Any]:
    """The fields of a run that a recipe sets.

    Args:
        name: without regard to case and hyphens: "SST-2" is sst2.
        task: the run's.

    Raises:
        InputError: no such recipe, or one of another task.
    """
    fields = find_recipe(name, task)
    if fields is None:
        of_task = [known for known, (own, _) in RECIPES.items() if own == task]
        wanted = f"one of {', '.join(of_task)}" if of_task else "none, as nothing is published for it"
        others = [own for known, (own, _) in RECIPES.items() if _plain(known) == _plain(name)]
        what = f"one of task {others[0]}" if others else "unknown"
        raise InputError(f"--recipe: expected {wanted}, for task {task}; {name!r} is {what}")
    return fields


def find_recipe(name: str, task: str) -> dict[str, Any] | None:
    """As `recipe_fields`; None where there is none."""
    for known, (own, fields) in RECIPES.items():
        if _plain(known) == _plain(name) and own == task:
            return dict(fields)
    return None


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
