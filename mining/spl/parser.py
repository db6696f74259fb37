"""From text to formulas; what a grammar cannot check is checked here."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from lark import Token, Transformer, v_args
from lark.exceptions import VisitError

from specmine.mining.assertions.expression import ExpressionError, parse
from specmine.mining.regression.sample import SUMMARIES
from specmine.model.level import PROBABILITIES

from .grammar import SplError, tree_of
from .lexicon import SECONDS, SHARE, UNITS
from .mined import MinedAssertion, MinedLevel, NormalQuantile
from .summaries import is_summary, summary_names
from .syntax import (
    CPU,
    And,
    Comparison,
    Condition,
    Formula,
    Implies,
    Linear,
    Measure,
    Not,
    Or,
    Quantified,
    Specification,
    Statement,
    Subject,
)


def parse_specification(text: str) -> Specification:
    """Return the formulas of a file.

    Raises
    ------
    SplError
        Where the text stops making sense.
    """
    tree = tree_of(text)
    try:
        found: Specification = _Builder(text).transform(tree)
        return found
    except VisitError as error:
        if isinstance(error.orig_exc, SplError):
            raise error.orig_exc from None
        raise


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Turns the parser's tree into formulas, checking what a grammar cannot."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._lists: dict[str, tuple[str, ...]] = {}

    def _wrong(self, token: Token, message: str) -> SplError:
        return SplError(message, self._text, token.line or 1, token.column or 1)

    def start(self, *statements: Any) -> Specification:
        settings: dict[str, float | str] = {}
        builds: dict[str, str] = {}
        formulas: list[Statement] = []
        for each in statements:
            match each:
                case Statement():
                    formulas.append(each)
                case ("set", name, value):
                    settings[name] = value
                case ("build", name, value):
                    builds[name] = value
        return Specification(statements=tuple(formulas), builds=builds, settings=settings)

    def setting(self, name: Token, value: Token) -> tuple[str, str, float | str]:
        if name == "summary":
            if value not in SUMMARIES:
                raise self._wrong(value, f"{value} is none of {', '.join(SUMMARIES)}")
            return "set", "summary", str(value)
        if name not in ("level", "tolerance"):
            raise self._wrong(name, f"level, tolerance and summary can be set, not {name}")
        share = _share(value) if value.type in ("PERCENT", "NUMBER") else -1.0
        if not 0.0 <= share < 1.0 or (name == "level" and share < 0.5):
            raise self._wrong(value, f"{name} is a percentage, not {value}")
        return "set", str(name), share

    def alias(self, name: tuple[str, Token], build: tuple[str, Token]) -> tuple[str, str, str]:
        return "build", name[0], build[0]

    def listing(self, name: Token, items: tuple[str, ...]) -> None:
        self._lists[str(name)] = items

    def items(self, *names: tuple[str, Token]) -> tuple[str, ...]:
        return tuple(name for name, _ in names)

    @v_args(meta=True, inline=True)
    def named(self, meta: Any, name: Token | None, formula: Formula) -> Statement:
        start = name.end_pos if name is not None and name.end_pos is not None else meta.start_pos
        source = self._text[start : meta.end_pos].lstrip(" \t\r\n:")
        return Statement(formula=formula, name=str(name or ""), line=meta.line, source=source)

    def implies(self, condition: Formula, conclusion: Formula) -> Formula:
        return Implies(condition=condition, conclusion=conclusion)

    def disjunction(self, *parts: Formula) -> Formula:
        return Or(parts=parts)

    def conjunction(self, *parts: Formula) -> Formula:
        return And(parts=parts)

    def negated(self, part: Formula) -> Formula:
        return Not(part=part)

    def quantified(self, which: Token, variable: Token, items: Any, body: Formula) -> Formula:
        if isinstance(items, Token):
            if str(items) not in self._lists:
                raise self._wrong(items, f"there is no list {items}")
            items = self._lists[str(items)]
        return Quantified(every=which.type == "FORALL", variable=str(variable), items=items, body=body)

    def within(self, share: Token) -> tuple[str, float]:
        return "tolerance", _share(share)

    def at(self, share: Token) -> tuple[str, float]:
        level = _share(share)
        if not 0.5 <= level < 1.0:
            raise self._wrong(share, f"a level is at least 50% and below 100%, not {share}")
        return "level", level

    def comparison(self, left: Any, relation: Any, right: Any, *options: tuple[str, float]) -> Formula:
        place = next(each for each in (*left[1], *right[1]))
        sides = [_summed(each) for each in (left[0], right[0])]
        dimensions = {d for d in (*sides[0][1], *sides[1][1]) if d is not None}
        # a bare number goes with shares; with durations only 0 may stand without a unit
        if len(dimensions) > 1:
            if dimensions == {SECONDS, SHARE} and _bare(left[0], right[0]):
                raise self._wrong(place, "a duration needs a unit (ns, us, ms, s)")
            raise self._wrong(place, f"{' and '.join(sorted(dimensions))} cannot be compared")
        dimension = dimensions.pop() if dimensions else SHARE
        if not (sides[0][0].terms or sides[1][0].terms):
            raise self._wrong(place, "two constants need no measuring")
        given = dict(options)
        found = [Linear(terms=each[0].terms, constant=each[0].constant, dimension=dimension) for each in sides]
        return Comparison(
            left=found[0],
            relation="=" if relation == "==" else str(relation),
            right=found[1],
            tolerance=given.get("tolerance"),
            level=given.get("level"),
        )

    def side(self, *parts: Any) -> Any:
        terms, tokens, sign = [], [], 1.0
        for each in parts:
            if isinstance(each, Token):
                sign = -1.0 if each == "-" else 1.0
                continue
            terms.append((sign * each[0], each[1], each[2]))
            tokens.append(each[3])
            sign = 1.0
        return terms, tokens

    def scaled(self, factor: Token, measure: Any) -> Any:
        return float(factor), measure[1], measure[2], measure[3]

    def scaled_behind(self, measure: Any, factor: Token) -> Any:
        return float(factor), measure[1], measure[2], measure[3]

    def seconds(self, value: Token, unit: Token) -> Any:
        return _seconds(value, unit), None, SECONDS, value

    def rate(self, value: Token, unit: Token) -> Any:
        if unit != "s":
            raise self._wrong(unit, "a rate is per s")
        return float(value), None, "rate", value

    def plain(self, value: Token) -> Any:
        return float(value), None, SHARE, value

    def share_constant(self, value: Token) -> Any:
        return _share(value), None, SHARE, value

    def measure(self, subject: Any) -> Any:
        return 1.0, Measure(subject=subject[0]), SECONDS, subject[1]

    def summary(self, name: Token, subject: Any, condition: Condition | None = None) -> Any:
        if name == CPU:
            subject = self.on_cpu(name, subject)
        else:
            self._summary_name(name)
        if name == "rate" and subject[0].cpu:
            raise self._wrong(name, "a rate is of calls, not of their time on CPU")
        summary = None if name in ("summary", CPU) else str(name)
        found = Measure(subject=_under(subject[0], condition), summary=summary)
        return 1.0, found, found.dimension, name

    def share(
        self, subject: Any, relation: Token, value: Token, unit: Token, condition: Condition | None = None
    ) -> Any:
        if relation not in (">", "<="):
            raise self._wrong(relation, f"a share is of calls > or <= a duration, not {relation}")
        found = Measure(
            subject=_under(subject[0], condition), summary="share", above=relation == ">", bound=_seconds(value, unit)
        )
        return 1.0, found, SHARE, value

    def mined(self, subject: Any, borders: tuple[float, ...], *rest: Any) -> Formula:
        condition = rest[0] if isinstance(rest[0], Condition) else None
        numbers = [each for each in rest if isinstance(each, Token)]
        *shares, calls = numbers
        if len(shares) != len(borders) + 1:
            raise self._wrong(shares[0], f"{len(borders)} borders cut {len(borders) + 1} classes, not {len(shares)}")
        if list(borders) != sorted(set(borders)):
            raise self._wrong(shares[0], "borders ascend")
        values = tuple(map(float, shares))
        if abs(sum(values) - 1.0) > 1e-6:
            raise self._wrong(shares[0], f"shares add up to 1, not {sum(values):g}")
        if not calls.isdigit() or int(calls) == 0:
            raise self._wrong(calls, f"a number of calls, not {calls}")
        return MinedAssertion(subject=_under(subject[0], condition), borders=borders, shares=values, calls=int(calls))

    def levels(self, subject: Any, *rest: Any) -> Formula:
        condition = next((each for each in rest if isinstance(each, Condition)), None)
        quantiles = tuple(each for each in rest if isinstance(each, NormalQuantile))
        bounds = [each for each in rest if isinstance(each, tuple)]
        numbers = [each for each in rest if isinstance(each, Token)]
        limits: dict[str, float] = dict(bounds)
        if len(limits) < len(bounds):
            raise self._wrong(numbers[0], "two bounds are > one duration and <= another")
        if ">" in limits and limits.get("<=", float("inf")) <= limits[">"]:
            raise self._wrong(numbers[0], "no duration lies between these bounds")
        for each in numbers:
            if not each.isdigit() or int(each) == 0:
                raise self._wrong(each, f"a whole number, not {each}")
        calls, windows, lifetimes = map(int, numbers)
        return MinedLevel(
            subject=_under(subject[0], condition),
            quantiles=quantiles,
            calls=calls,
            windows=windows,
            lifetimes=lifetimes,
            above=limits.get(">"),
            upto=limits.get("<="),
        )

    def bound(self, relation: Token, value: Token, unit: Token) -> tuple[str, float]:
        if relation not in (">", "<="):
            raise self._wrong(relation, f"calls take > or <= a duration, not {relation}")
        return str(relation), _seconds(value, unit)

    def normal(self, name: Token, *numbers: Token) -> NormalQuantile:
        if str(name) not in PROBABILITIES:
            raise self._wrong(name, f"a level has {', '.join(PROBABILITIES)}, not {name}")
        value, low, high = (_seconds(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True))
        if not low <= value <= high:
            raise self._wrong(numbers[0], "a quantile lies in its range")
        return NormalQuantile(name=str(name), seconds=value, low=low, high=high)

    def borders(self, *numbers: Token) -> tuple[float, ...]:
        return tuple(_seconds(value, unit) for value, unit in zip(numbers[::2], numbers[1::2], strict=True))

    def condition(self, text: Token) -> Condition:
        words = text.strip()
        try:
            return Condition(edges=parse(words))
        except ExpressionError as error:
            if "->" in words:
                raise self._wrong(text, str(error)) from error
        return Condition(on_path=words[1:-1].replace("``", "`") if words.startswith("`") else words)

    def subject(self, name: tuple[str, Token], build: Any = None, host: Any = None) -> Any:
        return Subject(function=name[0], build=build, host=host), name[1]

    def on_cpu(self, name: Token, subject: Any) -> Any:
        if name != CPU or subject[0].cpu:
            raise self._wrong(name, f"{name} is no time of calls: of a function, or {CPU}(function)")
        return replace(subject[0], cpu=True), subject[1]

    def build(self, name: Any) -> str:
        return str(name) if isinstance(name, Token) else str(name[0])

    def name(self, token: Token) -> tuple[str, Token]:
        text = token[1:-1].replace("``", "`") if token.type == "QUOTED" else str(token)
        return text, token

    def _summary_name(self, name: Token) -> None:
        if not is_summary(str(name)) and name not in ("rate", "summary"):
            raise self._wrong(name, f"{name} is none of {summary_names()}, rate, share")


def _summed(terms: list[tuple[float, Measure | None, str]]) -> tuple[Linear, list[str | None]]:
    """Return the sum, and what its parts measure; a bare 0 fits all."""
    measures = tuple((factor, measure) for factor, measure, _ in terms if measure is not None)
    constant = sum(value for value, measure, _ in terms if measure is None)
    dimensions = [None if measure is None and value == 0.0 else kind for value, measure, kind in terms]
    return Linear(terms=measures, constant=constant), dimensions


def _bare(*sides: list[tuple[float, Measure | None, str]]) -> bool:
    return any(measure is None and kind == SHARE for side in sides for _, measure, kind in side)


def _under(subject: Subject, condition: Condition | None) -> Subject:
    return replace(subject, condition=condition)


def _seconds(value: Token, unit: Token) -> float:
    return float(Decimal(str(value)).scaleb(UNITS[str(unit)]))


def _share(value: Token) -> float:
    text = str(value)
    return float(Decimal(text.rstrip("% ")).scaleb(-2)) if text.endswith("%") else float(text)
