"""The grammar of formulas: the tree of a text, and the position of a mistake."""

from __future__ import annotations

from functools import lru_cache

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from .lexicon import NAME

GRAMMAR = (
    r"""
start: (_statement ";"?)*
_statement: setting | alias | listing | named
setting: "set" NAME "="? (PERCENT | NUMBER | NAME)
alias: "build" name "=" name
listing: "list" NAME "=" items
named: [NAME ":"] formula

?formula: disjunction
    | disjunction ("implies" | "=>") formula -> implies
    | quantified
?disjunction: conjunction ("or" conjunction)*
?conjunction: negation ("and" negation)*
?negation: "not" negation -> negated
    | "(" formula ")"
    | comparison
    | mined
    | levels
quantified: (FORALL | EXISTS) NAME "in" (items | NAME) ":" formula
items: "{" name ("," name)* "}" | "[" name ("," name)* "]"

comparison: side (RELATION | EQ) side option*
option: "within" PERCENT -> within
    | "at" PERCENT -> at
side: SIGN? term (SIGN term)*
?term: NUMBER "*" measure -> scaled
    | measure "*" NUMBER -> scaled_behind
    | measure
    | constant
constant: NUMBER UNIT -> seconds
    | NUMBER "/" UNIT -> rate
    | NUMBER -> plain
    | PERCENT -> share_constant
measure: subject
    | NAME "(" _times condition? ")" -> summary
    | "share" "(" _times "," RELATION NUMBER UNIT condition? ")" -> share
mined: "shares" "(" _times "," borders condition? ")" "~" "[" NUMBER ("," NUMBER)* "]" "of" NUMBER
levels: "levels" "(" _times bound? bound? condition? ")" "~" "[" normal ("," normal)* "]" "of" _basis
_basis: NUMBER ("calls" | "call") "in" NUMBER ("windows" | "window") "of" NUMBER ("lifetimes" | "lifetime")
bound: "," RELATION NUMBER UNIT
normal: NAME NUMBER UNIT "in" "[" NUMBER UNIT "," NUMBER UNIT "]"
_times: subject | on_cpu
on_cpu: NAME "(" subject ")"
borders: "none" | NUMBER UNIT ("," NUMBER UNIT)*
condition: "|" CONDITION
subject: name ["@" build ["@" build]]
build: name | NUMBER
name: NAME | QUOTED

FORALL: "forall"
EXISTS: "exists"
EQ: "="
RELATION: "<=" | ">=" | "<" | ">" | "==" | "!="
SIGN: "+" | "-"
UNIT.2: /(ns|us|\u00b5s|\u03bcs|ms|s)(?![A-Za-z0-9_.$~:@(])/
PERCENT: /\d+(\.\d+)?([eE][+-]?\d+)?\s*%/
NUMBER: /\d+(\.\d+)?([eE][+-]?\d+)?/
QUOTED: /`([^`]|``)+`/
CONDITION: /(`([^`]|``)*`|[^`()|])+/
NAME: /"""
    + NAME.replace("/", r"\/")
    + r"""/
COMMENT: /#[^\n]*/
%ignore COMMENT
%ignore /\s+/
"""
)

_READABLE = {
    "NAME": "a name",
    "NUMBER": "a number",
    "PERCENT": "a percentage",
    "RELATION": "<=, <, >=, > or =",
    "UNIT": "a unit (ns, us, ms, s)",
    "SIGN": "+ or -",
    "QUOTED": "`a name`",
    "CONDITION": "a condition on the call path",
    "LPAR": "(", "RPAR": ")", "LBRACE": "{", "RBRACE": "}", "LSQB": "[", "RSQB": "]", "COLON": ":", "COMMA": ",",
    "EQ": "=", "TILDE": "~", "VBAR": "|", "AT": "at", "__ANON_0": "=>", "__ANON_1": "@", "STAR": "*", "SLASH": "/",
    "SEMICOLON": ";", "$END": "the end",
}  # fmt: skip


class SplError(ValueError):
    """A text that is no formula: what is wrong, where, and the line with a mark below it."""

    def __init__(self, message: str, text: str, line: int, column: int) -> None:
        """Keep the place; lines and columns begin with 1."""
        super().__init__(f"line {line}, column {column}: {message}")
        self.message, self.line, self.column = message, line, column
        lines = text.splitlines() or [""]
        shown = lines[min(line, len(lines)) - 1].replace("\t", " ")
        self.picture = f"{shown}\n{' ' * (column - 1)}^"


def tree_of(text: str) -> Tree[Token]:
    """Return the tree of a text; SplError where it stops making sense."""
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise _explained(error, text) from error


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _explained(error: UnexpectedInput, text: str) -> SplError:
    lines = text.splitlines() or [""]
    match error:
        case UnexpectedToken(token=token) if token.type == "$END":
            line, column, what = len(lines), len(lines[-1]) + 1, "the text ends too early"
        case UnexpectedToken(token=token):
            line, column, what = error.line, error.column, f"{str(token)!r} is not expected here"
        case UnexpectedCharacters():
            line, column, what = error.line, error.column, f"{error.char!r} is not expected here"
        case UnexpectedEOF():
            line, column, what = len(lines), len(lines[-1]) + 1, "the text ends too early"
        case _:
            line, column, what = 1, 1, "not understood"
    wanted = getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None)
    names = sorted({_READABLE.get(str(each), str(each).lower()) for each in wanted or ()})
    hint = f"; possible: {', '.join(names)}" if 0 < len(names) <= 8 else ""
    return SplError(what + hint, text, max(line, 1), max(column, 1))
