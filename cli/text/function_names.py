"""Which function of a document a user means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

from specmine.analysis.documents import Entry, pick_build, title
from specmine.model.errors import InputError
from specmine.model.text import listed

from .suggestions import did_you_mean

_MOST_LISTED = 10


def matching(entries: Sequence[Entry], glob: str) -> list[Entry]:
    """Return the functions that a glob names, as ``--function`` does.

    An exact name wins over its reading as a glob, so that ``operator[]`` and ``f(char*)`` find themselves.
    """
    exact = [each for each in entries if glob in _names(each)]
    return exact or [each for each in entries if any(fnmatchcase(name, glob) for name in _names(each))]


def check_named(functions: Iterable[tuple[str, str]], globs: Sequence[str]) -> None:
    """Check that each glob of ``--function`` names something.

    Parameters
    ----------
    functions : iterable of (str, str)
        Name and module of each function that is known.
    globs : sequence of str

    Raises
    ------
    InputError
        For the first that names nothing.
    """
    from specmine.model.globs import fits  # noqa: PLC0415  (it brings numpy)

    known = set(functions)
    for glob in globs:
        if not any(fits(*each, glob) for each in known):
            hint = did_you_mean(glob, sorted(name for name, _ in known))
            raise InputError(f"no function matches {glob}{hint}", remedy="without --function all are taken")


def of_program_and_build(
    entries: Sequence[Entry], program: str | None, build: str | None, labels: Mapping[str, str] = MappingProxyType({})
) -> list[Entry]:
    """Return the functions of a program and of a build.

    Parameters
    ----------
    entries : sequence
    program : str, optional
        Name of the program, or of the module.
    build : str, optional
        A label, a build-id, or how it begins.
    labels : mapping
        Build-id to the label that a person gave it.

    Raises
    ------
    InputError
        If no function is of that program, or none or several of that build.
    """
    found = list(entries)
    if program is not None:
        found = [each for each in found if is_of_program(each, program)]
        if entries and not found:
            known = sorted({str(each.get("program") or each.get("module")) for each in entries})
            hint = did_you_mean(program, known)
            raise InputError(
                f"no function of a program {program} is known{hint}", remedy=f"programs: {listed(known[:5])}"
            )
    if build is not None:
        ids = sorted({str(each.get("build_id") or "") for each in found})
        named = [each for each in ids if labels.get(each) == build]
        wanted = named[0] if len(named) == 1 else pick_build(ids, build)
        found = [each for each in found if each.get("build_id") == wanted]
    return found


def is_of_program(entry: Entry, program: str) -> bool:
    """Return whether a function is of a program, or of a module, of this name."""
    return program in {*str(entry.get("program") or "").split(","), entry.get("module")}


def with_labels(entries: Sequence[Entry], labels: Mapping[str, str]) -> list[Entry]:
    """Return functions with ``build``: the label of their build, where it has one."""
    return [{**each, "build": label} if (label := labels.get(str(each.get("build_id")))) else each for each in entries]


def single_match(entries: Sequence[Entry], glob: str) -> Entry:
    """Return the one function that a glob names.

    Raises
    ------
    InputError
        If there is none, or more than one.
    """
    found = matching(entries, glob)
    if len(found) == 1:
        return found[0]
    if not found:
        raise no_match(entries, glob)
    names = [title(each) for each in found]
    if len(set(names)) < len(names):
        names = [f"{name} of build {_build(each)}" for name, each in zip(names, found, strict=True)]
        remedy = "choose one with --build"
    else:
        remedy = "name one of them"
    more = len(names) - _MOST_LISTED
    shown = [*names[:_MOST_LISTED], f"{more} more"] if more > 0 else names
    raise InputError(f"{len(found)} functions match {glob}: {listed(shown)}", remedy=remedy)


def no_match(entries: Sequence[Entry], *globs: str) -> InputError:
    """Return the error where globs name none of the functions, with those that are called alike."""
    hint = did_you_mean(globs[0], (str(each.get("function")) for each in entries)) if len(globs) == 1 else ""
    return InputError(f"no function matches {' or '.join(globs)}{hint}", remedy="see `specmine functions`")


def _build(entry: Entry) -> str:
    return str(entry.get("build") or str(entry.get("build_id"))[:12])


def _names(entry: Entry) -> set[str]:
    from specmine.model.globs import names_of  # noqa: PLC0415  (it brings numpy)

    build, offset = entry.get("build_id"), entry.get("offset")
    keys = {f"{build}+0x{offset:x}"} if isinstance(offset, int) else {str(entry.get("key", ""))}
    names = names_of(str(entry.get("function", "")), str(entry.get("module", "")))
    return (names | keys | {str(entry.get("mangled", "")), title(entry)}) - {""}
