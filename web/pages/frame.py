"""What all pages have: the head with the number of problems, the time of the data, the foot."""

from __future__ import annotations

from typing import Any

from specmine import __version__
from specmine.analysis.wording.violations import has_open_cause, is_problem
from specmine.web import words
from specmine.web.documents import Documents

PAGES = (("/", "Now"), ("/functions", "Functions"), ("/builds", "Builds"), ("/hosts", "Host and cost"))


def frame(documents: Documents, path: str, title: str) -> dict[str, Any]:
    """Return the values that every template needs.

    Parameters
    ----------
    documents : Documents
    path : str
        Of the page in the navigation.
    title : str
        Of the window.
    """
    violations = documents.violations["violations"]
    problems = sum(is_problem(each) and not has_open_cause(each, violations) for each in violations)
    return {
        "title": title,
        "path": path,
        "pages": PAGES,
        "problems": problems,
        "at": words.date(documents.at),
        "host": documents.host,
        "version": __version__,
    }
