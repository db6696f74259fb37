"""The pauses before a process that broke is started anew."""

from __future__ import annotations

from specmine.model.restart_pause import FORGIVEN_NS, RestartPause

SECOND = 1_000_000_000


def test_pauses_grow_and_are_forgiven() -> None:
    """At once, then twice as long each time up to a limit; after a good while at once again."""
    pause = RestartPause(first_ns=SECOND, longest_ns=5 * SECOND)
    now_ns, pauses = 0, []
    for _ in range(6):
        due_ns = pause.ended(now_ns)
        pauses.append((due_ns - now_ns) // SECOND)
        now_ns = due_ns
    assert pauses == [0, 1, 2, 4, 5, 5]
    assert pause.ends == 6
    now_ns += FORGIVEN_NS - 1
    assert pause.ended(now_ns) == now_ns + 5 * SECOND
    now_ns += FORGIVEN_NS + 5 * SECOND
    assert pause.ended(now_ns) == now_ns
