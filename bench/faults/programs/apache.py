"""A stock Apache httpd that compresses, under a bounded load, with faults of configuration, content and host."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults.programs.cpu_group import CpuGroup
from bench.faults.programs.fault import Fault, Service, replaced, wandering
from bench.faults.programs.nginx import seconds_of
from bench.lib import debian_programs
from bench.lib.child_processes import running, started
from bench.lib.http_load import read_account
from bench.lib.peers import stopped

RATE = 200
RULES = 3000
"""Patterns that a request is compared with in vain."""
LONGER = 5


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Run the server and its load."""
    with ExitStack() as stack:
        folder.chmod(0o755)
        level = "DeflateCompressionLevel {}"
        prepared = debian_programs.apache("event", level.format(1), "MaxRequestWorkers 50")(folder)
        server = started(prepared, cwd=folder, start_new_session=True, **debian_programs.QUIET)
        stack.callback(stopped, server)
        configuration, page = folder / "httpd.conf", folder / "pages" / "index.html"
        usual, text = configuration.read_text(), page.read_text()
        while not debian_programs.answers(folder):
            pass

        def configure(lines: str) -> None:
            replaced(configuration, lines)
            os.kill(server.pid, signal.SIGUSR1)  # children finish what they do, then others take their place

        rules = "\n".join(f"RewriteRule ^/(.*)x+y{number}$ /nowhere" for number in range(RULES))
        address = f"127.0.0.1:{debian_programs.port_of(folder)}"
        rate, account = folder / "rate", folder / "account"
        rate.write_text(str(RATE))
        command = (sys.executable, "-m", "bench.lib.http_load", address, "--seconds", 86400, "--rate-in", rate)
        stack.enter_context(running((*command, "--account", account), stdout=-3))
        harmless = stack.enter_context(wandering(lambda factor: replaced(rate, str(RATE * factor))))
        quota = stack.enter_context(CpuGroup("specmine-bench-apache"))
        compressing = ("deflate", "deflate_*", "libz*", "*deflate*", "ap_pass_brigade", "longest_match", "*_handler")
        longer, slower = seconds_of((text * LONGER).encode(), 1), seconds_of(text.encode(), 9)
        usually = seconds_of(text.encode(), 1)
        yield Service(
            name="apache",
            exe="/usr/sbin/apache2",
            pid=server.pid,
            clients=lambda: read_account(account),
            faults=(
                Fault(
                    name="compression level 1 to 9",
                    inject=lambda: configure(usual.replace(level.format(1), level.format(9))),
                    undo=lambda: configure(usual),
                    functions=compressing,
                    causes=("load", "unknown", "callee"),
                    factor=slower / usually,  # of the compression itself
                    alone=True,
                ),
                Fault(
                    name="a page five times as long",
                    inject=lambda: replaced(page, text * LONGER),
                    undo=lambda: replaced(page, text),
                    functions=(*compressing, "write*", "*core_output*", "send*", "apr_*", "crc32*", "adler*"),
                    causes=("load", "unknown", "callee"),
                    factor=longer / usually,
                    alone=True,
                ),
                Fault(
                    name="3,000 rules that rewrite nothing",
                    inject=lambda: configure(usual + rules + "\n"),
                    undo=lambda: configure(usual),
                    functions=("*pcre2*", "libpcre2*", "ap_regexec*", "*rewrite*", "ap_process*", "ap_run_*"),
                    causes=("load", "unknown", "callee"),
                    alone=True,
                ),
                Fault(
                    name="a CPU limit of half of what it uses",
                    inject=lambda: quota.halve(server.pid),
                    undo=quota.lift,
                    causes=("host",),
                ),
                Fault(
                    name="harmless: new children of the same configuration",
                    inject=lambda: configure(usual),
                    undo=lambda: None,
                    harmless=True,
                ),
                *harmless,
            ),
        )
