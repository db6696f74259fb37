"""Start the process that holds the links, without a path to our other modules.

usage: __main__.py FD        FD: a connected SEQPACKET socket; one JSON message a packet
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
