"""Run the unit's life under a systemd of its own, in namespaces of this machine. ``make systemd`` calls it; root."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.patience import FACTOR

HERE = Path(__file__).parent
LIMIT_S = 900 * FACTOR


def main() -> int:
    """Run it; print the rows."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the machine is ended, too
    with tempfile.TemporaryDirectory(prefix="specmine-systemd-") as folder:
        command = (
            f"cd {ROOT} && PYTHONPATH={ROOT / 'src'}:{ROOT} PYTHONDONTWRITEBYTECODE=1 SPECMINE_TEST_PATIENCE={FACTOR} "
            f"{sys.executable} {HERE / 'unit_life.py'}"
        )
        console = Path(folder) / "console"
        with console.open("wb") as said:
            try:
                subprocess.run(
                    [HERE / "container.sh", folder, command], check=False, stdout=said, stderr=said, timeout=LIMIT_S
                )
            except subprocess.TimeoutExpired:
                print("systemd did not end in time", file=sys.stderr)
        output, status = (Path(folder) / name for name in ("output", "status"))
        print(output.read_text() if output.exists() else console.read_text(errors="replace"))
        return int(status.read_text()) if status.exists() else 1


if __name__ == "__main__":
    sys.exit(main())
