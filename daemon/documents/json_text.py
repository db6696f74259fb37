"""JSON as it is written to files, pipes and terminals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_HIDDEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""What JSON lets stand and a terminal obeys, and halves of characters, which cannot be encoded."""


def json_text(document: Mapping[str, Any]) -> str:
    """Return a document as one JSON object with a final newline.

    Floats keep the digits that they came with: whoever made the document has rounded them. Raises ValueError for NaN.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
