"""Boolean expressions over call edges, or over what happened inside calls: their text, and what fulfils them.

``expr := conj (' or ' conj)*; conj := lit (' and ' lit)*; lit := ['not '] atom;``
``atom := name'->'name | 'calls 'name | 'blocked' [' under 'name]``.
A formula is the same as a list (or) of lists (and); ``true`` is one empty list, ``false`` no list at all. An edge is on
the call path. The other atoms speak of the call itself. ``calls name``: it reached this callee. ``blocked``: it was so
for much of its time, ``under name``: within this callee.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from specmine.mining.inside.callers import BLOCKED_CALL, THIS_CALL
from specmine.model.call_path import Distinguished, Frame

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.@$:~]*")
_WORDS = frozenset({"and", "or", "not", "true", "false"})
_CALLS, _BLOCKED, _UNDER = "calls", "blocked", "under"
_INSIDE = {THIS_CALL.name: _CALLS, BLOCKED_CALL.name: _BLOCKED}
"""What literals say whose caller is the call itself."""
_TOKEN = re.compile(r"\s*(?:(->)|(`(?:[^`]|``)*`)|([A-Za-z_][A-Za-z0-9_.@$:~]*))")


@dataclass(frozen=True, slots=True, order=True)
class Literal:
    """A call edge that must be, or must not be, on the path; names as they are shown."""

    caller: str
    """The name of ``THIS_CALL`` for the call itself: it reached the callee; of ``BLOCKED_CALL``: it was blocked."""
    callee: str
    """'': it was blocked anywhere."""
    present: bool = True

    @property
    def inside(self) -> bool:
        """It speaks of what happened inside the call, not of its path."""
        return self.caller in _INSIDE

    @property
    def blocked(self) -> bool:
        """It says that the call was blocked."""
        return self.caller == BLOCKED_CALL.name


Formula = tuple[tuple[Literal, ...], ...]
"""Any of these conjunctions of literals."""

NamedEdge = tuple[str, str]
"""Caller and callee as they are shown."""


class LiteralRecord(TypedDict):
    """A literal as plain values, as in JSON."""

    caller: str
    callee: str
    present: bool
    what: NotRequired[str]
    """``calls``: the call itself reached the callee; ``blocked``: it was blocked in it, or anywhere."""


class ExpressionError(ValueError):
    """A text that is not an expression; the message names the place."""


def shared_names(paths: Iterable[Distinguished]) -> frozenset[str]:
    """Return the names that frames of different modules share; these are shown with their module."""
    module: dict[str, str] = {}
    return frozenset(
        frame.name
        for path in paths
        for frame in path.frames
        if module.setdefault(frame.name, frame.module) != frame.module
    )


def shown(frame: Frame, shared: Collection[str]) -> str:
    """Return the name of a frame in expressions; its module is added only if two modules share the name."""
    return f"{frame.name} ({frame.module})" if frame.name in shared else frame.name


def named_edges(path: Distinguished, shared: Collection[str]) -> frozenset[NamedEdge]:
    """Return the edges of a path by the names that expressions use."""
    return frozenset((shown(a, shared), shown(b, shared)) for a, b in path.edges())


def is_inside(formula: Formula) -> bool:
    """Return whether a formula speaks of what happened inside calls."""
    return any(lit.inside for conj in formula for lit in conj)


def callees_in(formula: Formula) -> frozenset[str]:
    """Return the callees of which a formula says whether calls reached them, or were blocked in them."""
    return frozenset(lit.callee for conj in formula for lit in conj if lit.inside and lit.callee)


def asks_blocked(formula: Formula) -> bool:
    """Return whether a formula says of calls that they were blocked."""
    return any(lit.blocked for conj in formula for lit in conj)


def evaluate(formula: Formula, path_edges: Collection[NamedEdge]) -> bool:
    """Return whether a path with these edges fulfils the formula."""
    return any(all(((lit.caller, lit.callee) in path_edges) == lit.present for lit in conj) for conj in formula)


def render(formula: Formula) -> str:
    """Return the text of a formula."""
    if not formula:
        return "false"
    if any(not conj for conj in formula):
        return "true"
    return " or ".join(" and ".join(_literal(lit) for lit in conj) for conj in formula)


def parse(text: str) -> Formula:
    """Return the formula of a text; ExpressionError if it is none. Inverse of ``render``."""
    tokens = _tokens(text)
    if tokens == ["true"]:
        return ((),)
    if tokens == ["false"]:
        return ()
    conjunctions: list[tuple[Literal, ...]] = []
    literals: list[Literal] = []
    position = 0
    while True:
        present = True
        if tokens[position : position + 1] == ["not"]:
            present, position = False, position + 1
        atom = tokens[position : position + 3]
        if len(atom) == 3 and atom[1] == "->" and _is_name(atom[0]) and _is_name(atom[2]):
            literals.append(Literal(_unquoted(atom[0]), _unquoted(atom[2]), present))
            position += 3
        elif len(atom) > 1 and atom[0] == _CALLS and _is_name(atom[1]):
            literals.append(Literal(THIS_CALL.name, _unquoted(atom[1]), present))
            position += 2
        elif len(atom) > 2 and atom[:2] == [_BLOCKED, _UNDER] and _is_name(atom[2]):
            literals.append(Literal(BLOCKED_CALL.name, _unquoted(atom[2]), present))
            position += 3
        elif atom[:1] == [_BLOCKED]:
            literals.append(Literal(BLOCKED_CALL.name, "", present))
            position += 1
        else:
            raise ExpressionError(
                f"caller->callee, calls callee or blocked expected at word {position + 1} of {text!r}"
            )
        if position == len(tokens):
            return (*conjunctions, tuple(literals))
        if tokens[position] == "or":
            conjunctions.append(tuple(literals))
            literals = []
        elif tokens[position] != "and":
            raise ExpressionError(f"'and' or 'or' expected at word {position + 1} of {text!r}")
        position += 1


def to_records(formula: Formula) -> list[list[LiteralRecord]]:
    """Return the formula as plain lists, as in JSON."""
    return [[_record(lit) for lit in conj] for conj in formula]


def from_records(records: Iterable[Iterable[LiteralRecord]]) -> Formula:
    """Return the formula of plain lists."""
    return tuple(tuple(_of_record(record) for record in conj) for conj in records)


def _record(literal: Literal) -> LiteralRecord:
    what = _INSIDE.get(literal.caller)
    if what is None:
        return LiteralRecord(caller=literal.caller, callee=literal.callee, present=literal.present)
    return LiteralRecord(caller="", callee=literal.callee, present=literal.present, what=what)


def _of_record(record: LiteralRecord) -> Literal:
    caller = BLOCKED_CALL.name if record.get("what") == _BLOCKED else record["caller"]
    return Literal(caller, record["callee"], record["present"])


def _literal(literal: Literal) -> str:
    atom = _atom(literal)
    return atom if literal.present else f"not {atom}"


def _atom(literal: Literal) -> str:
    if literal.blocked:
        return f"{_BLOCKED} {_UNDER} {_quoted(literal.callee)}" if literal.callee else _BLOCKED
    callee = _quoted(literal.callee)
    return f"{_CALLS} {callee}" if literal.inside else f"{_quoted(literal.caller)}->{callee}"


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name) and name not in _WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def _unquoted(token: str) -> str:
    return token[1:-1].replace("``", "`") if token.startswith("`") else token


def _is_name(token: str) -> bool:
    return token != "->" and token not in _WORDS


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if not match:
            raise ExpressionError(f"not understood from {text[position:].strip()!r}")
        tokens.append(match.group().strip() if match.group(2) is None else match.group(2))
        position = match.end()
    return tokens
