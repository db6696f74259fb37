"""Is each fault found each time, if every one is tried several times, in an order by lot, on programs side by side?

    .venv/bin/python -m bench.faults.rounds --folder DIR [--rounds 5] [--seed 1] [--learn 600] [--lanes 1]
        [--only REGEX] [--apart]

Each lane tries one program after the other; the next one learns meanwhile, or, with --apart, after that: what fills the
disk or the CPUs of one disturbs what the next one learns. Faults of as many programs as there are lanes come at the
same time. Those that fill CPUs or the disk come alone. A try ends 15 s after something was opened, or
after two minutes, and rests until it closed. Then bench.faults.score prints what was found. The outcomes so far are in
``DIR/outcomes``, so a run that was ended can be scored, too. Needs root and the packages of bench.faults.live.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.faults import score
from bench.lib.child_processes import in_order, running

LANES = {
    1: (("shop", "nginx", "redis", "postgres", "apache", "mariadb"),),
    2: (("shop", "nginx", "redis"), ("mariadb", "apache", "postgres")),
    3: (("shop",), ("nginx", "redis", "postgres"), ("apache", "mariadb")),
}
"""About as many faults each. With three lanes two CPUs are busy all the time: durations are waits for a CPU, too. In a
lane postgres does not follow mariadb: beside its commits postgres would be learned on a disk that is busy already."""
TRY_S = 110.0
"""About how long a try takes: when the next program must begin to learn."""
FAULT_S, JOIN_S, REST_S = 120, 15, 300
REAL = r"^(?!harmless)"


@dataclass(frozen=True, slots=True)
class Tried:
    """A program that is being tried, or learned."""

    program: str
    process: subprocess.Popen[bytes]
    log: Path

    def is_nearly_done(self, kept: Path, learn_s: float) -> bool:
        """Tell whether it is done, or will be about when the next one has learned."""
        if self.process.poll() is not None:
            return True
        lines = self.log.read_text().splitlines()
        tries = next((int(line.split()[1]) for line in lines if line.startswith("tries:")), None)
        done = sum(one.program == self.program for one in score.read([kept])) if kept.exists() else 0
        return tries is not None and (tries - done) * TRY_S <= learn_s


def main() -> int:
    """Run the lanes, then print the score."""
    parser = argparse.ArgumentParser(description="Every fault several times.")
    parser.add_argument("--folder", type=Path, required=True, help="for the daemons' stores, logs and outcomes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learn", type=float, default=600, help="seconds that each program is learned at least")
    parser.add_argument("--lanes", type=int, default=1, choices=LANES, help="programs that are tried at the same time")
    parser.add_argument("--apart", action="store_true", help="no program learns while another one is tried")
    parser.add_argument("--only", default=REAL, help="faults whose name matches this; by default all real ones")
    options = parser.parse_args()
    in_order()
    options.folder.mkdir(parents=True, exist_ok=True)
    kept = options.folder / "outcomes"
    with ExitStack() as stack:
        waiting = [list(lane) for lane in LANES[options.lanes]]
        last: dict[int, Tried] = {}
        while any(waiting) or any(one.process.poll() is None for one in last.values()):
            for number, lane in enumerate(waiting):
                if lane and (
                    number not in last or last[number].is_nearly_done(kept, 0 if options.apart else options.learn)
                ):
                    last[number] = _started(stack, lane.pop(0), number, kept, options)
            time.sleep(5)
    return score.main([str(kept), "--folder", str(options.folder)])


def _started(stack: ExitStack, program: str, lane: int, kept: Path, options: argparse.Namespace) -> Tried:
    how = {"learn": options.learn, "fault": FAULT_S, "join": JOIN_S, "rest": REST_S, "rounds": options.rounds,
           "seed": options.seed, "only": options.only, "keep": kept, "folder": options.folder,
           "turns": options.folder, "lane": options.folder / f"lane{lane}"}  # fmt: skip
    words = [word for name, value in how.items() for word in (f"--{name}", value)]
    path = options.folder / f"{program}.log"
    log = stack.enter_context(path.open("wb"))
    command = (sys.executable, "-m", "bench.faults.live", program, *words)
    return Tried(program, stack.enter_context(running(command, stdout=log, stderr=subprocess.STDOUT)), path)


if __name__ == "__main__":
    raise SystemExit(main())
