"""The pages in a real browser: narrow, wide, dark, without scripts, with hostile names, for people who cannot see."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from specmine.web.app import make_app
from specmine.web.documents import Documents
from tests.support.browser import Page, browsing
from tests.support.web_documents import SampleSource, sample

pytestmark = pytest.mark.slow
NARROW, WIDE = 400, 1280


@contextmanager
def serving(documents: Documents) -> Iterator[str]:
    """Serve the pages; yield their address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(make_app(SampleSource(documents), "127.0.0.1"), log_level="error", lifespan="off")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Return a tab."""
    with browsing() as tab:
        yield tab


def addresses(documents: Documents) -> list[str]:
    """Return one address of each kind of page."""
    name = documents.functions[0]["function"]
    violation = documents.violations["violations"][0]["id"]
    return ["/", "/functions", f"/function?name={name}", f"/violation?id={violation}", "/builds", "/hosts", "/nope"]


def test_every_page_in_every_appearance(page: Page) -> None:
    """Nothing is wider than the screen, nothing is refused or logged, and axe-core finds no barrier."""
    documents = sample()
    with serving(documents) as server:
        for address in addresses(documents):
            for width, dark in ((NARROW, False), (NARROW, True), (WIDE, False), (WIDE, True)):
                page.appear(width=width, dark=dark)
                events = page.open(server + address)
                logged = [
                    each["params"] for each in events if each["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")
                ]
                logged = [each for each in logged if address != "/nope" or "404" not in str(each)]
                assert logged == [], address
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
                paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (sum(map(int, paper[4:-1].split(", "))) < 384) is dark, (address, paper)
                assert page.barriers() == [], (address, width, dark)


def test_a_page_is_the_same_without_scripts(page: Page) -> None:
    """What is seen does not depend on JavaScript."""
    documents = sample()
    with serving(documents) as server:
        for address in addresses(documents):
            seen = []
            for scripts in (True, False):
                page.appear(width=WIDE, scripts=scripts)
                page.open(server + address)
                seen.append(page.picture())
            assert seen[0] == seen[1], address
    page.appear(width=WIDE)


def test_hostile_names_are_text_in_a_browser(page: Page) -> None:
    """No dialog opens, no element comes of a name."""
    documents = sample(hostile=True)
    with serving(documents) as server:
        for address in ("/", "/functions", "/hosts"):
            page.appear(width=WIDE)
            events = page.open(server + address)
            assert not [each for each in events if each["method"] == "Page.javascriptDialogOpening"]
            assert page.evaluate("document.scripts.length") == 0
            assert "<script>" in page.evaluate("document.body.textContent")


def test_everything_is_reached_by_the_keyboard(page: Page) -> None:
    """The first tab stop leads past the navigation, and every link can be focused and is seen when it is."""
    with serving(sample()) as server:
        page.appear(width=WIDE)
        page.open(server + "/functions")
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        count = page.evaluate("document.querySelectorAll('a[href],button,select,input').length")
        reached = page.evaluate(
            "[...document.querySelectorAll('a[href],button,select,input')].filter(each => {each.focus(); "
            "return document.activeElement === each}).length"
        )
        assert reached == count > 10
