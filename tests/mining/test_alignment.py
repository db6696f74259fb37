"""Call paths of builds that inline differently."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.alignment import aligned, contracted, edges_of


def path(text: str) -> tuple[str, ...]:
    """Return the path of letters."""
    return tuple(text)


def test_a_frame_that_the_other_build_inlined_goes() -> None:
    """a->b->c in one build is a->c in the other, also over several frames; first and last stay."""
    own, other = [path("mabcz"), path("mz")], [path("macz"), path("mz")]
    left, right = aligned(own, other, edges_of(own), edges_of(other))
    assert left == {path("mabcz"): path("macz"), path("mz"): path("mz")}
    assert right == {path("macz"): path("macz"), path("mz"): path("mz")}
    assert contracted(path("mabdcz"), edges_of([path("mabdcz")]), edges_of(other)) == path("macz")
    assert contracted(path("abz"), edges_of([path("abz")]), edges_of([path("az")])) == path("az")


def test_what_both_builds_do_is_no_inlining() -> None:
    """Where a build has both edges, or the other has the longer way too, the paths are different ones."""
    both = [path("mabcz"), path("macz")]
    other = [path("macz")]
    assert contracted(both[0], edges_of(both), edges_of(other)) == both[0]
    assert contracted(path("mabcz"), edges_of([path("mabcz")]), edges_of(both)) == path("mabcz")


def test_frames_that_nobody_else_has_stay() -> None:
    """Without the short edge in the other build nothing says what was inlined."""
    assert contracted(path("mabz"), edges_of([path("mabz")]), edges_of([path("mxyz")])) == path("mabz")
    assert contracted((), frozenset(), frozenset()) == ()


paths = st.lists(st.text("abcd", min_size=1, max_size=6).map(tuple), min_size=1, max_size=6)


@given(paths, paths)
def test_aligned_paths_keep_their_ends_and_order(first: list[tuple[str, ...]], second: list[tuple[str, ...]]) -> None:
    """What is left is a part of the path in its order; builds with equal edges are left alone."""
    left, _ = aligned(first, second, edges_of(first), edges_of(second))
    for before, after in left.items():
        assert (after[0], after[-1]) == (before[0], before[-1])
        rest = iter(before)
        assert all(name in rest for name in after)
    same, _ = aligned(first, first, edges_of(first), edges_of(first))
    assert all(before == after for before, after in same.items())
