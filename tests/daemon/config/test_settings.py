"""A configuration that is read again: what it changes, and what stays."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest

from specmine.daemon.controller.phase import State
from tests.support.lives import SECOND, Life, config_text


def test_a_reload_changes_what_it_can(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A new budget holds from the reload on; keys that need a restart are named and left."""
    logging.getLogger("specmine").propagate = True
    life = Life(tmp_path)
    seen: list[float] = []
    new = config_text(tmp_path, "budget: {overhead: 0.5%}\nfunctions: {ignore: [smooth]}").replace(
        "run/s.sock", "x.sock"
    )
    life.at(29, lambda: life.rewrite(new))
    life.at(30, life.daemon.reload)
    life.at(33, lambda: seen.append(life.ask(command="status")["budget"]["overhead"]["promised_ratio"]))
    with caplog.at_level(logging.INFO, "specmine"):
        state = life.run(35)
    assert seen == [0.005]
    assert state.settings.overhead == 0.005
    assert {each.state for each in state.functions.values() if each.function.name == "smooth"} == {State.EXCLUDED}
    assert any(
        "only at a restart" in record.message and "socket.path" in str(record.__dict__) for record in caplog.records
    )


def test_a_reload_leaves_the_kill_switch_where_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever holds the probes looks for the file named at the start: `off` makes that one, whatever was read since.

    And a file that names the old value again changes nothing.
    """
    logging.getLogger("specmine").propagate = True
    old = config_text(tmp_path, f"kill_switch: {tmp_path}/off")
    life = Life(tmp_path, config=old)
    life.at(2, lambda: life.rewrite(old.replace("/off", "/elsewhere")))
    life.at(3, life.daemon.reload)
    life.at(5, lambda: life.rewrite(old))
    life.at(6, life.daemon.reload)
    life.at(8, lambda: life.daemon.switch(off=True))
    with caplog.at_level(logging.INFO, "specmine"):
        life.run(10)
    assert (tmp_path / "off").exists() and not (tmp_path / "elsewhere").exists()
    warned = [vars(record)["facts"]["keys"] for record in caplog.records if "only at a restart" in record.message]
    changed = [vars(record)["facts"]["changed"] for record in caplog.records if "read again" in record.message]
    assert (warned, changed) == (["kill_switch"], ["nothing", "nothing"])


@pytest.mark.parametrize(
    "bad",
    [
        "budget: {overhed: 1%}",
        "programs: [",
        "budget: {overhead: 900%}",
        'windows: {calls: !!int ""}',
        "experiments: {enabled: !!bool zz}",
        "programs: [~]",
    ],
)
def test_a_bad_new_configuration_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: str) -> None:
    """The old configuration stays, and the log says what is wrong."""
    logging.getLogger("specmine").propagate = True
    life = Life(tmp_path)
    life.at(2, lambda: life.rewrite(bad))
    life.at(3, life.daemon.reload)
    with caplog.at_level(logging.ERROR, "specmine"):
        state = life.run(5)
    assert state.settings.overhead == 0.01
    assert [record.message for record in caplog.records] == ["the new configuration is refused, the old one stays"]


def test_sighup_reads_the_configuration_again(tmp_path: Path) -> None:
    """SIGHUP is a reload."""
    life = Life(tmp_path)
    life.at(2, lambda: life.rewrite(config_text(tmp_path, "verify_every: 30s")))
    life.at(3, lambda: os.kill(os.getpid(), signal.SIGHUP))
    assert life.run(5).settings.verify_every_ns == 30 * SECOND
