"""A reload changes what it may, and names what needs a restart."""

from __future__ import annotations

from specmine.daemon.config.loader import known_keys, parse_config
from specmine.daemon.config.reload import RESTART_KEYS, changed_keys, needs_restart
from specmine.daemon.config.tree import Config, default_text


def test_changes_are_found_by_name() -> None:
    """A reload knows which keys changed and which of them need a restart."""
    new = parse_config("budget: {overhead: 2%}\nstore: {path: /tmp/x}\nmining: {recent: 7}\nverify_every: 30s")
    changed = changed_keys(Config(), new)
    assert changed == ("budget.overhead", "verify_every", "mining.recent", "store.path")
    assert [name for name in changed if needs_restart(name)] == ["store.path"]
    assert changed_keys(new, new) == ()


def test_keys_that_need_a_restart_exist() -> None:
    """The list of them does not name keys that are gone."""
    known = known_keys()
    assert all(any(key == name or key.startswith(f"{name}.") for key in known) for name in RESTART_KEYS)


def test_the_packaged_file_marks_the_keys_that_need_a_restart() -> None:
    """A comment says (restart) exactly where a reload does not suffice."""
    path: list[str] = []
    comment: list[str] = []
    for line in default_text().splitlines()[7:]:
        if line.lstrip().startswith("#") or not line.strip():
            comment = [*comment, line] if line.strip() else []
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        path = [*path[:depth], line.split(":")[0].strip()]
        if not line.endswith(":"):
            assert needs_restart(".".join(path)) == ("(restart)" in " ".join(comment)), path
        comment = []
