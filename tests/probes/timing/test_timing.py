"""The parts of a timed function own their fields: nobody else assigns them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from specmine import probes

FILES = [*Path(probes.__file__).parent.glob("timing/**/*.py"), Path(probes.__file__).parent / "source.py"]


def targets(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a statement assigns to."""
    if isinstance(node, ast.Assign):
        ahead = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        ahead = [node.target]
    elif isinstance(node, ast.Delete):
        ahead = list(node.targets)
    else:
        ahead = []
    while ahead:
        target = ahead.pop()
        if isinstance(target, ast.Tuple | ast.List):
            ahead += target.elts
        else:
            yield target


def is_foreign(target: ast.expr) -> bool:
    """Tell whether a target lies behind an attribute of anything but ``self``."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        owner = target.value
        if isinstance(target, ast.Attribute) and not (isinstance(owner, ast.Name) and owner.id == "self"):
            return True
        target = owner
    return False


def test_only_methods_change_the_fields_of_their_object() -> None:
    """Nothing but ``self`` stands before an attribute that is assigned."""
    assert len(FILES) > 15
    foreign = [
        f"{path.name}:{target.lineno}: {ast.unparse(target)}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        for target in targets(node)
        if is_foreign(target)
    ]
    assert foreign == []


def test_assignments_to_others_are_found() -> None:
    """Also in tuples, below subscripts and in sums."""
    text = "w.on_ns = 1\nself.w.on_ns, b = 1, 2\nw.links[3] = 4\nself.total += 1\nrow['a'] = 1\nself.rows[1] = 2\n"
    found = [is_foreign(target) for node in ast.walk(ast.parse(text)) for target in targets(node)]
    assert sum(found) == 3
