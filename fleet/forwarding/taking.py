"""From a host's store to the outbox: what is new, as pushes. Each window is taken once, whoever is killed when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from specmine.fleet.folding import FIVE_MINUTES_NS, FoldedRow, folded
from specmine.fleet.push import Push, encode_push, pushes_of
from specmine.fleet.records import changed, records_of
from specmine.model.function import Function
from specmine.store import (
    Host,
    Mark,
    StoredWindow,
    StoreError,
)
from specmine.store.outbox import Outbox
from specmine.store.sqlite import SqliteStore

AT_ONCE = 20_000
"""Windows taken in one go; what is left comes in the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one go took."""

    windows: int
    pushes: int
    skipped: int
    """Merged windows of which a part was sent already, so they cannot be sent."""
    more: bool
    """Whether there is more to take."""
    functions: int = 0
    """Of which the fleet is told for the first time, or anew."""


def take(store: SqliteStore, outbox: Outbox, *, fold: bool = True, skip: bool = False) -> Taken:
    """Take what is new in a store and let it wait in the outbox.

    Parameters
    ----------
    store : SqliteStore
        Only read.
    outbox : Outbox
    fold : bool
        Fold windows to rows of five minutes.
    skip : bool
        Note as taken what is new, and send no call of it: it is not known which were sent.

    Raises
    ------
    StoreError
        If one of them cannot be read or written.
    """
    source, identity = outbox.source, _identity(store.path)
    same = source.get("store") == identity
    mark = Mark(**source["mark"]) if same and "mark" in source else Mark()
    news = store.increment(mark, most=AT_ONCE)
    same = same and news.continued
    known = outbox.watermarks()
    fresh = [each for each in news.windows if _is_new(each, known, same=same)]
    skipped = sum(not same or each.merges > 0 for each in news.windows) - sum(
        not same or each.merges > 0 for each in fresh
    )
    offsets = {each.boot_id: each.utc_offset_ns for each in store.read(Host)}
    rows: Sequence[FoldedRow] = [FoldedRow(observation=each.observation, windows=10**each.merges) for each in fresh]
    records, digests = changed(records_of(store), outbox.sent())
    push = Push(
        records=(*records, *(() if skip else news.samples)),
        summaries=() if skip else news.summaries,
        rows=() if skip else tuple(folded(rows, offsets, FIVE_MINUTES_NS) if fold else rows),
    )
    pushes = list(pushes_of(push)) if push.records or push.rows or push.summaries else []
    outbox.put(
        pushes,
        source={"store": identity, "mark": asdict(news.mark)},
        sent=digests,
        watermarks=_watermarks(fresh, known),
    )
    return Taken(
        windows=len(fresh), pushes=len(pushes), skipped=skipped, more=len(news.windows) == AT_ONCE,
        functions=sum(isinstance(each, Function) for each in records),
    )  # fmt: skip


def lost_push() -> bytes:
    """Return what takes the place of a push that was given up."""
    return encode_push(Push(lost=1))


def _is_new(window: StoredWindow, known: Mapping[tuple[str, str, str], int], *, same: bool) -> bool:
    """Whether no call of a window was taken before.

    Numbers alone say so of the windows as they were observed. Merged ones have new numbers, and so have those of a
    store that was begun anew or restored: there the time says it.
    """
    if same and window.merges == 0:
        return True
    return window.observation.start_ns >= known.get(_of(window), -1)


def _watermarks(
    windows: Iterable[StoredWindow], known: Mapping[tuple[str, str, str], int]
) -> dict[tuple[str, str, str], int]:
    found: dict[tuple[str, str, str], int] = {}
    for each in windows:
        key = _of(each)
        found[key] = max(found.get(key, known.get(key, -1)), each.observation.end_ns)
    return found


def _of(window: StoredWindow) -> tuple[str, str, str]:
    seen = window.observation
    return seen.function, seen.lifetime, seen.kind.value


def _identity(path: Path) -> str:
    """Return what tells one file from the next at the same path."""
    try:
        found = path.stat()
    except OSError as error:
        raise StoreError(f"the store {path} cannot be read ({error.strerror})") from error
    return f"{found.st_dev}:{found.st_ino}"
