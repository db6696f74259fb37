"""A headless Chromium, driven over the pipe of its developer tools; and axe-core, which looks for barriers."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import patient

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
    "--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
)  # fmt: skip


def missing(what: str) -> None:
    """Skip a test for what is not there; where CI is set, fail: a missing tool must not look like a pass."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


def axe_script() -> str:
    """Return the source of axe-core."""
    return (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


class Page:
    """One tab."""

    def __init__(self, browser: Browser) -> None:
        """Open it."""
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setBypassCSP", enabled=True)  # of what this test evaluates; the page has no script

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the tab."""
        return self._browser.call(method, self._session, **parameters)

    def appear(self, *, width: int, dark: bool = False, scripts: bool = True) -> None:
        """Set how the following pages are shown."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, address: str) -> list[dict[str, Any]]:
        """Load a page; return the events meanwhile."""
        self._browser.events.clear()
        self.call("Page.navigate", url=address)
        self._browser.wait_for("Page.loadEventFired")
        return list(self._browser.events)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def picture(self, *, whole: bool = False) -> bytes:
        """Return a PNG of what is seen, or of the whole page."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(taken["data"])

    def barriers(self) -> list[str]:
        """Return what axe-core finds wrong."""
        self.call("Runtime.evaluate", expression=axe_script())
        found = self.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html + n.any.map("
                              "a => a.message))]))")  # fmt: skip
        return [f"{name}: {nodes[:3]}" for name, nodes in found]


class Browser:
    """The process."""

    def __init__(self, folder: Path) -> None:
        """Start it; its profile is in a folder."""
        command = next(filter(None, map(shutil.which, _NAMES)), None)
        if command is None:
            missing("chromium")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        for each in (to_browser, from_browser):
            os.set_inheritable(each, True)
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", str(command), *_FLAGS,
             f"--user-data-dir={folder}"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)}, start_new_session=True,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, event: str) -> None:
        """Wait until an event has come."""
        while not any(each.get("method") == event for each in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end_s = time.monotonic() + patient(30)
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end_s - time.monotonic()))
            assert ready, "the browser says nothing"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it, with all processes of its group."""
        os.close(self._write)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patient(5))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        os.close(self._read)


@contextlib.contextmanager
def browsing() -> Iterator[Page]:
    """Run a browser; yield its tab."""
    with tempfile.TemporaryDirectory(prefix="specmine-browser-", ignore_cleanup_errors=True) as folder:
        browser = Browser(Path(folder))
        try:
            yield Page(browser)
        finally:
            browser.close()
