"""Files are written or removed below a root; what became of each is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from specmine.cli.base.output import OutputFile
from specmine.model.errors import HostError, InputError

from .files import HostFile

MODE, FOLDER_MODE = 0o644, 0o755


def place(root: Path, files: Iterable[HostFile]) -> Iterator[tuple[str, str]]:
    """Write files below a root; yield what happened and the path: written, unchanged, or kept.

    Raises
    ------
    InputError, HostError
        If one cannot be written.
    """
    for each in files:
        path = below(root, each.path)
        present = _content(path)
        if present is not None and each.is_configuration:
            yield "kept", each.path
        elif present == each.text:
            yield "unchanged", each.path
        else:
            try:
                _make_folder(path.parent)
                with OutputFile(path) as file:
                    file.write(each.text)
                path.chmod(MODE)
            except PermissionError as error:
                raise HostError(f"no right to write {path}", remedy="run it as root, or with --root") from error
            except OSError as error:
                raise InputError(f"cannot write {path}: {error.strerror}") from error
            yield "written", each.path


def remove(root: Path, files: Iterable[HostFile]) -> Iterator[tuple[str, str]]:
    """Remove files; yield what happened and the path: removed, or kept, if the user changed the configuration."""
    for each in files:
        path = below(root, each.path)
        present = _content(path)
        if present is None:
            continue
        if each.is_configuration and present != each.text:
            yield "kept", each.path
            continue
        try:
            path.unlink()
        except OSError as error:
            raise HostError(f"cannot remove {path}: {error.strerror}", remedy="run it as root") from error
        yield "removed", each.path


def below(root: Path, path: str) -> Path:
    """Return an absolute path of a host below a root."""
    return root / path.lstrip("/")


def unreachable(folder: str) -> Path | None:
    """Return the first folder on the way to the commands that other users may not pass, None if there is none."""
    path = Path(folder)
    there = [each for each in reversed([path, *path.parents]) if each.exists()]
    return next((each for each in there if not each.stat().st_mode & 0o001), None)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, readable by all, whatever the umask says."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        each.chmod(FOLDER_MODE)


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
