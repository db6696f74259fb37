"""Whom a systemd unit names: its own processes, and nobody who names a group like it."""

from __future__ import annotations

import pytest

from specmine.probes.process.control_groups import parse_control_groups, runs_in_unit

UNIT = "apache2.service"


@pytest.mark.parametrize(
    "path",
    [
        "/system.slice/apache2.service",
        "/system.slice/apache2.service/workers/1",
        "/system.slice/system-apache2.slice/apache2.service",
        "/web.slice/apache2.service",
        "/apache2.service",
    ],
)
def test_a_unit_of_the_host_is_chosen(path: str) -> None:
    """Its own processes and those of its delegated groups, in whatever slice but a user's, in both versions."""
    assert runs_in_unit([("", path)], UNIT)
    assert runs_in_unit([("cpu,cpuacct", "/"), ("name=systemd", path)], UNIT)


@pytest.mark.parametrize(
    "path",
    [
        "/user.slice/user-1000.slice/user@1000.service/app.slice/apache2.service",
        "/user.slice/apache2.service",
        "/system.slice/docker-1f.scope/system.slice/apache2.service",
        "/docker/1f/system.slice/apache2.service",
        "/lxc.payload.a/apache2.service",
        "/machine.slice/systemd-nspawn@a.service/payload/apache2.service",
        "/system.slice/other.service/apache2.service",
        "/system.slice/x\x0capache2.service",
        "/../system.slice/apache2.service",
        "/",
    ],
)
def test_a_group_that_another_has_named_is_not(path: str) -> None:
    """A user's systemd, a container, and a service with delegated groups name groups below their own as they like."""
    assert not runs_in_unit([("", path)], UNIT)
    assert not runs_in_unit([("cpu", "/system.slice/apache2.service")], UNIT)


def test_slices_and_scopes_of_the_host_are_units_too() -> None:
    """All processes of a slice, and those of a scope at the top."""
    assert runs_in_unit([("", "/system.slice/system-postgresql.slice/a.service")], "system-postgresql.slice")
    assert runs_in_unit([("", "/init.scope")], "init.scope")
    assert not runs_in_unit([("", "/system.slice/a.service/b.slice")], "b.slice")


@pytest.mark.parametrize("cutter", [b"\x0b", b"\x0c", b"\r", b"\x1c", "\x85".encode(), b"\x85", "\u2028".encode()])
def test_the_name_of_a_group_adds_no_group(cutter: bytes) -> None:
    """What Python takes for an end of line is part of the name, and so are bytes that are no text."""
    groups = parse_control_groups(b"1:name=x:/y\n0::/user.slice/x%b0::/system.slice/apache2.service\n\n" % cutter)
    assert [controllers for controllers, _ in groups] == ["name=x", ""]
    assert not runs_in_unit(groups, UNIT)
