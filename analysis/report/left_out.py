"""The runs that a comparison could not use, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.documents import title
from specmine.model.text import in_markup


def left_out_list(entries: Sequence[Mapping[str, Any]], sides: Mapping[str, str]) -> str:
    """Return the runs that were left out as a list that opens; '' if all were used.

    Parameters
    ----------
    entries : sequence
        Functions of a comparison.
    sides : mapping
        ``base`` and ``new`` to what the builds are called.
    """
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for each in entries:
        for one in each["lifetimes_left_out"]:
            run = sides[one["side"]], one["host"], one["start"] or one["lifetime"], one["reason"]["text"]
            found.setdefault(run, []).append(title(each))
    if not found:
        return ""
    rows = "".join(
        f"<tr>{''.join(f'<td>{in_markup(field)}</td>' for field in run)}<td>{in_markup(_named(names))}</td></tr>"
        for run, names in sorted(found.items())
    )
    head = "".join(f"<th scope='col'>{each}</th>" for each in ("Build", "Host", "Run", "Why", "Functions"))
    return (
        f"<details><summary>Runs left out ({len({run[:3] for run in found})})</summary>"
        f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
