"""From YAML text to the configuration tree. Each mistake is reported with its line, its key and its value."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from specmine.model.errors import InputError

from .fields import Reader, boolean, duration, integer, key_name, number, numbers, shown, text, texts
from .tree import Config, Program

T = TypeVar("T")
_MAXIMUM_BYTES = 64 << 10
"""Several thousand programs. The parser takes a second of CPU time for 10 kB."""
_MOST_LETTERS = 100
"""Of a number: no key takes one that needs more, and Python refuses to write very long ones."""
_NUMBERS = {"tag:yaml.org,2002:int": "whole number", "tag:yaml.org,2002:float": "number"}
_UNREADABLE = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
"""What PyYAML raises beside its own errors where a text does not fit its tag, or a character has no such code."""


class ConfigError(InputError):
    """The configuration cannot be used; the message names file, line, key and value."""


class _Mistake(ValueError):
    """A mistake at a node of the document."""

    def __init__(self, node: yaml.Node, message: str) -> None:
        super().__init__(message)
        self.line = node.start_mark.line + 1


def load_config(path: str | Path, *, wait_s: float = 10.0) -> Config:
    """Read the configuration from a file.

    Parameters
    ----------
    path : path
        A pipe will do, as long as a program writes to it.
    wait_s : float
        Longest time until a pipe ends; a command may have to decrypt what it writes.

    Raises
    ------
    ConfigError
        If the file cannot be read, or anything in it is wrong.
    """
    try:
        raw = _content(path, wait_s)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have this name"
        raise ConfigError(f"cannot read the configuration {path}: {reason}") from error
    if len(raw) > _MAXIMUM_BYTES:
        raise ConfigError(f"the configuration {path} is larger than 64 KiB")
    try:
        config = parse_config(raw.decode("utf-8"), name=str(path))
        if os.path.isdir(config.store.path):  # noqa: PTH112  (which takes a path that no folder can have)
            raise ConfigError(f"store.path: {config.store.path} is a folder; name a file in it")
        return config
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration {path} is not UTF-8 (byte {error.start})") from error


def _content(path: str | Path, wait_s: float) -> bytes:
    """Return what a file holds, or what comes from a pipe or a terminal, which may never end."""
    data = b""
    until_s = time.monotonic() + wait_s
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        ready = select.poll()
        ready.register(fd, select.POLLIN)
        while len(data) <= _MAXIMUM_BYTES:
            if not ready.poll(max(0.0, until_s - time.monotonic()) * 1000):
                raise ConfigError(f"the configuration {path} is a pipe that did not end in {wait_s:g} s")
            chunk = os.read(fd, _MAXIMUM_BYTES + 1)
            if not chunk:
                break
            data += chunk
        if not data and stat.S_ISFIFO(os.fstat(fd).st_mode):  # its writer failed, or all was read at the start
            raise ConfigError(f"the configuration {path} is a pipe with nothing in it")
    finally:
        os.close(fd)
    return data


def parse_config(text: str, *, name: str = "configuration") -> Config:
    """Return the configuration that a YAML text describes; keys left out keep their defaults.

    Parameters
    ----------
    text : str
        The YAML document.
    name : str
        Its name in messages.

    Raises
    ------
    ConfigError
        If anything in it is wrong.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = _document(loader, name)
        return Config() if node is None else _read_tree(Config, node, loader, "")
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise ConfigError(f"{where}: not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not YAML: {' '.join(str(error).split())}") from error
    except _Mistake as mistake:
        raise ConfigError(f"{name}:{mistake.line}: {mistake}") from mistake


def _document(loader: yaml.SafeLoader, name: str) -> yaml.Node | None:
    """Return the root of the document, None if it is empty."""
    try:
        return loader.get_single_node()
    except _UNREADABLE as error:
        raise ConfigError(f"{name}:{loader.line + 1}: not YAML: a number or character is out of range") from error


def _read_tree(kind: type[T], node: yaml.Node, loader: yaml.SafeLoader, prefix: str) -> T:
    """Return the dataclass ``kind`` from a mapping node."""
    known: dict[str, Field[Any]] = {key_name(item.name): item for item in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    places: dict[str, yaml.Node] = {}
    entries = () if _is_null(node) else _entries(node, prefix.rstrip(".") or "the configuration")
    for name, value_node, key_node in entries:
        item = known.get(name)
        if item is None:
            raise _Mistake(key_node, _unknown(f"{prefix}{name}"))
        if item.name in values:
            raise _Mistake(key_node, f"{prefix}{name} is given twice")
        places[item.name] = key_node
        values[item.name] = _read_value(item, value_node, loader, f"{prefix}{name}")
    try:
        return kind(**values)
    except (ValueError, TypeError) as error:
        where = next((places[name] for name in places if str(error).startswith(f"{name} ")), node)
        raise _Mistake(where, f"{prefix.rstrip('.')}: {error}" if prefix else str(error)) from error


def _read_value(item: Field[Any], node: yaml.Node, loader: yaml.SafeLoader, name: str) -> Any:
    if name == "programs":
        return _read_programs(node, loader)
    default = _default(item)
    if is_dataclass(default):
        return _read_tree(type(default), node, loader, f"{name}.")
    reader = item.metadata.get("reader") or _reader_for(item.name, default)
    try:
        return reader(_plain(node, loader))
    except ValueError as error:
        raise _Mistake(node, f"{name}: {error}") from error


def _read_programs(node: yaml.Node, loader: yaml.SafeLoader) -> tuple[Program, ...]:
    if _is_null(node):
        return ()
    if not isinstance(node, yaml.SequenceNode):
        raise _Mistake(node, "programs: not a list; each program begins with a dash")
    return tuple(_read_tree(Program, child, loader, f"programs[{index}].") for index, child in enumerate(node.value))


def _entries(node: yaml.Node, what: str) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise _Mistake(node, f"{what}: not a mapping of keys to values")
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _Mistake(key_node, f"{what}: a key is a word")
        yield str(key_node.value), value_node, key_node


def _plain(node: yaml.Node, loader: yaml.SafeLoader) -> object:
    """Return the value of a scalar, or of a list of scalars."""
    if isinstance(node, yaml.MappingNode):
        raise ValueError("a mapping of keys is given where a value belongs")
    if isinstance(node, yaml.SequenceNode):
        if any(not isinstance(child, yaml.ScalarNode) for child in node.value):
            raise ValueError("a list of plain values belongs here")
        return [_scalar(child, loader) for child in node.value]
    return _scalar(node, loader)


def _scalar(node: yaml.Node, loader: yaml.SafeLoader) -> object:
    kind = _NUMBERS.get(node.tag)
    if kind and len(node.value) > _MOST_LETTERS:
        raise ValueError(f"{shown(node.value)} has more than {_MOST_LETTERS} letters, too many for a number")
    try:
        value: object = loader.construct_object(node)
    except _UNREADABLE:
        kind = kind or "!!" + node.tag.rpartition(":")[2]
        raise ValueError(f"{shown(node.value)} is not a {kind}") from None
    if isinstance(value, list | dict | set):  # !!seq before a text: PyYAML would complain later
        raise ValueError(f"{shown(node.value)} is a plain value and has the tag of a collection")
    if isinstance(value, int) and not isinstance(value, bool) and ":" in node.value:
        return node.value  # YAML 1.1 reads 1:30 in base 60; nobody means that
    return value


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _default(item: Field[Any]) -> Any:
    if item.default is not MISSING:
        return item.default
    return item.default_factory() if item.default_factory is not MISSING else None


def _reader_for(attribute: str, default: object) -> Reader:
    """Return the reader of an attribute that names none: what its default is decides."""
    if isinstance(default, bool):
        return boolean
    if attribute.endswith("_ns"):
        whole = duration(0, 365 * 86_400 * 10**9)
        return whole if isinstance(default, int) else lambda value: float(whole(value))
    if isinstance(default, int):
        return integer(0, 1 << 40)
    if isinstance(default, float):
        return number(-1e18, 1e18)
    if isinstance(default, tuple):
        return numbers if default and isinstance(default[0], float) else texts
    return text


def _unknown(name: str) -> str:
    near = nearest_key(name)
    return f"unknown key {shown(name)[1:-1]}" + (f"; did you mean {near}?" if near else "")


def nearest_key(name: str) -> str | None:
    """Return the known key most similar to ``name``, None if none is similar."""
    import difflib  # noqa: PLC0415  only for a file with a mistake

    known = sorted(known_keys())
    plain = name.replace("[", ".").split(".")
    wanted = ".".join(part for part in plain if not part.rstrip("]").isdigit())
    close = difflib.get_close_matches(wanted, known, n=1, cutoff=0.6)
    if close:
        return close[0]
    same_end = [key for key in known if key.rsplit(".", 1)[-1] == wanted.rsplit(".", 1)[-1]]
    return same_end[0] if same_end else None


def known_keys() -> Mapping[str, object]:
    """Return every key by its full name with its default; the keys of a program stand under ``programs``."""
    return {"programs": (), **dict(_leaves(Config(), "")), **dict(_leaves_of_program())}


def _leaves(tree: object, prefix: str) -> Iterator[tuple[str, object]]:
    for item in fields(tree):  # type: ignore[arg-type]
        value = getattr(tree, item.name)
        name = f"{prefix}{key_name(item.name)}"
        if is_dataclass(value):
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _leaves_of_program() -> Iterator[tuple[str, object]]:
    return ((f"programs.{key_name(item.name)}", None) for item in fields(Program))
