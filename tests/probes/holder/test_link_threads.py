"""Links in file tables of their own: each is closed by its own descriptors, however many come at once."""

from __future__ import annotations

import os
import random
import select

from specmine.probes.holder.link_threads import LinkThreads
from tests.support.patience import patient

LINKS = 200


def test_each_link_is_closed_by_its_own_descriptors() -> None:
    """Descriptors that are sent on in a burst are not mixed up: who is closed is gone, and nobody else."""
    table = LinkThreads(())
    for burst in range(5):
        reading, kept = [], []
        for number in range(LINKS):
            ends = [os.pipe() for _ in range(1 + number % 3)]
            reading.append([read for read, _ in ends])
            kept.append(table.take([write for _, write in ends]))
        order = random.Random(burst).sample(range(LINKS), LINKS)
        for at, number in enumerate(order):
            assert table.close(kept[number], lambda: None).wait(patient(60))
            still = [fd for other in order[at + 1 : at + 9] for fd in reading[other]]
            ready, _, _ = select.select([*reading[number], *still], [], [], 0)
            assert set(ready) == set(reading[number])
        for fd in (fd for some in reading for fd in some):
            os.close(fd)
    table._sending.close()
    table._receiving.close()
