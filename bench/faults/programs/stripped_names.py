"""Names of static functions that a stripped program does not tell, so that globs of true names fit them too.

They were found by hand, by the exported functions that each calls. So they hold for one build only.
"""

from __future__ import annotations

import subprocess
from fnmatch import fnmatchcase

NAMES: dict[str, dict[str, str]] = {
    # Debian's postgresql-15 15.18-0+deb12u1, amd64
    "44c007cfee140e4c25e8a434008096828e70a92c": {
        "postgres+0x1e4360": "CommitTransaction",
        "postgres+0x1e84f0": "issue_xlog_fsync",
        "postgres+0x23dce0": "transformOptionalSelectInto",
        "postgres+0x3b00a0": "grouping_planner",
        "postgres+0x472280": "exec_simple_query",
        "postgres+0x474bf0": "PortalRunSelect",
        "postgres+0x4751e0": "ProcessQuery",
        "postgres+0x475d50": "PortalRunMulti",
    },
    # Debian's nginx 1.22.1-9+deb12u9, amd64
    "e5e5535861009b8c7db3076c5597dffb86383240": {"nginx+0x95fd0": "ngx_http_gzip_body_filter"},
}
"""Build-id -> the name that a tool has for a function -> its name in the source."""


def with_stripped(globs: tuple[str, ...], path: str) -> tuple[str, ...]:
    """Return globs of names, and what functions of this program are called that these would fit."""
    names = NAMES.get(_build_id(path), {})
    return (*globs, *(told for told, name in names.items() if any(fnmatchcase(name, glob) for glob in globs)))


def _build_id(path: str) -> str:
    notes = subprocess.run(["readelf", "--notes", path], check=True, capture_output=True, text=True).stdout
    return next((line.split()[-1] for line in notes.splitlines() if "Build ID:" in line), "")
