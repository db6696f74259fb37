"""The runner of the tutorial reads the page as it is."""

from __future__ import annotations

from examples.tutorial.run import PAGE, Step, steps


def test_commands_and_their_output_are_taken_from_the_page() -> None:
    """In their order; what would stop the daemon of this host is left out."""
    found = steps(PAGE.read_text(encoding="utf-8"))
    names = [each.command.split()[1] for each in found if each.command.startswith("specmine ")]
    assert names[:2] == ["doctor", "mine"]
    assert names[-2:] == ["violations", "acknowledge"]
    assert not {"off", "web"} & set(names)
    assert all(each.shown for each in found if each.command.startswith("specmine "))


def test_a_line_without_counterpart_is_named() -> None:
    """Numbers may differ, the first word of a line may not."""
    step = Step("specmine status", ["All well on vm", "", "2 of 2 functions as asserted.", "PROGRAM  BUILD"])
    assert step.missing("    All well on other\n    PROGRAM   BUILD\n") == []
    assert step.missing("    1 problem on vm\n    PROGRAM   BUILD\n") == ["All"]
