"""The result of a check as text: each formula with its verdict, and why below it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from specmine.model.text import age, duration_range, escaped, plural, three_digits

FRESH_S = 300.0
"""Data of this age need no word about it."""


def check_text(document: Mapping[str, Any], columns: int, now_s: float) -> str:
    """Return the result of a check.

    Parameters
    ----------
    document : mapping
    columns : int
    now_s : float
        Since 1970; data that are older than ``FRESH_S`` then are called so.
    """
    lines: list[str] = []
    ages = [_age_s(each["evidence"], now_s) for each in document["formulas"]]
    youngest = min((each for each in ages if each is not None), default=0.0)
    for each, old in zip(document["formulas"], ages, strict=True):
        name = f"{escaped(each['name'])}: " if each["name"] else ""
        text = " ".join(each["text"].split())
        if text.startswith("levels(") and not each["name"]:
            text = text.partition(" ~ ")[0]  # the lines below it say the rest
        shown = f"{each['verdict'].upper():8}  {name}{escaped(text)}"
        lines += textwrap.wrap(shown, columns, subsequent_indent=" " * 12, break_on_hyphens=False)
        lines += _why(each["evidence"], columns, 12)
        if old is not None and old - youngest > FRESH_S:
            lines.append(f"{' ' * 12}observed {age(old)} ago")
    counted = ", ".join(
        f"{number} {'hold' if name == 'holds' and number > 1 else name}"
        for name, number in document["counts"].items()
        if number
    )
    lines += ["", f"{plural(len(document['formulas']), 'formula')}: {counted or 'none'}."]
    if youngest > FRESH_S:
        lines.append(f"The newest data are {age(youngest)} old.")
    return "\n".join(lines).lstrip("\n") + "\n"


def _age_s(evidence: Mapping[str, Any], now_s: float) -> float | None:
    """Return how old the newest data of a formula are; None where this is not known."""
    newest = evidence.get("newest")
    return max(0.0, now_s - datetime.fromisoformat(newest).timestamp()) if newest else None


def _why(evidence: Mapping[str, Any], columns: int, indent: int) -> list[str]:
    lines = []
    parts = evidence.get("quantiles", ())
    told = bool(parts) and all("reason" in part for part in parts)  # then the lines of the quantiles say why
    sentence = "" if told else _sentence(evidence)
    if sentence:
        margin = " " * indent
        lines += textwrap.wrap(sentence, columns, initial_indent=margin, subsequent_indent=margin)
    for part in parts:
        margin = " " * indent
        lines += textwrap.wrap(_quantile(part), columns, initial_indent=margin, subsequent_indent=margin + "  ")
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
    sentence = f"{name} {_plain(evidence[name])}"
    if evidence.get("interval"):
        sentence += ", " + " to ".join(_plain(each) for each in evidence["interval"])
    limit = f"; limit {_plain(evidence['limit'])}" if evidence.get("limit") else ""
    return sentence + tail + limit


def _quantile(part: Mapping[str, Any]) -> str:
    """Return observed beside normal, and by which factor they differ where that is not well within the range."""
    name = "median" if part["name"] == "p50" else part["name"]
    if part.get("ratio") is None:
        return f"{name}: {escaped(str(part.get('reason', 'not known')))}"
    low, high = part["interval"]
    told = f"{name} {three_digits(part['seconds'])}, normal {duration_range(*part['normal'])}"
    if part["verdict"] == "holds":
        return told
    asserted = three_digits(part["expected_seconds"])
    return f"{told}: {part['ratio']:.3g} times the asserted {asserted} ({low:.3g} to {high:.3g})"


def _plain(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"
