"""What a configuration names and this host may not have: checked before a start, and by ``--check-config``.

Commands that only take settings from a configuration may do so on another host, so reading it does not check this.
"""

from __future__ import annotations

import grp
import os
from pathlib import Path

from .fields import shown
from .loader import ConfigError
from .tree import Config


def check_named(config: Config, name: str) -> None:
    """Raise ConfigError if the host does not have what the daemon needs for its start.

    Parameters
    ----------
    config : Config
    name : str
        Of the configuration, in messages.
    """
    group, interpreter = config.socket.group, config.kernel.interpreter
    if group is not None:
        try:
            grp.getgrnam(group)
        except KeyError:
            raise ConfigError(f"{name}: socket.group: there is no group {shown(group)}") from None
    # Its default may be missing where doctor names the package
    if interpreter != Config().kernel.interpreter and not _runs(interpreter):
        raise ConfigError(f"{name}: kernel.interpreter: {shown(interpreter)} is not a file that can be executed")


def _runs(path: str) -> bool:
    return Path(path).is_file() and os.access(path, os.X_OK)
