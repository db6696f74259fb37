"""``specmine merge``: what was learned in several runs, on several hosts, as one, and how far it agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from specmine.analysis.documents import Document, document_in, is_store, title
from specmine.cli.base.exit_codes import FINE, NO_DATA
from specmine.cli.base.options import PATH, format_option
from specmine.cli.base.output import OutputFile, check_writable, emit, json_text, specification_text, width
from specmine.mining.settings import MiningSettings
from specmine.model.errors import InputError
from specmine.model.text import count, escaped, plural, share

SCHEMA = "specmine.merge/1"
_WINDOWS = 400
"""Newest observations of each function and kind that are read."""
ENOUGH = 0.95
"""Share of a function's decided calls that must be grouped alike to call its models consistent."""
_DECIDED = 0.5
"""Share of its calls of which something must be decided for that."""


@click.command("merge", short_help="Several runs, hosts or builds as one.")
@click.argument("inputs", nargs=-1, required=True, type=PATH, metavar="STORE...")
@click.option("--output", type=PATH, metavar="FILE", help="Write the merged specification there, or store.")
@format_option
def command(inputs: tuple[Path, ...], output: Path | None, form: str) -> int:
    """Merge what stores or specifications in JSON say of one program, and tell how far they agree.

    Two models of a function agree about a call path if they group it alike; where they do not, but the calls of both
    can have the same behaviours, nothing is decided. Each further input is compared with all
    before it merged. Frames that another build inlined are aligned. FILE becomes a store if all inputs are stores
    and its name does not end in .json, else a specification in JSON.

    Exits with 3 if no two inputs assert anything of one function.
    """
    if len(inputs) < 2:
        raise click.UsageError("There is nothing to merge: name two stores or more.")
    from specmine.analysis.merge.specifications import merge_specifications  # noqa: PLC0415

    if output is not None:
        check_writable(output, "the merged result")
        if output.resolve() in {each.resolve() for each in inputs}:
            raise InputError(f"{output} is one of the inputs", remedy="name another file for --output")
    result = merge_specifications(_alike(inputs))
    told = _reason(inputs, result.document)
    if output is not None:
        _write(output, inputs, result.document)
    emit(json_text(told) if form == "json" else "\n".join(_lines(told, width())) + "\n")
    return FINE if told["summary"]["compared"] else NO_DATA


def _alike(inputs: Sequence[Path]) -> Sequence[Document]:
    """Return the specifications of all, cut into the same classes as far as they are stores."""
    documents = [document_in(each) for each in inputs]
    if sum(map(is_store, inputs)) < 2:
        return documents
    from specmine.analysis.merge.reclassify import by_function, reclassify  # noqa: PLC0415
    from specmine.store import open_store  # noqa: PLC0415

    recordings = []
    for each in inputs:
        if is_store(each):
            with open_store(each, read_only=True) as store:
                recordings.append(by_function(store.load(newest=_WINDOWS).observations))
        else:
            recordings.append({})
    return reclassify(documents, recordings, mining=MiningSettings())


def _write(output: Path, inputs: Sequence[Path], document: Document) -> None:
    if output.suffix != ".json" and all(map(is_store, inputs)):
        from specmine.store import merged_store  # noqa: PLC0415

        merged_store(output, inputs, document)
        return
    with OutputFile(output) as file:
        file.write(specification_text(document))


def _reason(inputs: Sequence[Path], document: Document) -> dict[str, Any]:
    functions = [_function(each) for each in document["functions"]]
    compared = [each for each in functions if each["steps"]]
    doubtful = [each for each in compared if each["steps"][-1]["undecided_ratio"] > 1 - _DECIDED]
    good = [each for each in compared if each["steps"][-1]["calls_ratio"] >= ENOUGH and each not in doubtful]
    return {
        "schema": SCHEMA,
        "inputs": [str(each) for each in inputs],
        "functions": functions,
        "summary": {
            "functions": len(functions),
            "compared": len(compared),
            "uncompared": sum(each["models"] > 1 and not each["steps"] for each in functions),
            "consistent": len(good),
            "undecided": len(doubtful),
            "consistent_ratio": len(good) / len(compared) if compared else None,
        },
    }


def _function(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "function": entry.get("function"),
        "module": entry.get("module"),
        "calls": entry["calls"],
        "state": entry.get("state"),
        "behaviours": [each.get("expression") for each in entry.get("behaviours") or []],
        "dropped_seconds": entry.get("dropped_seconds") or [],
        **entry["merge"],
    }


def _lines(told: Mapping[str, Any], columns: int) -> list[str]:
    """Return a table: per function its models, and how far the last agreed with those before."""
    inputs, summary = told["inputs"], told["summary"]
    compared = [each for each in told["functions"] if each["steps"]]
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
    dropped = sum(bool(each["dropped_seconds"]) for each in told["functions"])
    return [
        *lines,
        "",
        f"{summary['consistent']} of {plural(summary['compared'], 'function')}: at least {share(ENOUGH)} of the calls "
        "over call paths that are grouped alike.",
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
