"""The utility of observing a function again, from the age of its results."""

from __future__ import annotations


def utility(now_ns: int, chain_start_ns: int | None, chain_end_ns: int | None) -> float:
    """Return min(1, (now - t_end) / (t_end - t_start)) over the chain of matching observations.

    Parameters
    ----------
    now_ns : int
        The present, ns, on the clock of the chain.
    chain_start_ns, chain_end_ns : int or None
        Start of the oldest and end of the newest observation of the chain; None while there is no chain.

    Returns
    -------
    float
        In [0, 1]; 1 while there is no chain.

    Notes
    -----
    First paper, section 3.2, algorithm 3. A result that held for a time T has the full utility again after another T.
    So the time between checks doubles as long as nothing changes.
    """
    if chain_start_ns is None or chain_end_ns is None:
        return 1.0
    length = chain_end_ns - chain_start_ns
    if length <= 0:
        return 1.0
    return min(1.0, max(0.0, (now_ns - chain_end_ns) / length))
