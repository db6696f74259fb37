"""The socket file: there with its rights, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from specmine.daemon.socket.listener import listening
from specmine.model.errors import InputError


def test_an_unknown_group_leaves_no_file(tmp_path: Path) -> None:
    """The key to be changed is named, and no socket is left that nobody answers."""
    path = tmp_path / "s.sock"
    with pytest.raises(InputError, match=r"there is no group 'nosuch'; change socket\.group"):
        listening(path, 0o666, "nosuch")
    assert not path.exists()


def test_a_socket_has_its_mode(tmp_path: Path) -> None:
    """Whatever the umask is."""
    path = tmp_path / "s.sock"
    listening(path, 0o660, None).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
