"""Call paths of builds that inline differently."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.model_merge.alignment import Names, common_forms, contracted, edges_of


def path(text: str) -> tuple[str, ...]:
    """Return the path of letters."""
    return tuple(text)


def forms(*builds: list[Names]) -> list[dict[Names, Names]]:
    """Return the forms of the paths to one function."""
    return [found["z"] for found in common_forms([{"z": each} for each in builds])]


def test_a_frame_that_the_other_build_inlined_goes() -> None:
    """a->b->c in one build is a->c in the other, also over several frames; first and last stay."""
    left, right = forms([path("mabcz"), path("mz")], [path("macz"), path("mz")])
    assert left == {path("mabcz"): path("macz"), path("mz"): path("mz")}
    assert right == {path("macz"): path("macz"), path("mz"): path("mz")}
    other = [path("macz"), path("mz")]
    assert contracted(path("mabdcz"), edges_of([path("mabdcz")]), edges_of(other)) == path("macz")
    assert contracted(path("abz"), edges_of([path("abz")]), edges_of([path("az")])) == path("az")


def test_frames_that_only_one_build_has_go_from_both() -> None:
    """a jumps to x in one build and has x inlined in the other: neither a nor x is in both; ends always stay."""
    left, right = forms([path("mxcz")], [path("macz")])
    assert left == {path("mxcz"): path("mcz")}
    assert right == {path("macz"): path("mcz")}
    assert forms([path("pcz")], [path("qcz")]) == [{path("pcz"): path("pcz")}, {path("qcz"): path("qcz")}]


def test_a_frame_seen_elsewhere_may_still_be_inlined_here() -> None:
    """b is a function of both builds, and part of a only in the second one's path to z."""
    first = {"z": [path("mabcz")], "y": [path("mby")]}
    second = {"z": [path("macz")], "y": [path("mby")]}
    assert common_forms([first, second])[0]["z"] == {path("mabcz"): path("macz")}


def test_a_rare_path_of_one_run_is_not_taken_for_another() -> None:
    """Where a build has the shorter path too, the longer one stays: it was seen by chance in this build only."""
    left, _ = forms([path("mabcz"), path("macz")], [path("macz")])
    assert left == {path("mabcz"): path("mabcz"), path("macz"): path("macz")}


def test_three_builds_have_one_form() -> None:
    """Each inlines another function."""
    assert {form for found in forms([path("mabz")], [path("mbcz")], [path("macz")]) for form in found.values()} == {
        path("mz")
    }


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
def test_forms_keep_their_ends_and_order(first: list[Names], second: list[Names]) -> None:
    """What is left is a part of the path in its order; what both builds have is left alone."""
    for own, other, found in zip((first, second), (second, first), forms(first, second), strict=True):
        assert set(found) == set(own)
        for before, after in found.items():
            assert (after[0], after[-1]) == (before[0], before[-1])
            rest = iter(before)
            assert all(name in rest for name in after)
            assert after == before or before not in other
