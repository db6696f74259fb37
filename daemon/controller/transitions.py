"""The flow of one function, after the flowchart of the first paper (section 3): what was seen moves it on.

candidate -> (counted) -> waiting <-> timing -> single | explaining -> explained | unexplained; a function
that does not settle within the sample limit is parked as unstable. Finished ones are checked again.
"""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import MS, SECOND, Settings
from specmine.daemon.worker.jobs import Job
from specmine.mining.assertions.explanation import JobResult
from specmine.mining.borders.inference import borders_of, check, conclude, no_finer, shifted
from specmine.mining.off_cpu import on_cpu
from specmine.model.batch import Refusal
from specmine.model.function import Reason
from specmine.model.observation import Kind, Observation
from specmine.model.sparse import Kept

from . import reasons
from .function import Knowledge
from .history import with_observation
from .phase import FINISHED, State
from .provisional import checked

ADMISSION_NS = 200 * MS
"""How long calls are counted before a price is predicted."""
PARKED_NS = 600 * SECOND
"""An unstable function is tried again after this time."""
PATIENCE = 5
"""Windows after which call paths are explained with the fewest observations that will do."""
CHECK_EVERY_NS = 10 * SECOND
"""A finished function is not checked more often."""
VIOLATIONS = 3
"""Observations running that violate before the function is learned anew."""


def refused(known: Knowledge, refusal: Refusal, now_ns: int) -> Knowledge:
    """Take a refusal in: without timing nothing can be learned, without paths nothing explained."""
    if refusal.reason.code in reasons.PASSING:
        waits = known.state in (State.CANDIDATE, State.TIMING)
        known = known.moved(State.WAITING if waits else known.state, refusal.reason, now_ns)
        return replace(known, watch=None)
    kept = tuple(each for each in known.refused if each[0] is not refusal.kind)
    known = replace(known, refused=tuple(sorted((*kept, (refusal.kind, refusal.reason)), key=lambda each: each[0])))
    reason = known.refusal(Kind.TIME)
    if reason is not None:
        state = State.EXCLUDED if reason.code in reasons.HINTS else State.REFUSED
        return replace(known.moved(state, reason, now_ns), watch=None)
    if known.state is State.EXPLAINING:
        return replace(known.moved(State.UNEXPLAINED, refusal.reason, now_ns), watch=None)
    return known


def counted(known: Knowledge, now_ns: int) -> Knowledge:
    """End a count that has lasted long enough; the rate decides what comes next."""
    watch = known.watch
    if known.state is not State.CANDIDATE or watch is None or watch.kind is not Kind.COUNT:
        return known
    # a probe may not come on at all (nothing mapped yet): give up waiting for it after five times the length
    done = known.recent_ns >= ADMISSION_NS or known.limited
    if not done and now_ns - known.watched_since_ns < 5 * ADMISSION_NS:
        return known
    return known.moved(State.WAITING, reasons.queued(0.0), now_ns)


def observed(known: Knowledge, seen: Observation, settings: Settings) -> Knowledge:
    """Take an observation in and move the function on as far as it carries."""
    settled = _is_settled(known, seen, settings)
    if known.inherited is not None and known.state not in FINISHED:
        known = replace(known, inherited=checked(known.inherited, seen, settings))
    known = with_observation(known, seen, settings.mining.recent)
    if settled:
        return known
    held = known.paths if seen.kind is Kind.PATH else known.timing
    known = replace(known, on_cpu=on_cpu.observed(known.on_cpu, held[-settings.mining.recent :], settings.mining))
    if known.state is State.EXPLAINING and seen.kind is Kind.PATH:
        return described(known, settings)  # what they agree on is asked once they are explained
    known = _concluded(known, seen.kind, settings)
    if known.state in FINISHED:
        return _checked(known, seen, settings)
    if known.state is State.TIMING and seen.kind is Kind.TIME:
        return _timed(known, seen.end_ns, settings)
    return known


def _concluded(known: Knowledge, kind: Kind, settings: Settings) -> Knowledge:
    """Conclude from the newest observations of a kind."""
    recent = -settings.mining.recent
    held = [each.whole() for each in (known.paths if kind is Kind.PATH else known.timing)[recent:]]
    before = known.chain if known.chain_kind is kind else None
    asked = known.borders_of(kind)
    found = tuple(
        borders_of(seen, no_finer(settings.mining, [seen])) if own is None else own
        for seen, own in zip(held, asked[recent:], strict=True)
    )
    chain = conclude(held, found, before, settings.mining)
    others = tuple(each for each in known.found if each[0] is not kind)
    return replace(known, found=(*others, (kind, (*asked[:recent], *found))), chain=chain, chain_kind=kind)


def _is_settled(known: Knowledge, seen: Observation, settings: Settings) -> bool:
    """Tell whether a finished function that held was checked a moment ago: windows of busy ones come every second."""
    if known.state not in FINISHED or known.violations or known.checked_ns is None or known.chain is None:
        return False
    every_ns = min(CHECK_EVERY_NS, settings.verify_every_ns // 6)
    return known.chain_kind is seen.kind and known.chain.stable and seen.end_ns - known.checked_ns < every_ns


def _timed(known: Knowledge, now_ns: int, settings: Settings) -> Knowledge:
    chain = known.chain
    if chain is None or not chain.stable:
        if known.tried >= settings.mining.sample_limit:
            return replace(known.moved(State.UNSTABLE, reasons.unstable(known.tried, PARKED_NS), now_ns), tried=0)
        return described(known, settings)
    known = replace(known, learned=chain, tried=0)
    if not chain.borders:
        return replace(known.moved(State.SINGLE, None, now_ns), checked_ns=now_ns)
    no_paths = known.refusal(Kind.PATH)
    if no_paths is not None:
        return replace(known.moved(State.UNEXPLAINED, no_paths, now_ns), checked_ns=now_ns)
    found = tuple(each for each in known.found if each[0] is Kind.TIME)
    known = replace(known, paths=(), found=found, explained_with=0)
    return described(known.moved(State.EXPLAINING, None, now_ns), settings)


def described(known: Knowledge, settings: Settings) -> Knowledge:
    """Say what a function that is being learned still needs."""
    if known.state is State.TIMING:
        need = settings.mining.chain_observations
        have = min(known.chain.chain, need) if known.chain else 0
        what = "agreeing observations"
        reason = reasons.learning(have, need, what, known.rate, settings)
    elif known.state is State.EXPLAINING and known.job is not None:
        reason = reasons.mining()
    elif known.state is State.EXPLAINING:
        have = enough(known.paths, settings)
        what = "observations with call paths"
        reason = reasons.learning(have, settings.mining.recent, what, known.rate, settings)
    else:
        return known
    return known if reason == known.reason else replace(known, reason=reason)


def enough(observations: tuple[Kept, ...], settings: Settings) -> int:
    """Return how many observations hold enough calls to be judged."""
    return sum(each.timed >= settings.mining.minimum_calls for each in observations)


def job_for(known: Knowledge, settings: Settings, program_modules: tuple[str, ...], now_ns: int) -> Job | None:
    """Return the job that would explain the function now, None if it is not time for one."""
    if known.job is not None or known.learned is None or known.chain is None or not known.paths:
        return None
    mining, observations = settings.mining, known.paths
    have = enough(observations, settings)
    edges = shifted(known.learned.edges, known.learned.bias_ns, observations[-1].bias_ns)
    if known.state is State.EXPLAINING:
        # rare paths need calls: wait for more observations unless they come slowly
        patience = now_ns - known.since_ns >= PATIENCE * settings.window_ns
        due = have >= mining.recent or (have >= mining.chain_observations and patience)
    elif _is_relearned(known):
        due = bool(known.chain.borders)
        edges, start_ns = known.chain.edges, known.chain.start_ns or 0
        observations = tuple(each for each in observations if each.start_ns >= start_ns)
    else:
        due = known.state is State.EXPLAINED and have >= 2 * max(known.explained_with, mining.recent // 2)
    if not due or not observations:
        return None
    return Job(
        function=known.function.key,
        observations=tuple(each.whole() for each in observations),
        borders=edges,
        program_modules=program_modules,
        mining=mining,
    )


def _is_relearned(known: Knowledge) -> bool:
    """Tell whether what no longer held has been found stable again, in whatever form."""
    broken = known.state in FINISHED and known.result is not None and known.violations >= VIOLATIONS
    return broken and known.chain is not None and known.chain.stable


def explained(known: Knowledge, result: JobResult, now_ns: int, settings: Settings) -> Knowledge:
    """Take the worker's answer in."""
    if _is_relearned(known):
        known = replace(known, learned=known.chain, violations=0, checks=())
    if known.state is State.EXPLAINING and known.paths:
        known = _concluded(known, Kind.PATH, settings)
    known = replace(
        known,
        job=None,
        failures=0,
        result=result,
        explained_with=enough(known.paths, settings),
        checked_ns=now_ns,
        tried=0,
    )
    if len(result.behaviours) > 1:
        return known.moved(State.EXPLAINED, None, now_ns)
    return known.moved(State.UNEXPLAINED, reasons.unexplained(result.why), now_ns)


def failed(known: Knowledge, failure: str, now_ns: int, settings: Settings) -> Knowledge:
    """Take in that the worker failed: the job is given once more, then the function is given up."""
    known = replace(known, job=None, failures=known.failures + 1)
    if known.failures < 2:
        return known
    known = replace(known, failures=0, violations=0, explained_with=enough(known.paths, settings))
    if known.state is not State.EXPLAINING:
        return known
    return known.moved(State.UNEXPLAINED, reasons.mining_failed(failure), now_ns)


def _checked(known: Knowledge, seen: Observation, settings: Settings) -> Knowledge:
    """Check an observation against what was stated; after enough violations running learn anew."""
    if seen.timed < settings.mining.minimum_calls:
        return replace(known, checked_ns=seen.end_ns)
    if known.learned is None or known.chain is None:
        return known
    checks = check(seen, known.result, known.learned, known.chain.chain > 0, settings.mining)
    wrong = sum(each.verdict == "violated" for each in checks)
    violations = known.violations + 1 if wrong else 0
    known = replace(known, checks=checks, checked_ns=seen.end_ns, violations=violations)
    if _is_relearned(known) and known.chain is not None and not known.chain.borders:
        known = replace(known, learned=known.chain, result=None, violations=0, checks=())
        return known.moved(State.SINGLE, None, seen.end_ns)
    if known.state is State.EXPLAINED or (known.state is State.UNEXPLAINED and known.result is not None):
        return replace(known, reason=reasons.violated(wrong) if wrong else _standing(known))
    if violations >= VIOLATIONS:
        # nothing but borders was stated, so there is nothing to keep while they are found again
        known = replace(known, violations=0, checks=(), learned=None, tried=0)
        return described(known.moved(State.TIMING, None, seen.end_ns), settings)
    return known


def _standing(known: Knowledge) -> Reason | None:
    """Return the reason of a finished function whose statements hold."""
    if known.state is not State.UNEXPLAINED or known.reason is None or known.reason.code != "violated":
        return known.reason if known.state is State.UNEXPLAINED else None
    return reasons.unexplained(known.result.why) if known.result else known.refusal(Kind.PATH)
