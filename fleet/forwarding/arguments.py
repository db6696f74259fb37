"""The command line of ``specmined-forward``; the manual page is written from it, also where psycopg is missing."""

from __future__ import annotations

import argparse
from pathlib import Path

from specmine import __version__
from specmine.daemon.main import DEFAULT_CONFIG


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = argparse.ArgumentParser(
        prog="specmined-forward", description="Sends what specmined learned on this host to the fleet, once."
    )
    made.add_argument(
        "--config", type=Path, metavar="FILE", help=f"the daemon's configuration (default: {DEFAULT_CONFIG})"
    )
    made.add_argument("--repeat", action="store_true", help="go on, each fleet.every, instead of once")
    made.add_argument(
        "--while-learning",
        action="store_true",
        help="send again each minute while this host learns for the fleet, for a quarter of an hour at most",
    )
    made.add_argument("--version", action="version", version=f"specmined-forward {__version__}")
    return made
