"""Manual pages, written from the texts of the help and of the default configuration: there is no second copy.

The format is that of man(7). Pages of commands are in section 1, of the daemon in 8, of its configuration in 5.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator

import click

from specmine import __version__
from specmine.cli.base.examples import EXAMPLES
from specmine.cli.main import COMMANDS, specmine
from specmine.daemon.config.tree import default_text
from specmine.daemon.main import DEFAULT_CONFIG, parser
from specmine.fleet.forwarding.arguments import parser as forwarding_parser

EXIT_CODES = (
    ("0", "Fine; or what was asked holds."),
    ("1", "Violated, or worse."),
    ("2", "Wrong usage or input."),
    ("3", "Not enough data."),
    ("4", "This host cannot, or the privilege is missing."),
    ("130", "Interrupted."),
)
Codes = tuple[tuple[str, str], ...]
DAEMON_EXIT_CODES = (
    ("0", "Ended by SIGTERM or SIGINT, or all programs chosen by pid have ended."),
    ("1", "Something broke; a new start may help."),
    ("2", "Wrong usage, configuration, lock, store, port or socket."),
    ("4", "This host cannot, or the privilege is missing; specmine doctor says why."),
)
FORWARD_EXIT_CODES = (
    ("0", "What is new was sent, or nothing is new."),
    ("2", "Wrong usage or configuration, or the fleet does not answer."),
    ("3", "There is no store yet."),
    ("4", "A package is missing."),
)


def pages() -> dict[str, str]:
    """Return every page: its file name to its text."""
    context = click.Context(specmine, info_name="specmine", **specmine.context_settings)
    made = {
        "specmine.1": _overview(context),
        "specmined.8": _daemon(),
        "specmined-forward.8": _program("sends what was learned to a fleet", forwarding_parser(), FORWARD_EXIT_CODES),
        "specmined.yaml.5": _configuration(),
    }
    for name in COMMANDS:
        command = specmine.get_command(context, name)
        assert command is not None
        made[f"specmine-{name}.1"] = _command(command, click.Context(command, info_name=name, parent=context))
    return made


def _overview(context: click.Context) -> str:
    commands = ((name, specmine.get_command(context, name)) for name in COMMANDS)
    listed = [(f"specmine-{name}(1)", command.get_short_help_str(200)) for name, command in commands if command]
    return _page(
        "SPECMINE", 1,
        _section("NAME", [r"specmine \- mines performance assertions from running native programs"]),
        _section("SYNOPSIS", [r".B specmine", _escaped("[OPTIONS] COMMAND [ARGS]...")]),
        _section("DESCRIPTION", _prose(specmine.help or "")),
        _section("OPTIONS", _terms(_options(specmine, context))),
        _section("COMMANDS", _terms(listed)),
        _exit(EXIT_CODES),
        _see("specmined(8)", "specmined.yaml(5)"),
    )  # fmt: skip


def _command(command: click.Command, context: click.Context) -> str:
    name = str(context.info_name)
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        _section("NAME", [rf"specmine\-{_escaped(name)} \- {_escaped(_summary(command))}"]),
        _section("SYNOPSIS", [rf".B specmine {_escaped(name)}", _escaped(usage)]),
        _section("DESCRIPTION", _prose(command.help or "")),
        _section("OPTIONS", _terms(_options(command, context))),
    ]
    if isinstance(command, click.Group):
        for each, inner in command.commands.items():
            below = click.Context(inner, info_name=each, parent=context)
            usage = " ".join(inner.collect_usage_pieces(below))
            parts.append(_section(f"specmine {name} {each}".upper(), [
                rf".B specmine {_escaped(name)} {_escaped(each)}", _escaped(usage), ".PP",
                *_prose(inner.help or ""), *_terms(_options(inner, below)),
            ]))  # fmt: skip
    if EXAMPLES.get(name):
        parts.append(_section("EXAMPLES", _verbatim(EXAMPLES[name])))
    return _page(f"SPECMINE-{name.upper()}", 1, *parts, _exit(EXIT_CODES), _see("specmine(1)", "specmined(8)"))


def _daemon() -> str:
    return _program(
        "the daemon of specmine",
        parser(),
        DAEMON_EXIT_CODES,
        _section("SIGNALS", _terms([
            ("SIGHUP", "Read the configuration again."),
            ("SIGUSR1", "Detach all probes and keep them off."),
            ("SIGUSR2", "End the effect of SIGUSR1."),
        ])),
        _section("FILES", _terms([(str(DEFAULT_CONFIG), "The configuration; see specmined.yaml(5).")])),
    )  # fmt: skip


def _program(summary: str, parsed: argparse.ArgumentParser, codes: Codes, *more: Iterable[str]) -> str:
    """Return the page of a program that has a parser of its own."""
    name = parsed.prog
    options = [
        (", ".join(each.option_strings) + (f" {each.metavar}" if each.metavar else ""), each.help or "")
        for each in parsed._actions
        if each.option_strings
    ]
    usage = parsed.format_usage().removeprefix(f"usage: {name}").split()
    return _page(
        name.upper(), 8,
        _section("NAME", [rf"{_escaped(name)} \- {_escaped(summary)}"]),
        _section("SYNOPSIS", [rf".B {_escaped(name)}", _escaped(" ".join(usage))]),
        _section("DESCRIPTION", _prose(parsed.description or "")),
        _section("OPTIONS", _terms(options)),
        *more,
        _exit(codes),
        _see("specmine(1)", "specmined.yaml(5)"),
    )  # fmt: skip


def _configuration() -> str:
    return _page(
        "SPECMINED.YAML", 5,
        _section("NAME", [r"specmined.yaml \- configuration of specmined"]),
        _section("DESCRIPTION", _prose(
            f"{DEFAULT_CONFIG} needs only the keys that differ from the defaults. The least that it contains is a "
            "program to watch. All keys, with their defaults:"
        )),
        _section("KEYS", _verbatim(default_text().splitlines())),
        _see("specmined(8)", "specmine(1)"),
    )  # fmt: skip


def _page(title: str, section: int, *parts: Iterable[str]) -> str:
    head = f'.TH {_escaped(title)} {section} "" "specmine {__version__}" "specmine"'
    return "\n".join([head, *(line for part in parts for line in part)]) + "\n"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    held = list(lines)
    if held:
        yield f'.SH "{_escaped(title)}"'
        yield from held


def _exit(codes: Iterable[tuple[str, str]]) -> Iterator[str]:
    return _section("EXIT STATUS", _terms(codes))


def _see(*others: str) -> Iterator[str]:
    return _section("SEE ALSO", [", ".join(map(_escaped, others))])


def _summary(command: click.Command) -> str:
    text = command.get_short_help_str(200).rstrip(".")
    return text[:1].lower() + text[1:]


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    records = (each.get_help_record(context) for each in command.get_params(context))
    return [record for record in records if record and record[1]]


def _terms(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in pairs:
        yield ".TP"
        yield f".B {_escaped(term)}"
        yield _sentence(text)


def _prose(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield _sentence(paragraph)


def _verbatim(lines: Iterable[str]) -> Iterator[str]:
    yield ".nf"
    yield from (_sentence(line, keep=True) for line in lines)
    yield ".fi"


def _sentence(text: str, *, keep: bool = False) -> str:
    """Return one line of text; a point at its beginning is not a request."""
    line = _escaped(text.rstrip() if keep else " ".join(text.replace("\b", " ").split()))
    return rf"\&{line}" if not line or line[0] in ".'" else line


def _escaped(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace('"', r"\(dq")
