"""What formulas are made of. Every node has a text that parses to an equal node.

Bulej et al., Unit Testing Performance with Stochastic Performance Logic, definition 3.4, with linear
transformations only, and with names where the paper has workload parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specmine.mining.assertions.expression import Formula as EdgeFormula
from specmine.mining.assertions.expression import render as render_edges

from .lexicon import RATE, SECONDS, SHARE, duration, number, percent, quantity, quoted

CPU = "cpu"
"""``cpu(f)``: the time on CPU of the calls of f."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which calls are meant: those whose path fulfils a formula over call edges, or holds a function."""

    edges: EdgeFormula = ((),)
    on_path: str | None = None

    def __str__(self) -> str:
        """Return the text behind ``|``."""
        return quoted(self.on_path) if self.on_path is not None else render_edges(self.edges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Calls of a function: in a build, on a host, under a condition; None means all or the default."""

    function: str
    build: str | None = None
    host: str | None = None
    condition: Condition | None = None
    cpu: bool = False
    """True: of each call the time on CPU, without what it waited or was blocked."""

    def __str__(self) -> str:
        """Return the text without the condition, which is written elsewhere."""
        named = "@".join(quoted(each) for each in (self.function, self.build, self.host) if each is not None)
        return f"{CPU}({named})" if self.cpu else named

    @property
    def condition_text(self) -> str:
        """The text of the condition, '' if there is none."""
        return f" | {self.condition}" if self.condition is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number that each lifetime has: a summary of durations, a call rate, or a share of calls."""

    subject: Subject
    summary: str | None = None
    """None: the default; ``rate``: calls per second; ``share``: of calls beyond a bound."""
    above: bool = True
    bound: float = 0.0
    """Of a share, in s: calls above it, or at most it."""

    @property
    def dimension(self) -> str:
        """What it measures."""
        return {"share": SHARE, "rate": RATE}.get(self.summary or "", SECONDS)

    def __str__(self) -> str:
        """Return the text."""
        subject = self.subject
        if self.summary == "share":
            return f"share({subject}, {'>' if self.above else '<='} {duration(self.bound)}{subject.condition_text})"
        if self.summary is None and subject.condition is None:
            return str(subject)
        return f"{self.summary or 'summary'}({subject}{subject.condition_text})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A sum of multiples of measures and a constant: the paper's transformations, applied before the sum."""

    terms: tuple[tuple[float, Measure], ...] = ()
    constant: float = 0.0
    dimension: str = SECONDS

    def __str__(self) -> str:
        """Return the text."""
        parts = [(factor, f"{number(abs(factor))} * {each}" if abs(factor) != 1.0 else str(each))
                 for factor, each in self.terms]  # fmt: skip
        if self.constant or not parts:
            parts.append((self.constant, quantity(abs(self.constant), self.dimension)))
        first, *rest = parts
        return (
            ("-" if first[0] < 0 else "")
            + first[1]
            + "".join(f" {'-' if factor < 0 else '+'} {text}" for factor, text in rest)
        )


class Formula:
    """Something that holds, is violated, or is not known."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Formula):
    """A relation between two sums; ``tolerance`` is the sensitivity limit: what is smaller does not matter."""

    left: Linear
    relation: str
    right: Linear
    tolerance: float | None = None
    level: float | None = None

    def __str__(self) -> str:
        """Return the text."""
        within = f" within {percent(self.tolerance)}" if self.tolerance is not None else ""
        at = f" at {percent(self.level)}" if self.level is not None else ""
        return f"{self.left} {self.relation} {self.right}{within}{at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(Formula):
    """The contrary."""

    part: Formula

    def __str__(self) -> str:
        """Return the text."""
        return f"not {_inner(self.part)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class And(Formula):
    """All of them."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        """Return the text."""
        return " and ".join(map(_inner, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Or(Formula):
    """Any of them."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        """Return the text."""
        return " or ".join(map(_inner, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Implies(Formula):
    """If the one holds, the other does too."""

    condition: Formula
    conclusion: Formula

    def __str__(self) -> str:
        """Return the text."""
        return f"{_inner(self.condition)} implies {_inner(self.conclusion)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantified(Formula):
    """For all, or for some, names of a list."""

    every: bool
    variable: str
    items: tuple[str, ...]
    body: Formula

    def __str__(self) -> str:
        """Return the text."""
        names = ", ".join(map(quoted, self.items))
        return f"{'forall' if self.every else 'exists'} {self.variable} in {{{names}}}: {self.body}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A formula of a file, with its name if it has one."""

    formula: Formula
    name: str = ""
    line: int = field(default=1, compare=False)
    source: str = field(default="", compare=False)
    """The formula as it was written, '' if it never was."""

    def __str__(self) -> str:
        """Return the text."""
        return f"{self.name}: {self.formula}" if self.name else str(self.formula)


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """A file of formulas."""

    statements: tuple[Statement, ...]
    builds: dict[str, str] = field(default_factory=dict)
    """Alias to build."""
    settings: dict[str, float | str] = field(default_factory=dict)
    """level, tolerance, summary."""
    since_ns: dict[str, int] = field(default_factory=dict)
    """Function to when the windows began that its statements were mined from, UTC; none of what people wrote."""
    lifetimes: frozenset[str] = frozenset()
    """Those that were observed for it."""


def _inner(formula: Formula) -> str:
    return f"({formula})" if isinstance(formula, And | Or | Implies | Quantified) else str(formula)
