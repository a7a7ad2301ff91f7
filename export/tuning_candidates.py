"""What `albert-tf tune-device` tries: files, and the candidates that each of them serves."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.inference.depth import EXITS, PASSES, PLAIN, DepthChoice, ExitSettings
from albert_tf.tasks.base import AlbertTask
from export.associated_files import associated_files
from export.fixed_depth import at_fixed_depth, shortened_config
from export.model_size import size_limits
from export.quantization import RECIPES, recipe_by_name
from export.tuning_choice import Candidate

Shape = tuple[int, int]

REFERENCE_RECIPE = "dynamic_int8"
# Those that take no ranges from texts.
TUNED_RECIPES = tuple(name for name, recipe in RECIPES.items() if recipe.activation_bits is None)
# Rule → the number that is varied, and its values.
EXIT_VALUES: dict[str, tuple[str, tuple[float, ...]]] = {
    "patience": ("patience", (1, 2, 3)),
    "confidence": ("threshold", (0.7, 0.8, 0.9, 0.95, 0.98)),
    "entropy": ("threshold", (0.05, 0.1, 0.2, 0.4)),
    "tolerance": ("threshold", (0.01, 0.02, 0.05, 0.1, 0.2)),
}
# Of rows that choose something for each token: the least clear of many choices is seldom as clear as a text's only label.
TOKEN_EXIT_VALUES = EXIT_VALUES | {
    "confidence": ("threshold", (0.4, 0.5, 0.6, 0.7, 0.9)),
    "entropy": ("threshold", (0.2, 0.3, 0.4, 0.5, 0.6)),
}


@dataclasses.dataclass(frozen=True)
class PlannedFile:
    """A file, not made yet, and the candidates that it serves.

    Attributes:
        task: the model of the file's shape, with all its passes.
        recipe: its weights.
        num_passes: the most passes.
        exits: of a file with early exits.
        served: candidates, each with what the file is told when it runs as one.
    """

    task: AlbertTask
    recipe: str
    num_passes: int
    exits: ExitSettings | None
    served: tuple[tuple[Candidate, DepthChoice], ...]

    @property
    def adaptive(self) -> str:
        """What the file leaves open."""
        if self.exits is not None:
            return EXITS
        return PASSES if len(self.served) > 1 else PLAIN

    def model(self) -> AlbertTask:
        """What is exported: of a plain file a model without exits."""
        return self.task if self.adaptive != PLAIN else at_fixed_depth(self.task, self.num_passes)

    def least_bytes(self) -> int:
        """The fewest bytes that the file can have."""
        model, recipe = self.model(), recipe_by_name(self.recipe)
        files = associated_files(model, b"", recipe, form="loop", length=None)
        return size_limits(model, recipe, form="loop", length=None)[0] + sum(map(len, files.values()))


def single_file(task: AlbertTask, candidate: Candidate) -> PlannedFile:
    """The file that always does what the candidate says."""
    return PlannedFile(task, candidate.recipe, candidate.num_passes, candidate.exits, ((candidate, DepthChoice()),))


def reference_candidate(task: AlbertTask) -> Candidate:
    """What all others are compared with: the plain dynamic_int8 file, which makes all passes."""
    config = task.backbone.config
    return Candidate(f"{REFERENCE_RECIPE}, all passes", shape_of(config), REFERENCE_RECIPE, config.num_layers)


def planned_files(
    variants: Mapping[Shape, AlbertTask],
    *,
    recipes: Sequence[str],
    passes: Sequence[int] | None,
    exit_rules: Sequence[str] | None,
) -> Iterator[PlannedFile]:
    """The files of every candidate but the reference.

    Args:
        variants: the model, first as it is, then narrower, by heads and columns.
        recipes: of `TUNED_RECIPES`.
        passes: how many; None for every number that there is.
        exit_rules: of a model with early exits; None for its own.

    Raises:
        InputError: a recipe or rule that cannot be tried, or a number of passes that the model does not have.
    """
    whole = next(iter(variants))
    task = variants[whole]
    if unusable := [name for name in recipes if name not in TUNED_RECIPES]:
        raise InputError(f"--recipes: expected some of {', '.join(TUNED_RECIPES)}; got {', '.join(unusable)}")
    depths = _checked_depths(task.backbone.config, passes)
    rules = _checked_rules(task, exit_rules)
    for shape, variant in variants.items():
        narrower = "" if shape == whole else f"{shape[0]} heads, {shape[1]:,} columns, "
        for recipe in recipes:
            # The reference is all passes of the whole model in its recipe.
            full = variant.backbone.config.num_layers
            others = [n for n in depths if n != full or narrower or recipe != REFERENCE_RECIPE]
            for together in _of_one_file(variant.backbone.config, others):
                yield _file_of_depths(variant, recipe, together, shape, narrower)
            for exits in rules:
                yield _file_of_exits(variant, recipe, exits, shape, narrower)


def shape_of(config: AlbertConfig) -> Shape:
    """Heads and columns of a block."""
    return config.num_heads, config.intermediate_dim


def _checked_depths(config: AlbertConfig, passes: Sequence[int] | None) -> list[int]:
    possible = [n for n in range(1, config.num_layers + 1) if shortened_config(config, n) is not None]
    if passes is None:
        return possible
    if unusable := [n for n in passes if n not in possible]:
        raise InputError(
            f"--passes: expected some of {', '.join(map(str, possible))}, the passes of this model; got "
            f"{', '.join(map(str, unusable))}"
        )
    return sorted(set(passes))


def _checked_rules(task: AlbertTask, rules: Sequence[str] | None) -> list[ExitSettings]:
    """The settings of each rule that is tried: of the model's own as it was trained, of others the usual ones."""
    if task.exits is None:
        if rules is not None:
            raise InputError(
                "--exit-rules: this model has no early exits; expected one trained with finetune --early-exit"
            )
        return []
    own = task.exits
    if unusable := [rule for rule in rules or () if rule not in task.exit_rules]:
        raise InputError(
            f"--exit-rules: expected some of {', '.join(task.exit_rules)} for this task; got {', '.join(unusable)}"
        )
    names = [own.rule] if rules is None else dict.fromkeys(rules)
    return [own if rule == own.rule else ExitSettings(rule, heads=own.heads) for rule in names]


def _of_one_file(config: AlbertConfig, depths: Sequence[int]) -> list[list[int]]:
    """The depths by files: one serves all that use every block; of one that uses fewer, a file of its own is smaller."""
    shorter = {depth: shortened_config(config, depth) for depth in depths}
    shared = [depth for depth, found in shorter.items() if found is not None and found.num_blocks == config.num_blocks]
    return [[depth] for depth in depths if depth not in shared] + ([shared] if shared else [])


def _file_of_depths(task: AlbertTask, recipe: str, depths: Sequence[int], shape: Shape, narrower: str) -> PlannedFile:
    full = task.backbone.config.num_layers
    served = []
    for depth in depths:
        told = "all passes" if depth == full else f"{depth} passes" if depth > 1 else "1 pass"
        choice = DepthChoice() if len(depths) == 1 else DepthChoice(depth)
        served.append((Candidate(f"{recipe}, {narrower}{told}", shape, recipe, depth), choice))
    return PlannedFile(task, recipe, max(depths), None, tuple(served))


def _file_of_exits(task: AlbertTask, recipe: str, exits: ExitSettings, shape: Shape, narrower: str) -> PlannedFile:
    """A file with early exits; its own setting, and the others of `EXIT_VALUES`, are chosen when it runs."""
    field, values = (TOKEN_EXIT_VALUES if task.token_outputs else EXIT_VALUES)[exits.rule]
    full = task.backbone.config.num_layers
    if field == "patience":  # P settled passes in a row end a run after P + 1 at the earliest
        values = tuple(value for value in values if value + 1 < full)
    served = []
    for value in sorted({getattr(exits, field), *values}):
        settings = dataclasses.replace(exits, **{field: value})
        several = f", {settings.patience} in a row" if field == "threshold" and settings.patience != 1 else ""
        name = f"{recipe}, {narrower}{exits.rule} {value:g}{several}"
        choice = DepthChoice(patience=settings.patience, threshold=settings.threshold)
        served.append((Candidate(name, shape, recipe, full, settings), choice))
    return PlannedFile(task, recipe, full, exits, tuple(served))
