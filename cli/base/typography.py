"""Letters that not every terminal has: the text of people is written in ASCII, and printed with what there is."""

from __future__ import annotations

import re
import sys
from typing import TextIO

_RANGE = re.compile(r"(?<=\d)-(?=\d[\d.]*(?: |\n +)(?:ns|us|ms|s)\b)")


def speaks_unicode(stream: TextIO | None = None) -> bool:
    """Return whether a stream takes every letter; by default standard output."""
    return (getattr(stream or sys.stdout, "encoding", "") or "").lower().replace("-", "") == "utf8"


def typeset(text: str, stream: TextIO | None = None) -> str:
    """Return a text as a stream can show it, by default standard output.

    Where it can, ``us``, ``2.1x`` and ``35-41 us`` become µs, × and a dash.
    """
    if not speaks_unicode(stream):
        return text
    from specmine.daemon.documents import violation_text  # noqa: PLC0415  (it brings the parser of expressions)

    return violation_text.typeset(_RANGE.sub("\N{EN DASH}", text))
