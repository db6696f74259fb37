"""Every file that an installation puts on a host, with its place: for pip, and for a package of a distribution."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specmine.daemon.config.tree import default_text
from specmine.daemon.main import DEFAULT_CONFIG
from specmine.model.errors import InputError

from . import completion, manual

UNITS = (
    "specmined.service",
    "specmined.socket",
    "specmine-web.service",
    "specmined-forward.service",
    "specmined-forward.timer",
)
SYSUSERS = "specmine.sysusers.conf"
SHARED = (
    "specmined-old-kernel.conf",
    "specmine-alerts.yaml",
    "specmine-fleet-alerts.yaml",
    "specmine-alertmanager.yaml",
    "specmine-alertmanager.tmpl",
    "specmine-problems.json",
    "specmine-cost.json",
)
EXPECTED_FOLDER = "/usr/local/bin"
"""Where the units, as they are in the repository, expect the commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Folders of a host, below its root."""

    units: str
    sysusers: str
    share: str
    zsh: str


LOCAL = Layout(
    units="/etc/systemd/system",
    sysusers="/etc/sysusers.d",
    share="/usr/local/share",
    zsh="/usr/local/share/zsh/site-functions",
)
"""Beside an installation by pip: the places of the administrator."""
PACKAGED = Layout(
    units="/usr/lib/systemd/system",
    sysusers="/usr/lib/sysusers.d",
    share="/usr/share",
    zsh="/usr/share/zsh/vendor-completions",
)
"""In a package of Debian: the places of the distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """One file: where it belongs, what it holds."""

    path: str
    text: str
    is_configuration: bool = False
    """Whether it is the user's once it is there: never replaced."""


def host_files(layout: Layout, commands: str) -> Iterator[HostFile]:
    """Yield every file.

    Parameters
    ----------
    layout : Layout
    commands : str
        The folder that holds ``specmine`` and ``specmined``.

    Raises
    ------
    InputError
        If the installation lacks its data files.
    """
    source = _source()
    yield HostFile(path=str(DEFAULT_CONFIG), text=configuration_text(), is_configuration=True)
    for name in UNITS:
        text = (source / name).read_text(encoding="utf-8")
        yield HostFile(path=f"{layout.units}/{name}", text=text.replace(f"{EXPECTED_FOLDER}/", f"{commands}/"))
    yield HostFile(path=f"{layout.sysusers}/specmine.conf", text=(source / SYSUSERS).read_text(encoding="utf-8"))
    for name in SHARED:
        yield HostFile(path=f"{layout.share}/specmine/{name}", text=(source / name).read_text(encoding="utf-8"))
    for name, text in manual.pages().items():
        yield HostFile(path=f"{layout.share}/man/man{name[-1]}/{name}", text=text)
    for path, shell in (
        (f"{layout.share}/bash-completion/completions/specmine", "bash"),
        (f"{layout.zsh}/_specmine", "zsh"),
        (f"{layout.share}/fish/vendor_completions.d/specmine.fish", "fish"),
    ):
        yield HostFile(path=path, text=completion.script(shell))


def configuration_text() -> str:
    """Return the default configuration with every key commented out: a line is to be added, none to be removed."""
    head = (
        "# The least that is needed is a program to watch:\n"
        "#programs: [{name: shop, exe: /usr/sbin/apache2}]\n"
        "# Then: specmined --check-config; systemctl enable --now specmined; specmine status\n#\n"
    )
    lines = (line if not line or line.startswith("#") else f"#{line}" for line in default_text().splitlines())
    return head + "\n".join(lines) + "\n"


def commands_folder() -> str:
    """Return the folder of the commands of this installation."""
    return str(Path(sys.executable).parent)


def _source() -> Path:
    """Return the folder with the units and rules: of an installation by pip, or of a clone."""
    clone = Path(__file__).resolve().parents[2] / "systemd"
    for folder in (Path(sysconfig.get_path("data")) / "share/specmine", clone):
        if (folder / UNITS[0]).is_file():
            return folder
    raise InputError("the units and rules of this installation are missing", remedy="install specmine again")
