"""A metric: its name, kind, help and labels, and the function that reads its values from what it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)

Values = float | None | Mapping[Any, float]
"""One value; or several, by the value of their label, or by a tuple of the values of their labels. None: none yet."""
Row = tuple[str, tuple[str, ...], float]
"""Name of the family, values of its labels, value."""
_LONGEST_LABEL = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(Generic[S_contra]):
    """One metric of functions, of the daemon, or of something else."""

    name: str
    """As in the text format, but without the ``_total`` of counters."""
    kind: Literal["counter", "gauge", "unknown"]
    """Unknown: a gauge with the label quantile, which Prometheus reserves for summaries."""
    help: str
    read: Callable[[S_contra], Values]
    labels: tuple[str, ...] = ()
    folded: bool = False
    """Whether the values of functions without series of their own are shown as one sum."""

    @property
    def per_build(self) -> bool:
        """Whether its labels tell builds apart, so that each build has series of its own."""
        return not {"behaviour", "build_id"}.isdisjoint(self.labels)

    @property
    def shown(self) -> str:
        """Name as a scrape shows it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def gauge(name: str, text: str, read: Callable[[S], Values], *labels: str) -> Family[S]:
    """Return a metric that goes up and down."""
    return Family(name=f"specmine_{name}", kind="gauge", help=text, read=read, labels=labels)


def quantiles(name: str, text: str, read: Callable[[S], Values], *labels: str) -> Family[S]:
    """Return a metric of quantiles, which go up and down."""
    return Family(name=f"specmine_{name}", kind="unknown", help=text, read=read, labels=labels)


def counter(name: str, text: str, read: Callable[[S], Values], *labels: str, folded: bool = False) -> Family[S]:
    """Return a metric that only grows."""
    return Family(name=f"specmine_{name}", kind="counter", help=text, read=read, labels=labels, folded=folded)


def labelled(labels: tuple[str, ...], *families: Family[S]) -> tuple[Family[S], ...]:
    """Return metrics with these labels before their own."""
    return tuple(replace(family, labels=(*labels, *family.labels)) for family in families)


def rows(families: Iterable[Family[S]], subject: S, labels: tuple[str, ...] = ()) -> Iterator[Row]:
    """Return the values of metrics for one subject, which has these values of the first labels."""
    for family in families:
        values = family.read(subject)
        if isinstance(values, Mapping):
            for key, value in values.items():
                names = (key,) if isinstance(key, str) else key
                yield family.name, (*labels, *map(label_text, names)), float(value)
        elif values is not None:
            yield family.name, labels, float(values)


@lru_cache(maxsize=4096)
def label_text(text: str) -> str:
    """Return a label's value: control characters escaped, not endless; the encoder escapes quotes."""
    safe = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return safe if len(safe) <= _LONGEST_LABEL else f"{safe[: _LONGEST_LABEL - 3]}..."
