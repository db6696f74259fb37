"""Start the process that holds the links, without a path to our other modules.

usage: __main__.py FD PULSE KIND

FD, PULSE: connected SEQPACKET sockets, one JSON message a packet and heartbeats; KIND: perf if links are perf events
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
holder = importlib.import_module("holder.holder")
sys.path.pop()

if __name__ == "__main__":
    holder.main()
