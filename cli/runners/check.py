"""What ``specmine check`` does: formulas read, evaluated on what was seen, written."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from specmine.analysis.check.data import DocumentData, LifetimeData
from specmine.analysis.documents import document_in, is_store
from specmine.cli.base.exit_codes import FINE, NO_DATA, VIOLATED
from specmine.cli.base.output import OutputFile, emit, json_text, width
from specmine.cli.base.sources import read_document
from specmine.cli.text.junit import junit
from specmine.mining.assertions.verification import Verdict
from specmine.mining.spl.data import Data
from specmine.mining.spl.evaluation import Node, Rules, evaluate
from specmine.mining.spl.from_assertions import statements_of
from specmine.mining.spl.grammar import SplError
from specmine.mining.spl.parser import parse_specification
from specmine.mining.spl.syntax import Specification, Statement
from specmine.model.errors import InputError
from specmine.model.text import escaped, plural

SCHEMA = "specmine.check/1"
LIVE = "live"
_CODES = {Verdict.VIOLATED: VIOLATED, Verdict.UNKNOWN: NO_DATA, Verdict.HOLDS: FINE}


def checked(
    spec: Path | None,
    texts: Sequence[str],
    against: str,
    *,
    builds: Mapping[str, str | None],
    rules: Mapping[str, Any],
    interpretation: str,
    junit_file: Path | None,
    skip_bad: bool,
    output: Path | None,
    socket: Path | None,
    form: str,
) -> int:
    """Check, write the result, and return the exit code."""
    specification = _specification(spec, texts)
    given = {name: value for name, value in rules.items() if value is not None}
    how = _rules({**given, **specification.settings}, interpretation)
    named = {name: label for name, label in builds.items() if label is not None}
    data = _data(against, {**specification.builds, **named}, skip_bad, socket)
    nodes = [evaluate(statement.formula, data, how) for statement in specification.statements]
    document = document_of(specification.statements, nodes, against, how)
    if junit_file is not None:
        with OutputFile(junit_file) as file:
            file.write(junit(document))
    written = json_text(document) if form == "json" else text(document, width())
    if output is None:
        emit(written)
    else:
        with OutputFile(output) as file:
            file.write(written)
    return exit_code(node.verdict for node in nodes)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """Return 1 if any is violated, else 3 if any is unknown, or there is none, else 0."""
    found = set(verdicts)
    worst = next((each for each in (Verdict.VIOLATED, Verdict.UNKNOWN) if each in found), None)
    return _CODES[worst or (Verdict.HOLDS if found else Verdict.UNKNOWN)]


def document_of(statements: Sequence[Statement], nodes: Sequence[Node], against: str, rules: Rules) -> dict[str, Any]:
    """Return the result as JSON values."""
    verdicts = [node.verdict for node in nodes]
    return {
        "schema": SCHEMA,
        "against": against,
        "interpretation": rules.interpretation,
        "level": rules.level,
        "verdict": {VIOLATED: "violated", NO_DATA: "unknown", FINE: "holds"}[exit_code(verdicts)],
        "counts": {each.value: verdicts.count(each) for each in Verdict},
        "formulas": [
            {
                "name": statement.name or None,
                "text": statement.source or node.text,
                "verdict": node.verdict.value,
                "evidence": {
                    **_rounded(node.evidence),
                    **({"parts": [_rounded(part.as_json()) for part in node.parts]} if node.parts else {}),
                },
            }
            for statement, node in zip(statements, nodes, strict=True)
        ],
    }


def text(document: Mapping[str, Any], columns: int) -> str:
    """Return the result for people: each formula with its verdict, and why below it."""
    lines: list[str] = []
    for each in document["formulas"]:
        name = f"{escaped(each['name'])}: " if each["name"] else ""
        shown = f"{each['verdict'].upper():8}  {name}{escaped(' '.join(each['text'].split()))}"
        lines += textwrap.wrap(shown, columns, subsequent_indent=" " * 12, break_on_hyphens=False)
        lines += _why(each["evidence"], columns, 12)
    counted = ", ".join(f"{number} {name}" for name, number in document["counts"].items() if number)
    lines += ["", f"{plural(len(document['formulas']), 'formula')}: {counted or 'none'}."]
    return "\n".join(lines).lstrip("\n") + "\n"


def _why(evidence: Mapping[str, Any], columns: int, indent: int) -> list[str]:
    lines = []
    said = _sentence(evidence)
    if said:
        margin = " " * indent
        lines += textwrap.wrap(said, columns, initial_indent=margin, subsequent_indent=margin)
    for part in evidence.get("parts", ()):
        margin = " " * indent
        lines += textwrap.wrap(
            f"{part['verdict']}: {escaped(part['text'])}",
            columns,
            initial_indent=margin,
            subsequent_indent=margin + "  ",
            break_on_hyphens=False,
        )
        lines += _why({**part.get("evidence", {}), "parts": part.get("parts", ())}, columns, indent + 2)
    return lines


def _sentence(evidence: Mapping[str, Any]) -> str:
    if "reason" in evidence:
        return escaped(str(evidence["reason"]))
    of = " and ".join(str(each) for each in evidence.get("lifetimes", ()))
    tail = f" over {of} lifetimes" if of else ""
    if "shares" in evidence:
        shares = ", ".join(f"{100 * each:.3g} %" for each in evidence["shares"])
        return f"classes hold {shares} of {evidence['calls']} calls (p {evidence['p_value']:.2g})"
    name = next((each for each in ("ratio", "value", "difference") if each in evidence), None)
    if name is None:
        return ""
    said = f"{name} {_plain(evidence[name])}"
    if evidence.get("interval"):
        said += ", " + " to ".join(_plain(each) for each in evidence["interval"])
    limit = f"; limit {_plain(evidence['limit'])}" if evidence.get("limit") else ""
    return said + tail + limit


def _plain(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _specification(path: Path | None, texts: Sequence[str]) -> Specification:
    if path is None and not texts:
        raise click.UsageError("Say what to check: SPEC or --formula TEXT.")
    found = _read(path) if path is not None else Specification(statements=())
    more = [_parsed(each, "--formula").statements for each in texts]
    return Specification(
        statements=(*found.statements, *(statement for each in more for statement in each)),
        builds=found.builds,
        settings=found.settings,
    )


def _read(path: Path) -> Specification:
    if str(path) != "-" and is_store(path):
        return Specification(statements=tuple(statements_of(document_in(path)["functions"])))
    try:
        content = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if not content.lstrip().startswith("{"):
        return _parsed(content, str(path))
    return Specification(statements=tuple(statements_of(_document(content, path)["functions"])))


def _parsed(content: str, where: str) -> Specification:
    try:
        return parse_specification(content)
    except SplError as error:
        shown = error.picture.split("\n")[0].strip()
        raise InputError(f"{where}, {error}", remedy=f"in: {shown}") from error


def _document(content: str, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != "specmine.specification/1" or not isinstance(document.get("functions"), list):
        raise InputError(f"{path} is no specmine.specification/1 but {schema!r}")
    return dict(document)


def _rules(settings: Mapping[str, Any], interpretation: str) -> Rules:
    from specmine.mining.regression.sample import SUMMARIES  # noqa: PLC0415

    if settings.get("summary", "median") not in SUMMARIES:
        raise click.UsageError(f"--summary is one of {', '.join(SUMMARIES)}.")
    more = dict(settings)
    if "tolerance" in more:
        more["equal_tolerance"] = more["tolerance"]
    return Rules(interpretation=interpretation, **more)


def _data(against: str, builds: Mapping[str, str], skip_bad: bool, socket: Path | None) -> Data:
    if against == LIVE:
        return DocumentData(read_document(None, socket))
    path = Path(against)
    if against != "-" and is_store(path):
        from specmine.analysis.lifetimes.from_store import from_store, on_cpu_of_store, windows_of_store  # noqa: PLC0415

        return LifetimeData(from_store(path), windows_of_store(path), builds, partial(on_cpu_of_store, path))
    if path.suffix == ".json":
        return DocumentData(_document(path.read_text(encoding="utf-8"), path))
    from specmine.analysis.lifetimes.from_csv import TIMED, read_calls  # noqa: PLC0415

    calls = read_calls(path, required=TIMED, skip_bad=skip_bad)
    return LifetimeData(calls.by_lifetime(), calls.by_path(), builds)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
