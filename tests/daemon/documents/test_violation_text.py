"""One title and one sentence per violation: short, with numbers, and the same for all who show it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.daemon.documents.violation_text import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    Subject,
    change,
    growth_words,
    log_line,
    metric_text,
    numbers,
    samples_words,
    sentence,
    title,
    typeset,
)
from specmine.model.level import Level, Quantile
from specmine.model.violation import (
    Cause,
    CauseKind,
    Direction,
    Growth,
    GrowthPart,
    MoreSamples,
    Violation,
    ViolationState,
    What,
)

SECOND = 1_000_000_000
OFFSET_NS = 1_795_305_600 * SECOND  # midnight, 22 Nov 2026
SINCE_NS = (2 * 3600 + 47 * 60 + 10) * SECOND
SHOP = Subject(function="checksum", program="shop", module="shop", utc_offset_ns=OFFSET_NS)


def quantile(value: float, low: float, high: float) -> Quantile:
    """Return a quantile of microseconds."""
    return Quantile(ns=value * 1e3, low_ns=low * 1e3, high_ns=high * 1e3)


SLOWER = Violation(
    function="ab+0x10",
    what=What.LEVEL,
    direction=Direction.SLOWER,
    factor=2.11,
    factor_low=2.0,
    factor_high=2.2,
    expected=Level(p50=quantile(76, 72, 80), p90=quantile(121, 115, 127)),
    observed=Level(p50=quantile(160, 155, 165), p90=quantile(252, 240, 260)),
    cause=Cause(kind=CauseKind.CODE, proven=True, text="Its machine code changed in v2.5.0."),
    since_ns=SINCE_NS,
    found_ns=SINCE_NS + 54 * SECOND,
)


def test_the_sentence_says_what_how_much_since_when_and_why() -> None:
    """Observed stands beside normal, with one unit for the range."""
    expected = "checksum (shop) 2.1x slower since 02:47:10: median 160 us, normal 72-80 us; cause: code"
    assert sentence(SLOWER, SHOP) == expected
    assert log_line(SLOWER, SHOP) == f"slower: {expected}"
    assert metric_text(SLOWER, SHOP) == f"{expected}. Its machine code changed in v2.5.0."
    assert sentence(SLOWER, replace(SHOP, build="v2.5.0")).endswith("cause: code (v2.5.0)")


def test_the_title_is_enough_to_decide() -> None:
    """Program, function, factor, moment, cause; what is not proven is likely."""
    assert title(SLOWER, SHOP) == "shop: checksum 2.1x slower since 02:47, new code"
    load = replace(SLOWER, factor=34.2, since_ns=4631 * SECOND, cause=Cause(kind=CauseKind.LOAD))
    redis = replace(SHOP, function="qsort_r", program="redis")
    assert title(load, redis) == "redis: qsort_r 34x slower since 01:17, likely load"
    assert title(replace(load, cause=Cause()), redis).endswith("cause not known")


def test_another_day_is_told_as_a_date() -> None:
    """A time of day alone would be taken for today's."""
    late = SINCE_NS + 3 * 86_400 * SECOND
    assert " since 22 Nov, " in title(SLOWER, SHOP, late)
    assert " since 22 Nov 02:47: " in sentence(SLOWER, SHOP, late)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "2.1x slower"),
        ({"quantile": "p90", "factor": 1.4}, "1.4x slower at p90"),
        ({"direction": Direction.FASTER, "factor": 0.83}, "1.2x faster"),
        ({"quantile": "mean", "factor": 4.5}, "4.5x slower on average"),
        ({"factor": 340.2}, "340x slower"),
        ({"expression": "db_get->load", "factor": 1.5}, "1.5x slower when db_get calls load"),
        ({"expression": "not cache_get->load", "factor": 1.5}, "1.5x slower unless cache_get calls load"),
        ({"expression": "a->b and not c->d"}, "2.1x slower if a->b and not c->d"),
        ({"expression": "not calls fsync"}, "2.1x slower unless it calls fsync"),
        ({"expression": "blocked under fsync"}, "2.1x slower when blocked under fsync"),
        ({"expression": "not blocked"}, "2.1x slower unless blocked"),
        ({"what": What.PATH, "direction": Direction.OTHER}, "has new call paths"),
        ({"what": What.SHARE, "factor": 3.0}, "has 3.0x more calls in the slowest class"),
        ({"what": What.SHARE, "factor": 0.5, "upper_ns": 61_000.0}, "has 2.0x fewer calls up to 61 us"),
    ],
)
def test_what_changed_is_told_by_kind(changes: dict[str, object], text: str) -> None:
    """Level, share and path; a factor below one is told by its inverse."""
    assert change(replace(SLOWER, **changes)) == text  # type: ignore[arg-type]


def test_a_caller_of_the_function_itself_is_told_as_one() -> None:
    """``db_get->load`` of load: when called by db_get."""
    caller = replace(SLOWER, expression="db_get->load")
    assert change(caller, "load") == "2.1x slower when called by db_get"
    assert "load 2.1x slower when called by db_get since" in title(caller, replace(SHOP, function="load"))
    assert change(replace(SLOWER, expression="not db_get->load"), "load") == "2.1x slower unless called by db_get"


def test_numbers_are_left_out_where_there_are_none() -> None:
    """A new path has no level; a level without a range yet is told without one."""
    assert numbers(replace(SLOWER, observed=Level())) == ""
    assert numbers(replace(SLOWER, expected=Level())) == "median 160 us"
    mean, normal = (Level(mean=Quantile(ns=ns)) for ns in (78e3, 23e3))
    assert numbers(replace(SLOWER, quantile="mean", observed=mean, expected=normal)) == "mean 78 us, normal 23 us"
    bare = Level(p50=Quantile(ns=76e3))
    assert numbers(replace(SLOWER, expected=bare)) == "median 160 us, normal 76 us"
    assert numbers(replace(SLOWER, quantile="p90")) == "p90 252 us, normal 115-127 us"
    assert numbers(replace(SLOWER, what=What.PATH)) == ""


def test_a_caller_names_the_function_that_explains_it() -> None:
    """One cause is one problem; the others say through which function they are slower."""
    caller = replace(SLOWER, because="ab+0x20", cause=Cause(kind=CauseKind.CALLEE))
    subject = replace(SHOP, function="serve", because="checksum")
    assert title(caller, subject) == "shop: serve 2.1x slower since 02:47, through checksum"
    assert sentence(caller, subject).endswith("; only through checksum")
    assert title(caller, replace(subject, because="")).endswith("through a callee")


SORT = MoreSamples(function="qsort_r", module="libc.so.6", cpus=0.41, usual_cpus=0.02)


def test_what_samples_find_more_of_ends_the_title_and_the_text() -> None:
    """A callee, or a caller whose calls take longer."""
    load = replace(SLOWER, cause=Cause(kind=CauseKind.LOAD, text="Its calls work longer.", more_samples=SORT))
    assert title(load, SHOP) == "shop: checksum 2.1x slower since 02:47, likely load in qsort_r"
    assert metric_text(load, SHOP).endswith(
        "likely cause: load. Its calls work longer. Samples find more CPU time in qsort_r: 0.41 CPUs, usually 0.02."
    )
    blocks = replace(load, cause=Cause(kind=CauseKind.CALLEE, more_samples=SORT))
    assert title(blocks, SHOP) == "shop: checksum 2.1x slower since 02:47, likely its callee qsort_r"
    render = replace(SORT, function="render", is_caller=True, cpus=1.26, usual_cpus=0.0)
    assert samples_words(render) == "Samples find more CPU time in calls from render: 1.3 CPUs, usually 0."
    called = replace(load, cause=Cause(kind=CauseKind.LOAD, proven=True, more_samples=render))
    assert title(called, SHOP) == "shop: checksum 2.1x slower since 02:47, load from render"


def test_where_calls_wait_and_which_callee_has_the_difference_end_the_title() -> None:
    """The function itself needs no second name."""
    growth = Growth(what="futex", call="futex", function="lock_buffer", more_ns=7e4, of_ns=9e4)
    waits = replace(SLOWER, cause=Cause(kind=CauseKind.WAIT, proven=True, growth=growth))
    assert title(waits, SHOP) == "shop: checksum 2.1x slower since 02:47, waiting in lock_buffer"
    deep = replace(growth, callers=("change_row", "run"), waker="unlock")
    assert growth_words(deep) == (
        "futex under lock_buffer, called by change_row, run, ended by unlock, +70 us of +90 us a call"
    )
    parts = (
        GrowthPart(what="futex", call="futex", function="take_lock", share=0.66),
        GrowthPart(what="file", call="fsync", share=0.34),
    )
    assert growth_words(replace(growth, parts=parts)) == (
        "in lock_buffer: 66 % futex under take_lock, 34 % file fsync, +70 us of +90 us a call"
    )
    itself = replace(waits, cause=replace(waits.cause, growth=replace(growth, function="")))
    assert title(itself, SHOP) == "shop: checksum 2.1x slower since 02:47, waiting"
    callee = Cause(kind=CauseKind.CALLEE, growth=replace(growth, what="callee", function="read_block"))
    assert title(replace(SLOWER, cause=callee), SHOP) == (
        "shop: checksum 2.1x slower since 02:47, likely its callee read_block"
    )


def test_closing_is_a_line_too() -> None:
    """What was wrong, from when to when; and who acknowledged it with which words."""
    closed = replace(SLOWER, state=ViolationState.RECOVERED, closed_ns=SINCE_NS + 705 * SECOND)
    told = "checksum (shop), 2.1x slower from 02:47:10 to 02:58:55; cause: code"
    assert log_line(closed, SHOP) == f"normal again: {told}"
    known = replace(closed, state=ViolationState.ACKNOWLEDGED, closed_by="on-call", comment="wanted")
    assert log_line(known, SHOP) == f'acknowledged by on-call: {told} "wanted"'


def test_letters_of_a_terminal() -> None:
    """Unit, factor and range change; names that look like them do not."""
    assert typeset("f2x 2.1x slower since 02:47: median 160 us, normal 72-80 us; cause: us") == (
        "f2x 2.1× slower since 02:47: median 160 µs, normal 72–80 µs; cause: us"
    )


@given(
    function=st.text(min_size=1, max_size=300),
    program=st.text(max_size=60),
    because=st.text(max_size=60),
    factor=st.floats(1e-6, 1e6),
    expression=st.text(max_size=300) | st.sampled_from(["true", "false", "not a->b", "`" + "x" * 200 + "`->b"]),
    what=st.sampled_from(What),
)
def test_titles_and_texts_keep_to_their_length(
    function: str, program: str, because: str, factor: float, expression: str, what: What
) -> None:
    """However long or strange the names are: one line, bounded, nothing that controls a terminal."""
    subject = replace(SHOP, function=function, program=program, because=because)
    violation = replace(SLOWER, factor=factor, expression=expression, what=what, because="k" if because else "")
    shown = title(violation, subject)
    assert len(shown) <= LONGEST_TITLE
    assert len(metric_text(violation, subject)) <= LONGEST_TEXT
    assert "\n" not in shown + sentence(violation, subject) + log_line(violation, subject)
    assert "\x1b" not in shown + sentence(violation, subject) + log_line(violation, subject)
