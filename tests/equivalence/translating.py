"""What was written under old names, as it is written now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Json = Any
"""What ``json.loads`` returns."""
Table = Mapping[str, str]


def translated(
    value: Json, keys: Table, values: Mapping[str, Table] | None = None, words: Table | None = None, parent: str = ""
) -> Json:
    """Return JSON under new names.

    Parameters
    ----------
    value : Json
    keys : mapping
        Old key, or ``parent.key``, to new key.
    values : mapping, optional
        Old key to a table of the texts that stand under it.
    words : mapping, optional
        Words of other texts, if these are sentences: a text without a space is a name of the program watched.
    parent : str
        The old key that ``value`` stands under.

    Raises
    ------
    ValueError
        If two keys of one object become the same.
    """
    if isinstance(value, list):
        return [translated(each, keys, values, words, parent) for each in value]
    if isinstance(value, Mapping):
        made = {
            keys.get(f"{parent}.{key}", keys.get(key, key)): translated(each, keys, values, words, key)
            for key, each in value.items()
        }
        if len(made) != len(value):
            raise ValueError(f"two keys under {parent or 'the top'} get the same name: {', '.join(value)}")
        return made
    if isinstance(value, str):
        if parent in (values or {}):
            return (values or {})[parent].get(value, value)
        return reworded(value, words or {}) if " " in value else value
    return value


def reworded(text: str, words: Table) -> str:
    """Return a text with words and phrases replaced, the longest first; a phrase may go over the end of a line."""
    if not words:
        return text
    longest_first = sorted(words, key=lambda each: (-len(each), each))
    by_words = {tuple(each.split()): words[each] for each in longest_first}
    pattern = "|".join(r"\s+".join(map(re.escape, each.split())) for each in longest_first)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", lambda found: by_words[tuple(found[0].split())], text)


def translated_scrape(text: str, metrics: Table, words: Table) -> str:
    """Return a scrape under new names: names and labels everywhere, words in the help."""
    names = {**{f"{old}_total": f"{new}_total" for old, new in metrics.items()}, **metrics}
    lines = []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            head, help_text = line[:7], line[7:].partition(" ")
            lines.append(f"{head}{reworded(help_text[0], names)} {reworded(help_text[2], {**words, **names})}")
        else:
            lines.append(reworded(line, names))
    return "\n".join(lines)
