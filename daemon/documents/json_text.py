"""JSON as it is written to files, pipes and terminals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_HIDDEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""What JSON lets stand and a terminal obeys, and halves of characters, which cannot be encoded."""
_SHARES = frozenset({"share", "shares"})
"""They have 9 digits: the shares of a dozen classes must still add up to 1 within 1e-6."""


def json_text(document: Mapping[str, Any]) -> str:
    """Return a document as one JSON object with a final newline; equal documents give equal texts.

    Floats have 6 significant digits, shares 9. Raises ValueError for NaN.
    """
    text = json.dumps(rounded(document), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def rounded(value: Any, digits: int = 6) -> Any:
    """Return JSON values with their floats as ``json_text`` writes them."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict | Mapping):  # first what is quick to tell
        return {key: rounded(each, 9 if key in _SHARES else 6) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each, digits) for each in value]
    return value
