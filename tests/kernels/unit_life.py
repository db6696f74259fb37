"""The unit's whole life under a systemd that is PID 1: run inside a machine of its own, prints a row a behaviour.

usage: unit_life.py (as a unit; container.sh and the guest start it). Exit 1 if a row failed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.support.breakpoints import Text
from tests.support.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
UNIT, DROP_INS = Path("/etc/systemd/system/specmined.service"), Path("/etc/systemd/system/specmined.service.d")
CONFIG, TARGET = Path("/etc/specmine/specmined.yaml"), Path("/usr/local/bin/specmine-target")
SOCKET = Path("/etc/systemd/system/specmined.socket")
PORT = 19752
"""Not the usual one: the network is that of a machine on which a daemon may run."""
_RUN = """#!{python}
import sys
from specmine.{module} import main
sys.exit(main())
"""


def run(*argv: object) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run([str(a) for a in argv], check=False, capture_output=True, text=True)


def shown(*names: str) -> dict[str, str]:
    """Return properties of the unit."""
    out = run("systemctl", "show", "specmined", "--property", ",".join(names)).stdout
    return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)


def main_pid() -> int:
    """Return the daemon's process id, 0 if there is none."""
    return int(shown("MainPID").get("MainPID", "0"))


def wait_for(what: Callable[[], object], limit_s: float) -> bool:
    """Wait until something is true."""
    end_s = time.monotonic() + patient(limit_s)
    while time.monotonic() < end_s:
        if what():
            return True
        time.sleep(0.1)
    return False


def drop_in(name: str, text: str) -> None:
    """Add to the unit."""
    DROP_INS.mkdir(exist_ok=True)
    (DROP_INS / f"{name}.conf").write_text(f"[Service]\n{text}\n")
    run("systemctl", "daemon-reload")


def configure(more: str = "") -> None:
    """Write the daemon's configuration."""
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.write_text(f"programs: [{{exe: {TARGET}}}]\nmetrics: {{listen: 127.0.0.1:{PORT}}}\n{more}")


def install() -> None:
    """Install as the manual says, into the places that the unit names; and a program to be watched."""
    folder = Path("/opt/specmine")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    run(shutil.which(version, path="/usr/bin") or sys.executable, "-m", "venv", "--without-pip", folder)
    paths = f"{PROJECT / 'src'}\n{sysconfig.get_paths()['purelib']}\n"
    (folder / "lib" / version / "site-packages/specmine.pth").write_text(paths)
    for name, module in (("specmine", "cli.main"), ("specmined", "daemon.main")):
        command = Path("/usr/local/bin") / name
        command.write_text(_RUN.format(python=folder / "bin/python", module=module))
        command.chmod(0o755)
    users = Path("/usr/lib/sysusers.d/specmine.conf")
    for file, place in (("specmine.sysusers.conf", users), (UNIT.name, UNIT), (SOCKET.name, SOCKET)):
        place.parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT / "systemd" / file, place)
    run("systemd-sysusers")
    source = PROJECT / "tests/programs/paths.c"
    built = run("gcc", "-std=gnu11", "-O2", "-fno-omit-frame-pointer", "-o", TARGET, source, "-lm", "-lpthread")
    assert built.returncode == 0, built.stderr
    own = SOCKET.with_suffix(".socket.d")
    own.mkdir(exist_ok=True)
    (own / "port.conf").write_text(f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{PORT}\n")
    configure()
    limit_s = patient(90)
    drop_in("patience", f"TimeoutStartSec={limit_s:.0f}\nEnvironment=SPECMINE_TIME_SCALE={patient(1):.0f}")


class Life:
    """The rows, and the program that must outlive them all."""

    def __init__(self) -> None:
        """Start the program."""
        self.failed = 0
        self.target = subprocess.Popen([TARGET, "100000", "2000"], stdout=subprocess.PIPE, text=True)

    def row(self, name: str, *, ok: bool, detail: object = "") -> None:
        """Print one row: it fails too if the program was harmed."""
        ok = ok and self.target.poll() is None
        self.failed += not ok
        print(f"{'ok' if ok else 'FAILED':7}{name:58} {detail}", flush=True)

    def probed(self) -> bool:
        """Tell whether probes are in the program's text."""
        with Text([self.target.pid]) as text:
            return bool(text.changed())

    def probing(self) -> bool:
        """Wait until it is so."""
        return wait_for(self.probed, 60)

    def active(self) -> bool:
        """Tell whether the daemon has said that it is ready."""
        return shown("ActiveState")["ActiveState"] == "active"

    def back(self, before: int, limit_s: float = 90) -> bool:
        """Wait until another daemon is ready."""
        return wait_for(lambda: main_pid() not in (0, before) and self.active(), limit_s)

    def start(self) -> None:
        """Start the unit for the first time."""
        told = run("systemctl", "start", "specmined")
        status = Path("/proc") / str(main_pid()) / "status"
        words = status.read_text() if main_pid() else ""
        self.row("start: ready when systemctl returns", ok=told.returncode == 0 and self.active(), detail=told.stderr)
        user = re.search(r"^Uid:\t(\d+)", words, re.MULTILINE)
        granted = re.search(r"^CapEff:\t(\w+)", words, re.MULTILINE)
        ok = user is not None and user[1] != "0" and granted is not None
        self.row("it is not root", ok=ok, detail=f"capabilities {granted[1] if granted else '?'}")
        self.row("it probes the program", ok=self.probing())
        self.row("it counts the program's calls", ok=wait_for(counted, 120))

    def reload(self) -> None:
        """Reload: a good file is taken, a bad one changes nothing."""
        before = main_pid()
        configure("log: {format: json}\n")
        good = run("systemctl", "reload", "specmined").returncode == 0
        configure("nonsense: 1\n")
        bad = run("systemctl", "reload", "specmined").returncode == 0
        ok = good and bad and wait_for(lambda: "nonsense" in journal(), 20)
        configure()
        self.row("reload: a wrong file is told and changes nothing", ok=ok and main_pid() == before and self.active())

    def end_by(self, number: signal.Signals, name: str, result: str) -> None:
        """Break the daemon: systemd starts another, and no probe stays meanwhile."""
        before, count = main_pid(), int(shown("NRestarts")["NRestarts"])
        self.probing()
        os.kill(before, number)
        began_s = time.monotonic()
        clean = wait_for(lambda: not self.probed(), 20)
        clean_s = time.monotonic() - began_s
        again = self.back(before)
        again_s = time.monotonic() - began_s
        more = int(shown("NRestarts")["NRestarts"]) - count
        ok = clean and again and more == 1 and f"Failed with result '{result}'" in journal()
        self.row(
            name, ok=ok, detail=f"text clean after {clean_s:.1f} s, ready again after {again_s:.1f} s, {more} restart"
        )

    def upgrade(self) -> None:
        """Install another version of the unit and the program while it runs, and restart it."""
        before = main_pid()
        shutil.copy(PROJECT / "systemd" / UNIT.name, UNIT)
        again = Path("/usr/local/bin/specmined")
        text = again.read_text()
        again.unlink()
        again.write_text(text)
        again.chmod(0o755)
        run("systemctl", "daemon-reload")
        told = run("systemctl", "try-restart", "specmined")
        self.row("upgrade: daemon-reload and try-restart", ok=told.returncode == 0 and self.back(before))

    def scraped(self, name: str) -> None:
        """Ask for the metrics: the daemon has no network but the socket that systemd passes it."""
        self.row(name, ok=wait_for(scrape, 30), detail=network())

    def no_scrape_starts_it(self, name: str) -> None:
        """Ask for the metrics of a daemon that is not there: that must not start it."""
        refused = not scrape()
        time.sleep(patient(2))
        self.row(name, ok=refused and not self.active() and not main_pid(), detail=shown("ActiveState"))

    def refuse(self, name: str, code: int, how: Callable[[], None], undo: Callable[[], None]) -> None:
        """Have it end at the start with a code after which systemd must not try again."""
        run("systemctl", "stop", "specmined")
        run("systemctl", "reset-failed", "specmined")
        how()
        run("systemctl", "start", "specmined")
        wait_for(lambda: shown("ActiveState")["ActiveState"] == "failed", 30)
        time.sleep(patient(7))  # RestartSec is 1
        now = shown("ActiveState", "NRestarts", "ExecMainStatus")
        ended = now["ActiveState"] == "failed" and now["NRestarts"] == "0"
        self.row(name, ok=ended and f"status={code}/" in journal(), detail=now)
        self.no_scrape_starts_it(f"exit {code}: a scrape does not start it")
        undo()
        run("systemctl", "reset-failed", "specmined")

    def stop(self) -> None:
        """Stop it."""
        if not self.active():
            run("systemctl", "start", "specmined")
        self.probing()
        began_s = time.monotonic()
        run("systemctl", "stop", "specmined")
        took_s = time.monotonic() - began_s
        group = Path("/sys/fs/cgroup/system.slice/specmined.service/cgroup.procs")
        left = group.read_text().split() if group.exists() else []
        now = shown("Result", "ExecMainStatus", "ActiveState")
        ended = now == {"Result": "success", "ExecMainStatus": "0", "ActiveState": "inactive"}
        ok = ended and not left and not self.probed()
        self.row(
            "stop: exit 0, no process and no probe left",
            ok=ok,
            detail=f"{took_s:.1f} s, {now}, left {left}, probed {self.probed()}",
        )

    def by_hand(self) -> None:
        """Mine from a session: in a scope that weighs a fifth of a service, which goes with it."""
        mine = ("/usr/local/bin/specmine", "mine", "--pid", str(self.target.pid), "--duration", "6")
        session = ("systemd-run", "--scope", "--quiet", "--slice=user.slice")
        for each in (("unmask", "dbus.service", "dbus.socket"), ("daemon-reload",), ("start", "dbus.socket")):
            run("systemctl", *each)
        with subprocess.Popen(
            (*session, *mine), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            name = f"specmine-by-hand-{process.pid}.scope"
            group, controllers = Path(f"/proc/{process.pid}/cgroup"), Path("/sys/fs/cgroup/cgroup.controllers")
            entered = wait_for(lambda: process.poll() is not None or name in group.read_text(), 20)
            weight = run("systemctl", "show", "--property=CPUWeight", "--value", name).stdout.strip()
            out, _ = process.communicate(timeout=patient(60))
        done = process.returncode in (0, 3)  # 3: nothing was stable in so short a time
        gone = wait_for(lambda: run("systemctl", "is-active", name).stdout.strip() == "inactive", 20)
        if "cpu" not in controllers.read_text().split():
            self.row("mine by hand, without a CPU controller", ok=done, detail=out[-200:])
            return
        ok = entered and weight == "20" and done and gone
        self.row("mine by hand: a scope of a fifth of a service's weight", ok=ok, detail=f"{weight} {out[-200:]}")

    def security(self, name: str = "systemd-analyze security") -> None:
        """Have systemd judge how exposed the unit is."""
        out = run("systemd-analyze", "security", "specmined.service", "--no-pager").stdout
        found = re.search(r"exposure level for specmined.service: ([\d.]+)", out)
        self.row(name, ok=found is not None, detail=found[1] if found else out[-200:])


def scrape() -> bool:
    """Tell whether the metrics can be read."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=patient(10)) as answer:
            return b"specmine_" in answer.read()
    except OSError:
        return False


def network() -> str:
    """Return the interfaces that the daemon sees."""
    lines = Path(f"/proc/{main_pid()}/net/dev").read_text().splitlines()[2:]
    return "interfaces: " + " ".join(line.split(":")[0].strip() for line in lines)


def counted() -> bool:
    """Tell whether the daemon has counted calls of the program's own functions."""
    out = run("/usr/local/bin/specmine", "functions", "--format", "json").stdout
    try:
        functions = json.loads(out)["functions"]
    except (ValueError, KeyError):
        return False
    return any(each["calls"] > 0 and each["module"] == TARGET.name for each in functions)


def journal() -> str:
    """Return what systemd and the daemon said of the unit."""
    return run("journalctl", "--unit", "specmined", "--no-pager", "--output", "cat").stdout


def main() -> int:
    """Go through the unit's life."""
    install()
    life = Life()
    try:
        life.security()
        life.start()
        if not main_pid():
            return 1
        life.scraped("it is scraped, without a network of its own")
        life.reload()
        life.end_by(signal.SIGKILL, "killed: systemd starts it again", "signal")
        life.upgrade()
        drop_in("watchdog", f"WatchdogSec={patient(8):.0f}")  # longer than a stop takes
        before = main_pid()
        run("systemctl", "restart", "specmined")
        life.row("restart", ok=life.back(before))
        life.end_by(signal.SIGSTOP, "hangs: the watchdog kills it", "watchdog")
        (DROP_INS / "watchdog.conf").unlink()
        run("systemctl", "daemon-reload")
        life.scraped("restarted: it is scraped again")
        life.stop()
        life.no_scrape_starts_it("stopped: a scrape does not start it")
        life.by_hand()
        life.refuse("exit 2, wrong configuration: not started again", 2, lambda: configure("nonsense: 1\n"), configure)
        none = "CapabilityBoundingSet=\nAmbientCapabilities="
        life.refuse(
            "exit 4, privilege is missing: not started again",
            4,
            lambda: drop_in("bare", none),
            (DROP_INS / "bare.conf").unlink,
        )
        life.target.send_signal(signal.SIGTERM)
        out, _ = life.target.communicate(timeout=patient(60))
        ok = life.target.returncode == 0
        print(f"{'ok' if ok else 'FAILED':7}the program ends by itself, with its own counts  {out.strip()[-120:]}")
        life.failed += not ok
    finally:
        life.target.kill()
        if life.failed:
            print(journal()[-6000:])
    return 1 if life.failed else 0


if __name__ == "__main__":
    sys.exit(main())
