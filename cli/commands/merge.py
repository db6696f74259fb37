"""``specmine merge``: what was learned in several runs, on several hosts, as one, and how far it agrees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from specmine.analysis.documents import Document, document_in, is_store
from specmine.analysis.merge.agreement import agreement_document
from specmine.cli.base.exit_codes import FINE, NO_DATA
from specmine.cli.base.options import PATH, format_option
from specmine.cli.base.output import OutputFile, check_writable, emit, width
from specmine.cli.text.merge import agreement_text
from specmine.daemon.documents.json_text import json_text
from specmine.mining.settings import MiningSettings
from specmine.model.errors import InputError

_WINDOWS = 400
"""Newest observations of each function and kind that are read."""


@click.command("merge", short_help="Several runs, hosts or builds as one.")
@click.argument("inputs", nargs=-1, required=True, type=PATH, metavar="STORE...")
@click.option("--output", type=PATH, metavar="FILE", help="Write the merged specification there, or store.")
@format_option
def command(inputs: tuple[Path, ...], output: Path | None, form: str) -> int:
    """Merge stores, or specifications in JSON, of one program, and report how far they agree.

    Two models of a function agree about a call path if both put it into the same group. If they do not, but the calls
    of both can have the same behaviours, it is undecided. Each input is compared with the merge of those before it.
    Frames that another build inlined are aligned.

    The file of --output becomes a store if all inputs are stores and its name does not end in .json. Else it becomes
    a specification in JSON.

    Exit code 3 if no two inputs assert anything about the same function.
    """
    if len(inputs) < 2:
        raise click.UsageError("There is nothing to merge: name two stores or more.")
    from specmine.analysis.merge.specifications import merge_specifications  # noqa: PLC0415

    if output is not None:
        check_writable(output, "the merged result")
        if output.resolve() in {each.resolve() for each in inputs}:
            raise InputError(f"{output} is one of the inputs", remedy="name another file for --output")
    result = merge_specifications(_alike(inputs))
    agreement = agreement_document(inputs, result.document)
    if output is not None:
        _write(output, inputs, result.document)
    emit(json_text(agreement) if form == "json" else agreement_text(agreement, width()))
    return FINE if agreement["summary"]["compared"] else NO_DATA


def _alike(inputs: Sequence[Path]) -> Sequence[Document]:
    """Return the specifications of all, cut into the same classes as far as they are stores."""
    documents = [document_in(each) for each in inputs]
    if sum(map(is_store, inputs)) < 2:
        return documents
    from specmine.analysis.merge.reclassify import by_function, reclassify  # noqa: PLC0415
    from specmine.store import read_store  # noqa: PLC0415

    recordings = []
    for each in inputs:
        if is_store(each):
            with read_store(each) as store:
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
        file.write(json_text(document))
