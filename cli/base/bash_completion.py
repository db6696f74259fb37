"""What bash completes: names with ``::`` and with characters that a shell reads are completed as they are typed.

Readline breaks words at ``:`` and ``=``, so it replaces only what follows the last of them. The line is therefore taken
apart here, as the shell would, and what readline keeps is left out of what it gets.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

SCRIPT = """\
%(complete_func)s() {
    local response type value
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_SPECIAL = re.compile(r"[^\w@%+=:,./-]")
_IN_QUOTES = re.compile(r"[\\\"$`]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command line."""

    text: str
    """As the command gets it."""
    quote: str = ""
    """The quote that is still open at its end."""
    broken: int = 0
    """How many characters of the text come before the last one at which readline breaks the word, and that one."""


def words_of(line: str, breaks: str) -> list[Word]:
    """Return the words of a line as bash reads them; the last is the one that is begun, '' after a space.

    Parameters
    ----------
    line : str
        Up to the cursor.
    breaks : str
        ``COMP_WORDBREAKS``.
    """
    found: list[Word] = []
    text, quote, broken, begun = "", "", 0, False
    letters = iter(line)
    for letter in letters:
        if quote:
            if letter == quote:
                quote = ""
            else:
                text += next(letters, "") if letter == "\\" and quote == '"' else letter
        elif letter.isspace():
            if begun:
                found.append(Word(text, quote, broken))
            text, broken, begun = "", 0, False
            continue
        elif letter in "'\"":
            quote = letter
        elif letter == "\\":
            text += next(letters, "")
        else:
            text += letter
            broken = len(text) if letter in breaks else broken
        begun = True
    return [*found, Word(text, quote, broken)]


def written(value: str, word: Word) -> str:
    """Return a value as readline must get it, in the place of what it replaces of a word that is begun."""
    if word.quote:  # no word is broken there, and readline closes the quote
        return _IN_QUOTES.sub(r"\\\g<0>", value) if word.quote == '"' else value
    kept = word.text[: word.broken]
    same = next((kept[at:] for at in range(len(kept)) if value.startswith(kept[at:])), "")
    return _SPECIAL.sub(r"\\\g<0>", value[len(same) :])


class Bash(BashComplete):
    """Completion in bash."""

    source_template = SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is begun, and that one."""
        *before, begun = self._words()
        return [each.text for each in before[1:]], begun.text

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for the script."""
        value = str(item.value)
        return f"{item.type},{written(value, self._words()[-1]) if item.type == 'plain' else value}"

    def _words(self) -> list[Word]:
        return words_of(os.environ.get("COMP_LINE", ""), os.environ.get("COMP_BREAKS", ":="))


add_completion_class(Bash, "bash")
