"""A stock nginx that compresses, under a bounded load, with faults of configuration and host."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults.programs.cpu_group import CpuGroup
from bench.faults.programs.fault import Fault, Service, replaced, wandering
from bench.faults.programs.stripped_names import with_stripped
from bench.lib import debian_programs
from bench.lib.child_processes import running, started
from bench.lib.http_load import read_account
from bench.lib.peers import stopped

RATE = 200


def seconds_of(text: bytes, level: int) -> float:
    """Return the median CPU time to compress a text."""
    took = []
    for _ in range(50):
        began = time.thread_time()
        zlib.compress(text, level)
        took.append(time.thread_time() - began)
    return statistics.median(took)


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Run the server and its load."""
    with ExitStack() as stack:
        folder.chmod(0o755)
        prepared = debian_programs.nginx(1, "gzip_comp_level 1;", "gzip_http_version 1.0;", "access_log off;")(folder)
        server = started(prepared, cwd=folder, start_new_session=True)
        stack.callback(stopped, server)
        configuration = folder / "nginx.conf"
        while not debian_programs.answers(folder):
            pass

        def compress(level: int) -> None:
            lines = configuration.read_text().splitlines()
            lines = [f"gzip_comp_level {level};" if line.startswith("gzip_comp") else line for line in lines]
            configuration.write_text("\n".join(lines) + "\n")
            os.kill(server.pid, signal.SIGHUP)

        page = (folder / "pages" / "index.html").read_bytes()
        address = f"127.0.0.1:{debian_programs.port_of(folder)}"
        rate, account = folder / "rate", folder / "account"
        rate.write_text(str(RATE))
        command = (sys.executable, "-m", "bench.lib.http_load", address, "--seconds", 86400, "--rate-in", rate)
        stack.enter_context(running((*command, "--account", account), stdout=-3))
        harmless = stack.enter_context(wandering(lambda factor: replaced(rate, str(RATE * factor))))
        quota = stack.enter_context(CpuGroup("specmine-bench-nginx"))
        compressing = ("deflate", "deflate_*", "libz*", "ngx_http_gzip*", "*body_filter*", "*output_filter*")
        yield Service(
            name="nginx",
            exe="/usr/sbin/nginx",
            pid=server.pid,
            clients=lambda: read_account(account),
            faults=(
                Fault(
                    name="gzip level 1 to 9",
                    inject=lambda: compress(9),
                    undo=lambda: compress(1),
                    functions=with_stripped(compressing, "/usr/sbin/nginx"),
                    causes=("load", "unknown", "callee"),
                    factor=seconds_of(page, 9) / seconds_of(page, 1),  # of the compression itself
                    alone=True,
                ),
                Fault(
                    name="harmless: new workers of the same configuration",
                    inject=lambda: os.kill(server.pid, signal.SIGHUP),
                    undo=lambda: None,
                    harmless=True,
                ),
                Fault(
                    name="a CPU limit of half of what it uses",
                    inject=lambda: quota.halve(server.pid),
                    undo=quota.lift,
                    causes=("host",),
                ),
                *harmless,
            ),
        )
