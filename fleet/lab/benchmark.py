"""What a user wants to be benchmarked: builds, how each is run and measured, how sure the answer must be."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from specmine.mining.comparison.plan import PLANNED
from specmine.mining.regression.comparison import Rule
from specmine.model.errors import InputError
from specmine.model.units import parse_duration, parse_ratio

CALLS, OUTPUT = "{calls}", "{output}"
"""In a command: how many calls a run has to make, and the file for its durations, if not standard output."""
MEASURES = ("printed", "mined")
MOST_CALLS = 100_000
"""Durations of one function that are kept of a run."""
PLANNED_SHARE = 0.4
"""Of the tolerance: with half of it, 12 % of equal builds stayed undecided in simulation (``bench.fleet.lab``)."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LONGEST = 1 << 20
_SECONDS = ("timeout", "run_seconds", "restart", "call", "build_cost", "lease")
_RATIOS = ("level", "tolerance", "precision")
_COUNTS = ("warm_up", "calls", "lifetimes", "rebuilds", "pilot", "pilot_calls", "retries", "hosts", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedBuild:
    """One of the builds that are compared."""

    label: str
    command: str
    """What one run executes, as a shell would split it; no shell is involved."""
    recipe: str = ""
    """Shell commands that make it in an empty folder, in which ``command`` then runs; '': it is there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark; durations are seconds, None what a pilot finds out."""

    name: str
    builds: tuple[TestedBuild, ...]
    """The first is what the others are compared with."""
    measure: str = "printed"
    """printed: the program prints the durations of its calls; mined: as ``specmine mine`` does."""
    functions: tuple[str, ...] = ()
    """Globs; (): all."""
    summary: str = "median"
    level: float = 0.95
    tolerance: float = 0.02
    precision: float | None = None
    """Half-width of the interval that is planned for; None: ``PLANNED_SHARE`` of the tolerance."""
    warm_up: int | None = None
    """Calls at the start of each run that do not count."""
    calls: int | None = None
    lifetimes: int | None = None
    """Runs of each build."""
    rebuilds: int | None = None
    """How often a recipe makes each build."""
    restart: float | None = None
    call: float | None = None
    build_cost: float | None = None
    run_seconds: float = 20.0
    """How long a run is mined."""
    pilot: int = 6
    """Runs of each build in the pilot."""
    pilot_calls: int = 1000
    timeout: float = 600.0
    retries: int = 2
    lease: float = 60.0
    """After so long without a sign of its runner a run is taken again."""
    folder: str = ""
    """Where commands without a recipe run."""
    user: str = ""
    """Who runs them; '': who invoked the runner."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Labels of the hosts to run on."""
    hosts: int | None = None
    seed: int = 1
    """Of the random order."""

    @property
    def rule(self) -> Rule:
        """How builds are compared."""
        return Rule(summary=self.summary, level=self.level, tolerance=self.tolerance)

    @property
    def half_width(self) -> float:
        """The half-width that is planned for."""
        return self.precision if self.precision is not None else PLANNED_SHARE * self.tolerance

    @property
    def told_calls(self) -> bool:
        """Whether the programs are told how many calls to make."""
        return all(CALLS in each.command for each in self.builds)

    def build(self, label: str) -> TestedBuild:
        """Return the build of a label."""
        return next(each for each in self.builds if each.label == label)

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, builds by label."""
        values = asdict(self)
        values["builds"] = {
            each.label: {"command": each.command, **({"recipe": each.recipe} if each.recipe else {})}
            for each in self.builds
        }
        values["order"] = [each.label for each in self.builds]
        values["functions"] = list(self.functions)
        values["where"] = dict(self.where)
        return values


def read_benchmark(path: Path) -> dict[str, Any]:
    """Return what a YAML file says of a benchmark, not checked yet. Raises InputError if it cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise InputError(f"{path} is larger than 1 MiB")
        found = yaml.safe_load(text)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} holds no benchmark", remedy="write keys such as name, builds, run")
    return found


def benchmark_from(given: Mapping[str, Any]) -> Benchmark:
    """Return a checked benchmark.

    Parameters
    ----------
    given : mapping
        Fields of ``Benchmark``; ``builds`` by label, each a command, or a mapping with ``command`` or ``recipe``;
        ``run`` is the command of builds without one.

    Raises
    ------
    InputError
        With the key that is unknown, missing or wrong.
    """
    rest = dict(given)
    order, run = rest.pop("order", None), rest.pop("run", None)
    known = [each.name for each in fields(Benchmark)]
    for key in rest:
        if key not in known:
            raise InputError(f"a benchmark has no key {key!r}", remedy=f"known are {', '.join([*known, 'run'])}")
    name = rest.pop("name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name of a benchmark", remedy="use letters, digits, dots, hyphens, at most 64")
    values: dict[str, Any] = {"name": name, "builds": _builds(rest.pop("builds", None), run, order)}
    for key, value in rest.items():
        if value is not None:
            values[key] = _value(key, value)
    made = Benchmark(**values)
    _check(made)
    return made


def _builds(given: object, run: object, order: object) -> tuple[TestedBuild, ...]:
    if not isinstance(given, Mapping) or len(given) < 2:
        raise InputError("a benchmark has two builds or more", remedy="give each a label and a command or a recipe")
    found = []
    for label in order if isinstance(order, list) and set(order) == set(given) else given:
        one = given[label]
        parts = {"command": one} if isinstance(one, str) else one
        if not isinstance(parts, Mapping):
            raise InputError(f"builds.{label} is neither a command nor a mapping")
        for key in parts:
            if key not in ("command", "recipe"):
                raise InputError(f"builds.{label} has no key {key!r}", remedy="known are command, recipe")
        command, recipe = parts.get("command", run), parts.get("recipe", "")
        if not isinstance(label, str) or not label.strip() or not label.isprintable() or len(label) > 200:
            raise InputError(f"{label!r} is no label of a build")
        if not isinstance(command, str) or not command.strip():
            raise InputError(f"builds.{label} has no command", remedy="give it one, or one for all builds as run")
        if not isinstance(recipe, str):
            raise InputError(f"builds.{label}.recipe is no text")
        try:
            shlex.split(command)
        except ValueError as error:
            raise InputError(f"builds.{label}.command cannot be split: {error}") from error
        found.append(TestedBuild(label=label, command=command, recipe=recipe))
    return tuple(found)


def _value(key: str, value: Any) -> Any:
    try:
        if key in _SECONDS:
            return _seconds(value)
        if key in _RATIOS:
            return float(value) if isinstance(value, (int, float)) else parse_ratio(str(value))
        if key in _COUNTS:
            if isinstance(value, bool) or int(value) != value or value < 0:
                raise ValueError("not a count")
            return int(value)
        if key == "functions":
            return (value,) if isinstance(value, str) else tuple(map(str, value))
        if key == "where":
            return {str(name): str(label) for name, label in dict(value).items()}
        if not isinstance(value, str):
            raise TypeError("not a text")
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{key}: {value!r} cannot be used: {error}") from error
    return value


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else parse_duration(str(value)) * 1e-9


def _check(made: Benchmark) -> None:
    try:
        _ = made.rule
    except ValueError as error:
        raise InputError(str(error)) from error
    wrong = {
        "measure": made.measure not in MEASURES,
        "summary": made.summary not in PLANNED,
        "level": not 0.5 <= made.level < 1.0,
        "tolerance": not 0.0 < made.tolerance < 1.0,
        "precision": not 0.0 < made.half_width < 1.0,
        "calls": made.calls is not None and not 1 <= made.calls <= MOST_CALLS,
        "lifetimes": made.lifetimes is not None and made.lifetimes < 2,
        "rebuilds": made.rebuilds == 0 or ((made.rebuilds or 1) > 1 and not all(each.recipe for each in made.builds)),
        "pilot": made.pilot < 2,
        "pilot_calls": not 1 <= made.pilot_calls <= MOST_CALLS,
        "hosts": made.hosts == 0,
        "timeout": not 0.0 < made.timeout <= 7 * 86_400,
        "run_seconds": not 0.0 < made.run_seconds <= 86_400,
        "lease": not 2.0 <= made.lease <= 86_400,
        "retries": made.retries > 100,
    }
    for key, is_wrong in wrong.items():
        if is_wrong:
            raise InputError(f"{key}: {getattr(made, key)!r} cannot be used", remedy="see docs/lab.md")
    if made.measure == "mined" and any(OUTPUT in each.command for each in made.builds):
        raise InputError(f"{OUTPUT} is for printed durations; measure says mined")
