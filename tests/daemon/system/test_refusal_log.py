"""One line in the log for each name and reason of a refusal, not one for each build."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from specmine.daemon.system import refusal_log
from specmine.daemon.system.refusal_log import QUIET_NS, RefusalLog
from specmine.model.batch import Batch, Refusal
from specmine.model.function import Function, Reason
from specmine.model.observation import Kind

MINUTE = 60 * 10**9


def function(name: str, build: str) -> Function:
    """Return a function of a build of the program `shop`."""
    return Function(build_id=build, offset=int.from_bytes(name.encode()), name=name, module="shop")


def lines(
    caplog: pytest.LogCaptureFixture, log: RefusalLog, now_ns: int, *refused: Function, code: str = "noreturn",
    text: str = "it never returns", catalog: Mapping[str, Function] | None = None,
) -> list[str]:  # fmt: skip
    """Return what is logged as these functions are refused."""
    reason = Reason(code=code, text=text)
    refusals = tuple(Refusal(function=each.key, kind=Kind.COUNT, reason=reason) for each in refused)
    known = {each.key: each for each in refused} if catalog is None else catalog
    caplog.clear()
    with caplog.at_level(logging.INFO, refusal_log.__name__):
        log.arrived(Batch(now_ns=now_ns, refusals=refusals), known)
    assert {each.getMessage() for each in caplog.records} <= {"refused"}
    told = [vars(each)["facts"] for each in caplog.records]
    return [f"{each['function']}: {each['code']}, {each['why']}" for each in told]


def test_each_build_of_a_program_does_not_say_it_again(caplog: pytest.LogCaptureFixture) -> None:
    """The same function of ten builds, one a minute, is one line."""
    log = RefusalLog()
    told = [lines(caplog, log, n * MINUTE, function("fail", f"{n:04x}")) for n in range(10)]
    assert told == [["fail (shop): noreturn, it never returns"], *([[]] * 9)]


def test_other_names_and_other_reasons_are_said(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever was said before of this name, or of this reason."""
    log = RefusalLog()
    fail, stop = function("fail", "aa"), function("stop", "aa")
    assert len(lines(caplog, log, 0, fail, stop, fail)) == 2
    assert lines(caplog, log, 1, fail, code="vdso", text="not in a file") == ["fail (shop): vdso, not in a file"]
    assert lines(caplog, log, 2, fail, stop) == []


def test_after_a_quiet_hour_it_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    """The hour begins with the last refusal, said or not."""
    log = RefusalLog()
    old, new = function("fail", "aa"), function("fail", "bb")
    assert lines(caplog, log, 0, old)
    assert not lines(caplog, log, QUIET_NS - 1, new)
    assert not lines(caplog, log, 2 * QUIET_NS - 2, old)
    assert lines(caplog, log, 3 * QUIET_NS - 2, new)


def test_a_function_that_nobody_knows_is_named_by_its_key(caplog: pytest.LogCaptureFixture) -> None:
    """It is of a build that is gone already."""
    fail = function("fail", "aa")
    assert lines(caplog, RefusalLog(), 0, fail, catalog={}) == [f"{fail.key}: noreturn, it never returns"]


def test_what_is_kept_is_bounded(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those refused last are kept: what goes on being refused is not said again because much else is."""
    monkeypatch.setattr(refusal_log, "MOST_KEPT", 3)
    log = RefusalLog()
    first = function("first", "aa")
    assert lines(caplog, log, 0, first)
    for n in range(10):
        assert lines(caplog, log, n, function(f"f{n}", "aa"), first) == [f"f{n} (shop): noreturn, it never returns"]
    assert not lines(caplog, log, 11, function("f9", "aa"), function("f8", "aa"), first)
    assert lines(caplog, log, 12, function("f1", "aa"))
    assert len(log._last_ns) == 3
