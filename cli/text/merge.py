"""How far merged specifications agree, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmine.analysis.documents import title
from specmine.analysis.merge.agreement import ENOUGH
from specmine.model.text import count, escaped, plural, share


def agreement_text(document: Mapping[str, Any], columns: int) -> str:
    """Return a table: per function its models, and how far the last agreed with those before."""
    return "\n".join(_lines(document, columns)) + "\n"


def _lines(document: Mapping[str, Any], columns: int) -> list[str]:
    inputs, summary = document["inputs"], document["summary"]
    compared = [each for each in document["functions"] if each["steps"]]
    names = [escaped(title(each)) for each in compared]
    room = max(8, min(max(map(len, names), default=8), columns - 51))
    lines = [f"{plural(len(inputs), 'input')}; the last of each function against those before it, merged:", ""]
    lines.append(f"{'FUNCTION'.ljust(room)}  MODELS        CALLS  PATHS ALIKE  CALLS ALIKE  UNDECIDED")
    for name, each in zip(names, compared, strict=True):
        step = each["steps"][-1]
        lines += [name] if len(name) > room else []
        lines.append(
            f"{'' if len(name) > room else name:{room}}  {each['models']:>6}  {count(each['calls']):>11}"
            f"  {share(step['paths_ratio']):>11}  {share(step['calls_ratio']):>11}"
            f"  {share(step['undecided_ratio']):>9}"
        )
    if not compared:
        return [*lines[:1], "", "No two of them assert anything of one function that can be compared."]
    only = summary["functions"] - summary["compared"] - summary["uncompared"]
    dropped = sum(bool(each["dropped_seconds"]) for each in document["functions"])
    return [
        *lines,
        "",
        f"{summary['consistent']} of {plural(summary['compared'], 'function')} "
        f"{'agrees' if summary['consistent'] == 1 else 'agree'}: at least {share(ENOUGH)} of the calls came over call "
        "paths that the inputs put into the same behaviours.",
        *(
            [f"{plural(summary['undecided'], 'function')}: too few calls to tell whether the models agree."]
            if summary["undecided"]
            else []
        ),
        *([f"{plural(dropped, 'function')}: a border that too few inputs have was left out."] if dropped else []),
        *(
            [f"{plural(summary['uncompared'], 'function')}: not compared, only one input knows the call paths."]
            if summary["uncompared"]
            else []
        ),
        *([f"{plural(only, 'function')} in one input only."] if only else []),
    ]
