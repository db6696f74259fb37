"""Where a Python program spends its own CPU time: a sample of its main thread for every 5 ms of CPU time.

    python -m bench.lib.cpu_profile OUTPUT MODULE [ARGUMENT...]

runs ``MODULE:main`` (``specmine.cli.main``, say) and writes a JSON of stacks and their numbers of samples.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

EVERY_S = 0.005


class Profile:
    """Stacks by how often they were seen."""

    def __init__(self) -> None:
        """Begin with none."""
        self.stacks: Counter[tuple[str, ...]] = Counter()

    def begin(self) -> None:
        """Sample from now on."""
        signal.signal(signal.SIGPROF, self._sampled)
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)

    def end(self, output: Path) -> None:
        """Stop sampling, and write what was seen."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        stacks = [[list(stack), count] for stack, count in self.stacks.most_common()]
        output.write_text(json.dumps({"every_s": EVERY_S, "stacks": stacks}))

    def _sampled(self, _: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            code = frame.f_code
            stack.append(f"{frame.f_globals.get('__name__', '')}:{code.co_qualname}")
            frame = frame.f_back
        self.stacks[tuple(reversed(stack))] += 1


def main() -> int:
    """Run a program under the profile."""
    output, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv[:] = [module, *sys.argv[3:]]
    profile = Profile()
    profile.begin()
    try:
        status = importlib.import_module(module).main()
    except SystemExit as end:
        status = end.code
    finally:
        profile.end(output)
    return int(status or 0)


if __name__ == "__main__":
    raise SystemExit(main())
