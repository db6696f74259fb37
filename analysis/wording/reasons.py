"""Why a function is where it stands, and what would move it on."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.analysis.documents import Entry
from specmine.model.text import duration, escaped, listed, plural, share, shortened

from .states import group_of

_NAMED = 3
_UNDECIDED = {
    "not decided": "The newest calls are as asserted, but too few or too varied to show every change that matters",
    "too few calls": "The newest calls are too few to compare",
    "known": "It was learned a moment ago and not checked yet",
}


def why(entry: Entry) -> list[str]:
    """Return sentences: why the function is in its state, with its code, and what would move it on."""
    help_ = remedy(entry)
    return [*causes(entry, coded=True), *([f"Next: {help_}"] if help_ else [])]


def remedy(entry: Entry) -> str:
    """Return what would move a function on; '' where nothing would."""
    reason = entry.get("reason")
    return escaped(str(entry.get("needed") or (reason.get("remedy") if isinstance(reason, dict) else "") or ""))


def causes(entry: Entry, *, coded: bool = False) -> list[str]:
    """Return sentences: why the function is in its state; ``coded`` adds the code that the documentation lists."""
    reason = entry.get("reason")
    sentences = [
        f"The host: {share(float(cause['gained_share']))} more calls {escaped(str(cause['text']))}"
        f" (+{duration(float(cause['excess_seconds']))})"
        for cause in entry.get("host_causes") or []
        if cause["gained_share"]
    ]
    inherited = entry.get("inherited")
    if isinstance(inherited, dict):
        hosts = plural(int(inherited.get("hosts") or 0), "host")
        sentences.append(f"Inherited: learned on {hosts} of the fleet, and true of this host's windows")
    before = entry.get("provisional")
    if isinstance(before, dict):
        sentences.append(_provisional(before))
    if isinstance(reason, dict):
        code = f" [{reason.get('code', '?')}]" if coded else ""
        sentences.append(escaped(f"{reason.get('text', '')}{code}".strip()))
    if not reason and group_of(entry) in _UNDECIDED:
        sentences.append(_UNDECIDED[group_of(entry)])
    return sentences


def grouped(entries: Sequence[Entry]) -> list[str]:
    """Return why functions are in their states, a text for each reason: that of the first, with the names of all."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for each in entries:
        groups.setdefault((str((each.get("reason") or {}).get("code", "")), group_of(each)), []).append(each)
    told = []
    for (code, _), members in groups.items():
        sentences = why(members[0])
        if code and sentences:
            names = [escaped(shortened(str(each.get("function")), 40)) for each in members[:_NAMED]]
            more = len(members) - _NAMED
            told.append(f"{listed([*names, *([f'{more} more'] if more > 0 else [])])}: {' '.join(sentences)}")
    return told


def _provisional(before: Entry) -> str:
    """Return how the statement of a build before fares with this one."""
    build = escaped(str(before.get("build_id"))[:12])
    if before.get("source") == "fleet":
        hosts = plural(int(before.get("hosts") or 0), "host")
        if not before.get("observations"):
            return f"Provisionally as {hosts} of the fleet state it; not checked yet"
        verdict = escaped(str(before.get("verdict")))
        return f"As {hosts} of the fleet state it: {verdict} after {plural(int(before['observations']), 'observation')}"
    if not before.get("observations"):
        return f"Provisionally as in build {build}; not checked yet"
    verdict = escaped(str(before.get("verdict")))
    return f"As in build {build}: {verdict} after {plural(int(before['observations']), 'observation')}"


def probe(entry: Entry) -> str:
    """Return how the kernel runs the probed instruction, and what a call costs; '' for what is not probed."""
    price_ns, grade = entry.get("price_ns"), entry.get("grade")
    if not isinstance(price_ns, int | float) or entry.get("state") in ("refused", "excluded"):
        return ""
    return f"Probe: {grade}, {duration(price_ns * 1e-9)} a call"
