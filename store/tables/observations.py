"""Observations: one row for a window, or for several that were merged."""

from __future__ import annotations

from specmine.model.batch import boot_of
from specmine.model.observation import Kind, Observation
from specmine.store.codec import encode_histogram, encode_paths, encode_split, read_histogram, read_paths, read_split
from specmine.store.inside_codec import encode_inside, read_inside
from specmine.store.table import INTEGER, REAL, Column, Form, Table, WriteContext

KIND = Form("text", lambda kind: kind.value, Kind)
HISTOGRAM = Form("bytes", encode_histogram, read=read_histogram)
_PATHS = Form(
    "bytes",
    lambda paths: encode_paths(paths) if paths else None,
    read=lambda data, reader: read_paths(data, reader) if data else lambda _: (),
)
_SPLIT = Form(
    "bytes",
    lambda split: None if split is None else encode_split(split),
    read=lambda data, reader: read_split(data, reader) if data is not None else lambda _: None,
)
_INSIDE = Form(
    "bytes",
    lambda parts: encode_inside(parts) if parts else None,
    read=lambda data, reader: read_inside(data, reader) if data else lambda _: (),
)


def _end_utc_ns(observation: Observation, context: WriteContext) -> int:
    return observation.end_ns + context.offsets.get(boot_of(observation.lifetime), 0)


OBSERVATIONS = Table(
    name="observations",
    record=Observation,
    columns=(
        Column("function"),
        Column("lifetime"),
        Column("kind", KIND),
        Column("boot_id", computed=lambda observation, _: boot_of(observation.lifetime)),
        Column("start_ns", INTEGER),
        Column("end_ns", INTEGER),
        Column("end_utc_ns", INTEGER, computed=_end_utc_ns),
        Column("calls", INTEGER),
        Column("watched_ns", INTEGER),
        Column("inner", INTEGER),
        Column("censored", INTEGER),
        Column("bias_ns", REAL),
        # how often it was merged with others; retention counts it up
        Column("merges", INTEGER, computed=lambda *_: 0),
        Column("counts", HISTOGRAM, "histogram"),
        Column("paths", _PATHS, null=True),
        # null where it is not known what calls did of their time
        Column("split", _SPLIT, since=6, null=True),
        Column("uncertainty_ns", REAL, since=7, default=0),
        # null where none of the functions that it calls was timed
        Column("inside", _INSIDE, since=10, null=True),
    ),
    order=("end_utc_ns", "id"),
    indexes={
        "observations_of_function": ("function", "kind", "end_utc_ns"),
        "observations_by_age": ("merges", "end_utc_ns"),
    },
    same=("function", "kind", "end_utc_ns", "lifetime", "start_ns", "merges"),
    newest_of=("function", "kind"),
)
