"""What ``specmine check`` does: read formulas and data, evaluate, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from specmine.analysis.check.data_age import dated
from specmine.analysis.check.document import document_of
from specmine.analysis.check.document_data import DocumentData
from specmine.analysis.check.formulas import read_formulas
from specmine.analysis.check.lifetime_data import LifetimeData
from specmine.analysis.documents import is_store, json_specification
from specmine.cli.base.exit_codes import FINE, NO_DATA, VIOLATED
from specmine.cli.base.output import OutputFile, destination, width
from specmine.cli.base.sources import read_document
from specmine.cli.base.typography import typeset
from specmine.cli.text.check import check_text
from specmine.cli.text.junit import junit
from specmine.daemon.documents.json_text import json_text
from specmine.mining.spl.evaluation import Rules, evaluate, worst_of
from specmine.mining.spl.syntax import Specification
from specmine.model.clock import utc_ns
from specmine.model.verdict import Verdict
from specmine.store import Where

LIVE = "live"
_CODES = {Verdict.VIOLATED: VIOLATED, Verdict.UNKNOWN: NO_DATA, Verdict.HOLDS: FINE}


def run_check(
    spec: Path | None,
    texts: Sequence[str],
    against: str | Where,
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
    if spec is None and not texts:
        raise click.UsageError("Say what to check: SPEC or --formula TEXT.")
    specification = read_formulas(spec, texts)
    given = {name: value for name, value in rules.items() if value is not None}
    how = _rules({**given, **specification.settings}, interpretation)
    named = {name: label for name, label in builds.items() if label is not None}
    data = _data(against, replace(specification, builds={**specification.builds, **named}), skip_bad, socket)
    # live asks whether it holds now; files may hold what was observed earlier, and are compared with on purpose
    since = specification.since_ns if against == LIVE else {}
    nodes = [dated(evaluate(each.formula, data, how), each.formula, data, since) for each in specification.statements]
    document = document_of(specification.statements, nodes, str(against), how)
    if junit_file is not None:
        with OutputFile(junit_file) as file:
            file.write(junit(document))
    with destination(output) as write:
        text = json_text(document) if form == "json" else typeset(check_text(document, width(), utc_ns() * 1e-9))
        write(text)
    return _CODES[worst_of([node.verdict for node in nodes])]


def _rules(settings: Mapping[str, Any], interpretation: str) -> Rules:
    from specmine.mining.regression.sample import SUMMARIES  # noqa: PLC0415

    if settings.get("summary", "median") not in SUMMARIES:
        raise click.UsageError(f"--summary is one of {', '.join(SUMMARIES)}.")
    more = dict(settings)
    if "tolerance" in more:
        more["equal_tolerance"] = more["tolerance"]
    return Rules(interpretation=interpretation, **more)


def _data(
    against: str | Where, specification: Specification, skip_bad: bool, socket: Path | None
) -> DocumentData | LifetimeData:
    builds = specification.builds
    if against == LIVE:
        return DocumentData(read_document(None, socket))
    path = Path(against) if isinstance(against, str) else against
    if against != "-" and is_store(path):
        from specmine.analysis.lifetimes.from_store import (  # noqa: PLC0415
            from_store,
            on_cpu_of_store,
            whole_windows_of_store,
            windows_of_store,
        )

        by_path = windows_of_store(path)
        return LifetimeData(
            from_store(path),
            by_path,
            builds,
            partial(on_cpu_of_store, path),
            lambda: (whole_windows_of_store(path), by_path),
            mined=specification,
        )
    assert isinstance(path, Path)  # every other place is a store
    if path.suffix == ".json":
        return DocumentData(json_specification(path))
    from specmine.analysis.lifetimes.from_csv import TIMED, read_calls  # noqa: PLC0415

    calls = read_calls(path, required=TIMED, skip_bad=skip_bad)
    return LifetimeData(calls.by_lifetime(), calls.by_path(), builds, windows=lambda: (calls.by_window(),) * 2)
