"""The shortest disjunctive form that is true for some patterns of chosen edges and false for others.

Quine and McCluskey's method: compute the prime implicants of the wanted patterns, where patterns that never occurred
may be either; then find the smallest cover of the wanted patterns by them. Patterns are integers: bit i is the presence
of edge i.
"""

from __future__ import annotations

from collections.abc import Collection

Term = tuple[int, int]
"""Mask of the bits that matter, and their values."""

_EXACT = 50_000  # partial covers tried before a greedy one is taken


def shortest_form(width: int, wanted: Collection[int], unwanted: Collection[int]) -> tuple[Term, ...]:
    """Return the fewest terms, then the fewest literals, then the fewest negations.

    Parameters
    ----------
    width : int
        Number of edges.
    wanted, unwanted : collection of int
        Patterns on which the form is true, and false. They share none: ValueError.

    Returns
    -------
    tuple of Term
        Ordered; of equally short forms the first in the order of bits (bit 0 is preferred).
    """
    on, off = sorted(set(wanted)), sorted(set(unwanted))
    if set(on) & set(off):
        raise ValueError("a pattern cannot be wanted and unwanted")
    if not on:
        return ()
    if not off:
        return ((0, 0),)
    return tuple(sorted(_cover(on, _primes(width, on, off)), key=_order))


def _order(term: Term) -> tuple[tuple[int, int], ...]:
    mask, value = term
    return tuple((i, 1 - (value >> i & 1)) for i in range(mask.bit_length()) if mask >> i & 1)


def _price(term: Term) -> tuple[int, int]:
    mask, value = term
    return mask.bit_count(), (mask & ~value).bit_count()


def _primes(width: int, on: list[int], off: list[int]) -> list[Term]:
    """Return the prime implicants: true for some wanted and no unwanted pattern, and no literal can be dropped."""
    level: set[Term] = {((1 << width) - 1, pattern) for pattern in on}
    primes: set[Term] = set()
    while level:
        shorter: set[Term] = set()
        for mask, value in level:
            prime = True
            for i in range(width):
                if mask >> i & 1:
                    less, rest = mask & ~(1 << i), value & ~(1 << i)
                    if all(pattern & less != rest for pattern in off):
                        shorter.add((less, rest))
                        prime = False
            if prime:
                primes.add((mask, value))
        level = shorter
    return sorted(primes, key=lambda t: (_price(t), _order(t)))


def _cover(on: list[int], primes: list[Term]) -> list[Term]:
    covers = [sum(1 << k for k, p in enumerate(on) if p & mask == value) for mask, value in primes]
    everything = (1 << len(on)) - 1
    best = _greedy(covers, everything)
    best_key = _key(best, primes)
    tried = 0

    def extend(chosen: list[int], covered: int) -> None:
        nonlocal best, best_key, tried
        tried += 1
        if covered == everything:
            key = _key(chosen, primes)
            if key < best_key:
                best, best_key = list(chosen), key
            return
        if len(chosen) >= len(best) or tried > _EXACT:
            return
        missing = [k for k in range(len(on)) if not covered >> k & 1]
        hardest = min(missing, key=lambda k: (sum(c >> k & 1 for c in covers), k))
        for index, cover in enumerate(covers):
            if cover >> hardest & 1:
                extend([*chosen, index], covered | cover)

    extend([], 0)
    return [primes[i] for i in best]


def _key(chosen: list[int], primes: list[Term]) -> tuple[int, int, int, list[tuple[tuple[int, int], ...]]]:
    prices = [_price(primes[i]) for i in chosen]
    return (
        len(chosen),
        sum(literals for literals, _ in prices),
        sum(negated for _, negated in prices),
        sorted(_order(primes[i]) for i in chosen),
    )


def _greedy(covers: list[int], everything: int) -> list[int]:
    chosen: list[int] = []
    covered = 0
    while covered != everything:
        index = max(range(len(covers)), key=lambda i: ((covers[i] & ~covered).bit_count(), -i))
        chosen.append(index)
        covered |= covers[index]
    return chosen
