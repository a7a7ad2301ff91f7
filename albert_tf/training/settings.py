"""Settings of a run: a frozen dataclass whose fields are the command's flags and the saved run.json."""

import argparse
import dataclasses
import json
import math
from pathlib import Path
from typing import Any, Self, cast

from albert_tf.errors import InputError
from albert_tf.files import read_json

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
# One device, all of this machine, several workers, a TPU: albert_tf.training.distribution.
STRATEGIES = ("one", "mirrored", "multiworker", "tpu")


def flag(default: Any, help_text: str, **extra: Any) -> Any:
    """A field with its help; `flag` names the option otherwise than the field, `choices` lists what it takes."""
    return dataclasses.field(default=default, metadata={"help": help_text, **extra})


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of `RunConfig` and `PretrainConfig`.

    Attributes:
        out: the run folder to create.

    Raises:
        InputError: a value that its flag does not offer.
    """

    out: str = flag(dataclasses.MISSING, "run folder to create")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, choices = getattr(self, field.name), field.metadata.get("choices")
            if choices and value not in choices:
                raise InputError(f"{self.flag_name(field.name)}: expected one of {', '.join(choices)}; got {value!r}")

    def check_range(
        self, name: str, low: float, high: float = math.inf, *, open_low: bool = False, closed_high: bool = False
    ) -> None:
        """Raises InputError unless the field is None or in [low, high): without `low` with `open_low`, with `high` with
        `closed_high`."""
        value = getattr(self, name)
        above = value is None or (value > low if open_low else value >= low)
        if above and (value is None or value < high or (closed_high and value == high)):
            return
        wanted = f"{'above' if open_low else 'at least'} {low}"
        if high < math.inf:
            wanted += f" and {'at most' if closed_high else 'below'} {high}"
        kind = "a finite number" if value in (math.inf, -math.inf) else "a number"
        raise InputError(f"{self.flag_name(name)}: expected {kind} {wanted}, got {value}")

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False) + "\n"

    def differences(self, other: Self) -> list[str]:
        """The flags in which two runs differ, with both values."""
        return [
            f"{self.flag_name(field.name)} {getattr(other, field.name)} → {getattr(self, field.name)}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]

    @classmethod
    def flag_name(cls, field_name: str) -> str:
        """The command-line option of a field."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        return str(fields[field_name].metadata.get("flag", "--" + field_name.replace("_", "-")))

    @classmethod
    def flag_help(cls, field_name: str) -> str:
        """What a field's option does."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        return str(fields[field_name].metadata["help"])

    @classmethod
    def add_flags(cls, parser: argparse.ArgumentParser) -> None:
        """One option for each field, with its type, choices and default.

        What is not given is not in the parsed flags: `from_flags` can tell a default from the same value given.
        """
        for field in dataclasses.fields(cls):
            name = cls.flag_name(field.name)
            kwargs: dict[str, Any] = {
                "dest": field.name,
                "help": cls.flag_help(field.name),
                "default": argparse.SUPPRESS,
            }
            if field.type is bool:
                parser.add_argument(name, action="store_true", **kwargs)
                continue
            required = field.default is dataclasses.MISSING
            if not required and field.default is not None:
                kwargs["help"] += f" (default {field.default})"
            kinds: dict[Any, Any] = {int: int, float: float, int | None: int, float | None: float}
            kind = kinds.get(field.type, str)
            choices = field.metadata.get("choices")
            parser.add_argument(
                name,
                type=kind,
                choices=choices,
                required=required,
                metavar=None if choices else ("N" if kind is not str else "VALUE"),
                **kwargs,
            )

    @classmethod
    def from_flags(cls, args: argparse.Namespace) -> Self:
        """The settings that parsed flags describe."""
        names = [field.name for field in dataclasses.fields(cls) if hasattr(args, field.name)]
        return cls.of(**{name: getattr(args, name) for name in names})

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The settings with these fields; the others have their defaults."""
        return cls(**given)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads a saved run.json.

        Raises:
            InputError: no such file, or one of another version or command.
        """
        try:
            return cast(Self, cls(**read_json(path)))
        except TypeError as error:
            raise InputError(f"{path}: not a saved run of this command and version ({error})") from error
