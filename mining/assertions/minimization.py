"""The shortest disjunctive form that is true for some patterns of chosen edges and false for others.

The method of Quine and McCluskey: compute the prime implicants of the wanted patterns, where patterns that never
occurred may be either; then find the smallest cover of the wanted patterns by them. Patterns are integers: bit i is the
presence of edge i.
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
    """Return the prime implicants: true for some wanted and no unwanted pattern, and no literal can be dropped.

    The masks of those of a wanted pattern are the smallest sets of edges that tell it from each unwanted one. They grow
    by one unwanted pattern after the other (Berge, *Hypergraphs*, 2.2), so that longer terms never arise.
    """
    bits = [1 << i for i in range(width)]
    primes: set[Term] = set()
    for pattern in on:
        masks = [0]
        for differing in sorted({pattern ^ other for other in off}, key=lambda bits: (bits.bit_count(), bits)):
            kept = [mask for mask in masks if mask & differing]
            grown = [mask | bit for mask in masks if not mask & differing for bit in bits if differing & bit]
            masks = kept + [mask for mask in grown if not any(fewer & mask == fewer for fewer in kept)]
        primes.update((mask, pattern & mask) for mask in masks)
    return sorted(primes, key=lambda t: (_price(t), _order(t)))


def _cover(on: list[int], primes: list[Term]) -> list[Term]:
    covers = [sum(1 << k for k, p in enumerate(on) if p & mask == value) for mask, value in primes]
    everything = (1 << len(on)) - 1
    best = _greedy(covers, everything)
    best_key = _key(best, primes)
    tried = 0
    hardest_first = sorted(range(len(on)), key=lambda k: (sum(cover >> k & 1 for cover in covers), k))

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
        hardest = next(k for k in hardest_first if not covered >> k & 1)
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
