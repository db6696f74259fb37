"""More than two builds: each against the one before it, and which machine code differs from build to build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.documents import title
from specmine.mining.regression.comparison import Change
from specmine.model.text import in_markup

from .changes import KINDS

_MOST_SUSPECTS = 10
_MOST_ROWS = 200
Document = Mapping[str, Any]


def all_builds_table(document: Document, labels: Mapping[str, str], order: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of all builds, functions in a given order; '' if there are only the two that were compared."""
    if len(labels) < 3:
        return ""
    place = {(each["function"], each["module"]): at for at, each in enumerate(order)}
    entries = sorted(document["functions"], key=lambda each: place.get((each["function"], each["module"]), len(place)))
    heads = "".join(f'<th scope="col">{in_markup(label)}</th>' for label in labels.values())
    rows = []
    for entry in entries[:_MOST_ROWS]:
        steps = {step["new"]: step for step in entry["steps"]}
        cells = "".join(_cell(steps.get(build)) for build in labels)
        rows.append(f'<tr><th scope="row">{in_markup(title(entry))}</th>{cells}{_cell(entry["drift"])}</tr>')
    return (
        "<h2>Over all builds</h2><p>Each build against the one before it; in the last column, the last against the "
        "first. "
        "<strong>=</strong> is the same, <strong>?</strong> not decided.</p>"
        f'<div class="scroll"><table><thead><tr><th scope="col">Function</th>{heads}<th scope="col">First to '
        f"last</th></tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(step: Mapping[str, Any] | None) -> str:
    if step is None:
        return "<td></td>"
    verdict = Change(step["verdict"])
    if verdict in (Change.WORSE, Change.BETTER):
        ratio = (step if step["decided_by"] is None else step["behaviours"][step["decided_by"]])["ratio"]
        return f'<td class="{KINDS[verdict]}">{100 * (ratio - 1):+.2f} %</td>'
    return f'<td title="{in_markup(step["reason"])}">{"=" if verdict is Change.EQUIVALENT else "?"}</td>'


def code_table(document: Document, labels: Mapping[str, str]) -> str:
    """Return the functions whose machine code differs from build to build, by rank; '' if none does."""
    rows = "".join(
        f"<tr><td>{in_markup(labels[step['new']])}</td><td>{in_markup(labels[step['base']])}</td>"
        f"<td>{in_markup(title(one))}</td><td>{in_markup(_code(one))}</td></tr>"
        for step in document["machine_code"]
        for one in step["suspects"][:_MOST_SUSPECTS]
    )
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{each}</th>' for each in ("New", "Old", "Function", "What changed"))
    return (
        "<h2>Machine code</h2><p>Functions whose code differs, those first that most likely explain what became "
        "slower.</p>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _code(one: Mapping[str, Any]) -> str:
    change = {"changed": "its code changed", "new": "reached in the newer build only"}.get(one["code"], "")
    parts = [change or f"calls {', '.join(one['through'][:3])}"]
    if None not in one["self_share"]:
        before, after = (100 * each for each in one["self_share"])
        parts.append(f"{before:.3g} % of the CPU time inside it became {after:.3g} %")
    if one["ratio"] is not None:
        parts.append(f"{one['ratio']:.3g} times as long a call")
    return "; ".join(parts)
