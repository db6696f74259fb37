"""Whether an output is that of before, names aside."""

from __future__ import annotations

import json
import re
from difflib import unified_diff
from itertools import islice

from tests.equivalence import renames
from tests.equivalence.translating import reworded, translated, translated_scrape

MOST_SHOWN = 60
"""Lines of a difference."""
_END = re.compile(r"^--- (?:standard error|exit code)", re.MULTILINE)


def difference(name: str, golden: str, now: str) -> str:
    """Return a short unified diff between a golden output and that of today, '' if they are equal.

    JSON is compared without regard to the order of keys, a scrape without regard to that of its lines. A text in
    which words were replaced is compared word by word if it is not equal as it stands: its lines may end elsewhere.
    """
    body, end = _parted(golden)
    body_now, end_now = _parted(now)
    if name.endswith(".json") and body.startswith("{") and body_now.startswith("{"):
        new_names = translated(json.loads(body), renames.JSON_KEYS, renames.JSON_VALUES, renames.WORDS)
        old, new = _lines(new_names), _lines(json.loads(body_now))
    elif body.startswith("# HELP "):
        old = sorted(translated_scrape(body, renames.METRICS, renames.WORDS).splitlines())
        new = sorted(body_now.splitlines())
    else:
        old, new = _as_words(body, body_now)
    old_end, new_end = _as_words(end, end_now)
    found = unified_diff([*old_end, *old], [*new_end, *new], f"golden/{name}", "now", lineterm="", n=2)
    return "\n".join(islice(found, MOST_SHOWN))


def _parted(text: str) -> tuple[str, str]:
    found = _END.search(text)
    return (text, "") if found is None else (text[: found.start()], text[found.start() :])


def _lines(document: object) -> list[str]:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False).splitlines()


def _as_words(golden: str, now: str) -> tuple[list[str], list[str]]:
    new_words = reworded(golden, renames.WORDS)
    if new_words in (golden, now):
        return new_words.splitlines(), now.splitlines()
    return new_words.split(), now.split()
