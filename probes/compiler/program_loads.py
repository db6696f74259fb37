"""Programs that are loaded several at a time: the verifier takes up to a quarter of a second for one, on one CPU."""
from concurrent.futures import ThreadPoolExecutor

from .bpf_syscall import load_program

THREADS = 6
"""Of the programs four are large. The verifier needs some 20 MB for a large one."""


class ProgramLoads:
    """Each program is loaded once for each way of attaching it."""

    def __init__(self, compiled, maps):
        self._compiled, self._maps = compiled, maps
        self._pool = ThreadPoolExecutor(THREADS)
        self._begun = {}

    def begin(self, wanted):
        """Begin to load programs, each a (name, kind, attach), the largest first; an iterator has its type as fourth."""
        for each in sorted(wanted, key=lambda each: -len(self._compiled["programs"][each[0]])):
            if each not in self._begun:
                name, *how = each
                code = self._compiled["programs"][name]
                self._begun[each] = self._pool.submit(load_program, name, code, self._maps, *how)

    def loaded(self, *wanted):
        """Return the fd of a program, or raise what ``load_program`` raised."""
        self.begin([wanted])
        return self._begun[wanted].result()
