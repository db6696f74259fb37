"""Experiments, their results and predictions as text."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from specmine.model.text import age, escaped, plural

if TYPE_CHECKING:
    from specmine.experiments.types import Experiment

Result = Mapping[str, Any]
_HOURS = {0.0: "once a boot", -1.0: "only when asked"}
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def list_lines(experiments: Mapping[str, Experiment], columns: int) -> list[str]:
    """Return one entry an experiment."""
    lines = []
    for each in experiments.values():
        often = _HOURS.get(each.hours, f"every {each.hours:g} h")
        loads = {"none": "no load", "one": "1 CPU", "two": "2 CPUs", "all": "all CPUs"}[each.cpus]
        lines.append(f"{each.name:<24} {loads}, {each.cost:g} CPU s, daemon: {often}")
        lines += textwrap.wrap(each.summary, columns, initial_indent="    ", subsequent_indent="    ")
        if each.parameters:
            text = f"--set {', '.join(each.parameters)}"
            lines += textwrap.wrap(text, columns, initial_indent="    ", subsequent_indent="      ")
    return lines


def result_lines(result: Result, columns: int) -> list[str]:
    """Return a result in full."""
    head = f"{result['name']}: {quantity(result['value'], result['unit'])}"
    if result["interval"]:
        low, high = (quantity(each, result["unit"]) for each in result["interval"])
        head += f" [{low}, {high}]"
    if result["ground_truth"] is not None:
        head += f", reported {quantity(result['ground_truth'], result['unit'])}"
    lines = [head]
    reason = result["reason"]
    if reason:
        text = f"{'none' if result['valid'] else 'not sure'}: {reason['text']} [{reason['code']}]"
        text += f". Next: {reason['remedy']}" if reason["remedy"] else ""
        lines += textwrap.wrap(escaped(text), columns, initial_indent="    ", subsequent_indent="      ")
    for check in result["checks"]:
        mark = "ok" if check["ok"] else "FAIL"
        lines.append(f"    {mark:<4} {check['name']} {check['value']:.4g} in {check['low']:.4g} to {check['high']:.4g}")
    for name, each in result["evidence"].items():
        text = f"{name}: {each if isinstance(each, str) else json.dumps(each)}"
        lines += textwrap.wrap(escaped(text), columns, initial_indent="    ", subsequent_indent="      ")
    return lines


def table(results: Sequence[Result], columns: int) -> list[str]:
    """Return one line a result."""
    lines = []
    for each in results:
        text = quantity(each["value"], each["unit"])
        truth = "" if each["ground_truth"] is None else f"reported {quantity(each['ground_truth'], each['unit'])}, "
        line = f"{each['name']:<24} {text:<12} {truth}{age(each['age_seconds'])} ago"
        if each["reason"]:
            line += f"; {each['reason']['text']}"
        lines.append(escaped(line)[:columns])
    return lines


def prediction_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a prediction as text."""
    how = document["beside"]
    threads = plural(how["rivals"], "competing thread")
    cpus = f"{how['cores']:g} CPU{'' if how['cores'] == 1 else 's'}"
    lines = [f"{threads} on {cpus}, slice {quantity(how['slice_seconds'], 's')}:"]
    lines += [
        f"{name:<7} {quantity(document['alone'][f'{name}_seconds'], 's'):>10} alone"
        f" {quantity(document['predicted'][f'{name}_seconds'], 's'):>10} predicted"
        for name in ("mean", "median", "p95", "p99")
    ]
    return [*lines, f"{100 * document['delayed_share']:.1f} % of calls are delayed"]


def quantity(value: Any, unit: str) -> str:
    """Write a value with its unit, ``-`` for none."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if unit != "s":
        return f"{value:.4g} {unit}".strip()
    scale, name = next((each for each in _SCALES if abs(value) >= each[0]), (1e-9, "ns"))
    return f"{value / scale:.4g} {name}"
