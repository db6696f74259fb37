"""What stands around the table of a comparison: order of runs, hosts, runs left out, machine code, and causes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from specmine.analysis.documents import title
from specmine.mining.regression.self_vs_callees import Part
from specmine.model.text import count, duration, escaped, listed, plural, share

MOST_SUSPECTS = 10
_MOST_LISTED = 3
LEAST_TOLD = 0.05
"""A part of the time with less of a difference is not mentioned."""
_LIFETIME = re.compile(r"(?<![\w`:>.-])[Ll]ifetime(s?)(?![\w`:(-])")
"""The word, but not as part of a name."""


def detail(each: Mapping[str, Any]) -> list[str]:
    """Return the sentences on one function: why, where in it, and the likely cause."""
    sentences = [f"{each['reason'][:1].upper()}{each['reason'][1:]}."] if each["verdict"] != "equivalent" else []
    if each["explained_by"]:
        sentences.append(f"Explained by {escaped(listed(each['explained_by']))}.")
    elif each["explains"]:
        sentences.append(f"Explains {escaped(listed(each['explains']))}.")
    place = _part_changed(each)
    if place:
        sentences.append(escaped(place))
    if each.get("time"):
        sentences.append(_time_sentence(each["time"]["of_difference"]))
    if each["change"] is not None:
        sentences.append(f"Likely cause: {each['change']['cause']} ({each['change']['reason']}).")
    elif each["host"] and each["host"]["explained"]:
        sentences.append(f"The host explains it: {each['host']['reason']}.")
    return [in_plain_words(one) for one in sentences]


def _time_sentence(shares: Mapping[str, float]) -> str:
    """Return which part of the time the difference of the means is."""
    words = {"running": "time on a CPU", "waiting": "waiting for one", "blocked": "being blocked"}
    told = [f"{share(shares[name])} {text}" for name, text in words.items() if shares[name] >= LEAST_TOLD]
    return f"Of the difference of the means {listed(told)}."


def in_plain_words(sentence: str) -> str:
    """Return a sentence with the words that people read: a lifetime is a run."""
    return _LIFETIME.sub(lambda word: ("Run" if word[0][0] == "L" else "run") + word[1], sentence)


def order_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the warning where both sides did not take turns, with the remedy and what unchanged functions show."""
    order = document["order"]
    if order["warning"] is None or not document["functions"]:
        return []
    lines = [in_plain_words(f"Warning: {order['warning']}. Remedy: {order['remedy']}.")]
    drift = order["drift"]
    if drift is not None:
        percent = 100 * (drift["ratio"] - 1.0)
        low, high = drift["interval"]
        lines.append(
            f"{plural(drift['functions'], 'function')} of unchanged code took {abs(percent):.2g} %"
            f" {'longer' if percent > 0 else 'less'} ({low:.2f}–{high:.2f}); intervals allow for it."
        )
    return lines


def left_out_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the runs in which nothing was timed."""
    found = {
        (one["side"], one["host"], one["lifetime"]): one
        for each in document["functions"]
        for one in each["lifetimes_left_out"]
        if one["reason"]["code"] == "nothing-timed"
    }
    if not found:
        return []
    named = [_run(one, document) for one in list(found.values())[:_MOST_LISTED]]
    more = f", and {count(len(found) - len(named))} more" if len(found) > len(named) else ""
    return [f"Left out: {plural(len(found), 'run')} in which no call was timed: {'; '.join(named)}{more}."]


def fewer_runs(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the functions that not every run has, those with the fewest runs first."""
    found = []
    seen = document["base"]["lifetimes_seen"], document["new"]["lifetimes_seen"]
    for each in document["functions"]:
        if each["lifetimes_left_out"] and sum(each["lifetimes"]) < sum(seen):
            reason, _ = Counter(one["reason"]["text"] for one in each["lifetimes_left_out"]).most_common(1)[0]
            runs = " against ".join(
                f"{have} of {all_runs}" for have, all_runs in zip(each["lifetimes"], seen, strict=True)
            )
            found.append((sum(each["lifetimes"]), f"{escaped(title(each))} {runs} ({reason})"))
    if not found:
        return []
    shown = [text for _, text in sorted(found)[:_MOST_LISTED]]
    more = f", and {plural(len(found) - len(shown), 'more function')}" if len(found) > len(shown) else ""
    return [f"Not in every run: {'; '.join(shown)}{more}. --format json lists each run left out."]


def _run(one: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return which run is meant: host and start where they are known."""
    start = datetime.fromisoformat(one["start"]).strftime("%d %b %H:%M:%S UTC") if one["start"] else one["lifetime"]
    return escaped(f"{document[one['side']]['name']}: {one['host']} {start}".replace(":  ", ": "))


def _part_changed(each: Mapping[str, Any]) -> str:
    """Return in words where in a function its change is, '' if that is not known."""
    where = each["where"]
    if where is None or where["part"] == Part.UNKNOWN.value:
        return ""
    through = f" ({where['through'][0]} first)" if where["through"] else ""
    probed = ", and in callees without a probe" if where["by"] == "probes" else ""
    return {
        Part.SELF.value: f"The change is in its own time{probed}.",
        Part.CALLEES.value: f"The change is in what it calls{through}.",
        Part.BOTH.value: f"The change is in its own time{probed} and in what it calls{through}.",
    }[where["part"]]


def code_lines(document: Mapping[str, Any]) -> Sequence[str]:
    """Return one sentence on all code and one on each suspect."""
    counts = document["counts"]
    compared = sum(counts[kind] for kind in ("changed", "moved", "same"))
    if not compared:
        return []
    lines = [
        f"Machine code: of {plural(compared, 'function')} reached in both {counts['changed']} changed,"
        f" {counts['moved']} only moved."
    ]
    shown = document["suspects"][:MOST_SUSPECTS]
    lines += [f"{number}. {_suspect(each)}" for number, each in enumerate(shown, 1)]
    more = len(document["suspects"]) - len(shown)
    return [*lines, f"{more} more changed functions are in --format json."] if more > 0 else lines


def _suspect(each: Mapping[str, Any]) -> str:
    name = escaped(title(each))
    parts = [
        {
            "changed": "its code changed",
            "new": "reached in the new build only",
        }.get(each["code"], f"its code is as it was; it calls {escaped(listed(each['through'][:3]))}")
    ]
    before, after = each["self_share"]
    if before is not None and after is not None and max(before, after) >= 0.005:
        parts.append(f"{100 * before:.3g} % of the CPU time inside it became {100 * after:.3g} %")
    elif after is not None and after >= 0.005:
        parts.append(f"{100 * after:.3g} % of the CPU time inside it")
    if each["ratio"] is not None:
        parts.append(f"its calls take {each['ratio']:.4g} times as long")
    return f"{name}: {'; '.join(parts)}."


def host_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence about hosts that differ in what both are known for, [] if they do not."""
    known = [each for each in document["differences"] if each["base"] is not None and each["new"] is not None]
    if not known:
        return []
    facts = ", ".join(f"{_word(each['property'])} {_value(each, 'new')}, not {_value(each, 'base')}" for each in known)
    return [f"The hosts differ: {facts}."]


def _word(name: str) -> str:
    return name.removesuffix("_seconds").replace("_", " ")


def _value(each: Mapping[str, Any], side: str) -> str:
    value = each[side]
    if isinstance(value, str):
        return escaped(value)
    return duration(value) if each["property"].endswith("_seconds") else f"{value:.3g}"
