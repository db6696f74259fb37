"""The documentation is plain English: short sentences, and none of the words that the glossary replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]

MEAN_WORDS = 18.0
LONG_WORDS = 30
LONG_SHARE = 1 / 50

# What replaced each of them is in docs/glossary.md, in the section that this test leaves out.
REPLACED = [
    r"purses?", r"estates?", r"pupils?", r"lessons?", r"strangers?", r"humbl[ey]", r"taint(?:s|ed)?",
    r"spoil(?:s|t|ed)?", r"held against", r"by chance", r"dear(?:er|est)?", r"told", r"rivals?",
    r"blur(?:s|red)?", r"settled?", r"(?:comes?|came|takes?|taken) off",
    r"CPU(?: time)? beside", r"costs? beside", r"spent beside",
]  # fmt: skip
_REPLACED = re.compile(rf"(?<![\w-])(?:{'|'.join(REPLACED)})(?![\w-])", re.IGNORECASE)
_REPLACED_CODE = re.compile(r"`(?:budget\.)?(?:inside|beside|watching)`|`finding\.rate`")
_REPLACED_SECTION = re.compile(r"\n## Words that were replaced\n.*?(?=\n## |\Z)", re.DOTALL)

_FENCE = re.compile(r"^( *)```.*?^\1```[^\n]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"``[^`]+(?:`[^`]+)*``|`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r" *(?:[-*+]|\d+\.) +")
_END = re.compile(r"[.!?][)\"'*_]*(?=\s|$)")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs and list items of a page, without code blocks, tables and headings.

    Parameters
    ----------
    text
        A page in Markdown. Links become their texts; a code span becomes one word.

    Returns
    -------
    list[str]
        One string an item, without line breaks.
    """
    lines = _CODE.sub("code", _LINK.sub(r"\1", _FENCE.sub("", text))).splitlines()
    blocks: list[list[str]] = [[]]
    after_blank, in_code = True, False
    for line in lines:
        blank = not line.strip()
        indented = line.startswith("    ") and not _ITEM.match(line)
        in_code = (indented and (after_blank or in_code)) or (blank and in_code)
        if blank or in_code or line.startswith(("#", "|")):
            blocks.append([])
        elif _ITEM.match(line):
            blocks.append([_ITEM.sub("", line, count=1)])
        else:
            blocks[-1].append(line.strip())
        after_blank = blank
    return [" ".join(block) for block in blocks if block]


def sentences(text: str) -> list[str]:
    """Return the sentences of a page: they end at ``.``, ``!``, ``?`` or with their paragraph or list item."""
    split = [_END.sub("\n", paragraph).split("\n") for paragraph in paragraphs(text)]
    return [sentence for parts in split for sentence in parts if words(sentence)]


def words(sentence: str) -> int:
    """Return how many words a sentence has: what holds a letter or a digit."""
    return sum(any(map(str.isalnum, word)) for word in sentence.split())


def test_a_page_is_cut_into_sentences() -> None:
    """Code, tables and headings do not count; a colon does not end a sentence, the end of a list item does."""
    page = "# Head\n\nIt takes 3.5 s: long. Is `a b c` it?\n\n    code here.\n\n| a | b |\n\n- one [two](x.md)\n- six\n"
    assert [words(sentence) for sentence in sentences(page)] == [5, 3, 2, 1]


def test_sentences_are_short() -> None:
    """The mean is at most 18 words, and at most one sentence in fifty has more than 30."""
    found = [(words(each), page.name, each) for page in PAGES for each in sentences(page.read_text(encoding="utf-8"))]
    lengths = [count for count, _, _ in found]
    longest = sorted((each for each in found if each[0] > LONG_WORDS), reverse=True)
    assert sum(lengths) / len(lengths) <= MEAN_WORDS
    assert len(longest) <= LONG_SHARE * len(lengths), "\n".join(f"{each}" for each in longest)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_replaced_words_do_not_return(page: Path) -> None:
    """Prose and tables use the words of the glossary; code is checked where the words are keys of the configuration."""
    text = _FENCE.sub("", _REPLACED_SECTION.sub("\n", page.read_text(encoding="utf-8")))
    text = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert _REPLACED.findall(_CODE.sub("code", text)) + _REPLACED_CODE.findall(text) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "glossary.md"], ids=lambda path: path.name)
def test_a_page_links_to_the_glossary(page: Path) -> None:
    """Whoever meets a word finds what it means."""
    assert "[glossary](" in page.read_text(encoding="utf-8")
