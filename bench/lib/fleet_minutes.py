"""The minutes of a simulated fleet, its hosts divided over processes: between two plans no host needs another.

Hosts are told what was planned at the last full minute, and what they send is read at the next. So one process or
several come to the same.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from specmine.mining.fleet.duties import Assignment
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.observation import Observation
from tests.support.simulated import SECOND

from .simulated_fleet import BEGIN_NS, LEARNING_S, Centre, FleetMember

MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What some hosts do next."""

    first: int
    last: int
    """Seconds."""
    every: int
    lost: int
    """Second from which the fleet is not reached any more; 0 for none."""
    told: dict[str, Assignment] | None
    """None if they learn alone."""
    statements: Sequence[InheritedStatement]
    """All since the task before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a host sends at a contact."""

    second: int
    host: int
    """Its place among all."""
    name: str
    rows: list[Observation]


@dataclass(slots=True)
class Report:
    """What became of some hosts."""

    sent: list[Sent] = field(default_factory=list)
    finished: dict[int, int] = field(default_factory=dict)
    """By place of the host: functions of which it states something."""
    overhead_ns: dict[int, float] = field(default_factory=dict)


@dataclass
class Hosts:
    """Some hosts, and what the centre last said."""

    members: dict[int, FleetMember]
    post: Centre

    def do(self, task: Task) -> Report:
        """Let them run for some seconds."""
        self.post.told = task.told or {}
        self.post.statements += task.statements
        report = Report()
        for second in range(task.first, task.last + 1):
            now_ns = BEGIN_NS + second * SECOND
            reached = task.told is not None and not (task.lost and second >= task.lost)
            for place, member in self.members.items():
                member.turn(now_ns)
                if reached and member.reaches(second, task.every):
                    report.sent.append(Sent(second=second, host=place, name=member.name, rows=member.sent()))
                    new = member.name not in self.post.heard
                    self.post.heard.add(member.name)
                    learns = self.post.tell(member, now_ns, new=new)
                    member.next_s = second + LEARNING_S if learns else 0
        report.finished = {place: each.finished for place, each in self.members.items()}
        report.overhead_ns = {place: float(each.source.overhead_ns) for place, each in self.members.items()}
        return report


@contextmanager
def divided(members: Sequence[FleetMember], centre: Centre, processes: int) -> Iterator[list[Connection]]:
    """Divide hosts over processes; yield a pipe to each, which takes tasks and gives reports."""
    context: Any = multiprocessing.get_context("fork")
    pipes, children = [], []
    for at in range(processes):
        mine, theirs = context.Pipe()
        some = {place: each for place, each in enumerate(members) if place % processes == at}
        post = Centre(members={}, keys=[], runs=centre.runs)
        child = context.Process(target=_serve, args=(Hosts(members=some, post=post), theirs), daemon=True)
        child.start()
        theirs.close()
        pipes.append(mine)
        children.append(child)
    try:
        yield pipes
    finally:
        for pipe, child in zip(pipes, children, strict=True):
            pipe.send(None)
            child.join()


def _serve(hosts: Hosts, pipe: Connection) -> None:
    while (task := pipe.recv()) is not None:
        pipe.send(hosts.do(task))


def together(pipes: Sequence[Connection], task: Task) -> Report:
    """Let all hosts do something; return what became of them, in the order in which one process would say it."""
    for pipe in pipes:
        pipe.send(task)
    whole = Report()
    for pipe in pipes:
        part: Report = pipe.recv()
        whole.sent += part.sent
        whole.finished |= part.finished
        whole.overhead_ns |= part.overhead_ns
    whole.sent.sort(key=lambda each: (each.second, each.host))
    return whole
