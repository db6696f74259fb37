"""A line of JSON for each line of a request at the daemon's socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from specmine.model.errors import InputError, SpecmineError

from .peer import Peer

Answer = Callable[[Mapping[str, Any], Peer], Mapping[str, Any]]
"""Returns the result of a request or raises SpecmineError. Runs on the server's thread; must not block."""


def answered(line: bytes, peer: Peer, answer: Answer) -> bytes:
    """Return the line that answers the line of a request; what goes wrong is an answer too."""
    try:
        request = json.loads(line)
        if not isinstance(request, dict) or not isinstance(request.get("command"), str):
            raise InputError('a request is {"command": ...} on one line')
        result = answer(request, peer)
        return json.dumps({"ok": True, "result": result}, allow_nan=False).encode("utf-8") + b"\n"
    except SpecmineError as error:
        return failure(error)
    except (ValueError, RecursionError) as error:
        return failure(InputError(f"the request cannot be answered: {error}"))
    except Exception as error:  # a mistake of ours must not end the thread that all clients share
        return failure(InputError(f"the daemon failed to answer: {error!r}", remedy="report it"))


def failure(error: SpecmineError) -> bytes:
    """Return the line that tells a client what is wrong."""
    answer = {"ok": False, "error": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
    return json.dumps(answer).encode("utf-8") + b"\n"
