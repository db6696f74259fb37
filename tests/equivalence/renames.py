"""Names that changed since the golden outputs were made: each table maps an old name to the new one.

A key is a name, or ``parent.name`` where it changed below one parent only; the parent is given by its old name, the
new name stands alone. Lists between both do not count. Of two entries that fit the longer one holds.
"""

from __future__ import annotations

from collections.abc import Mapping

RECORDING_KEYS: Mapping[str, str] = {
    "settings.budget": "overhead",
    "settings.watching": "verification",
    "settings.beside": "agent",
    "spent.inside_ns": "overhead_ns",
    "where": "profile",
    "spent.beside_ns": "agent_ns",
    "observations.counts": "histogram",
    "paths.counts": "histogram",
    "batch.singles": "call_samples",
    "singles.kept": "sample",
    "batch.findings": "hot_samples",
}
"""Fields in the lines of recordings: events, actions, and what a store held (``restored``)."""

RECORDING_VALUES: Mapping[str, Mapping[str, str]] = {}
"""Values in recordings by their field's old name, such as ``{"kind": {"arrived": "polled"}}``."""

CONFIGURATION_KEYS: Mapping[str, str] = {
    "budget.inside": "overhead",
    "budget.beside": "agent",
    "budget.watching": "verification",
    "finding": "sampling",
}
"""Keys of configuration files."""

JSON_KEYS: Mapping[str, str] = {
    "budget.inside": "overhead",
    "budget.beside": "agent",
    "collection.budget_ratio": "overhead_budget_ratio",
    "collection.spent_ratio": "overhead_ratio",
    "collection.inside_seconds": "overhead_seconds",
    "collection.beside_cpu_seconds": "agent_cpu_seconds",
}
"""Keys of JSON that the product writes."""

JSON_VALUES: Mapping[str, Mapping[str, str]] = {}
"""Values in JSON by their key's old name, such as ``{"state": {"single": "uniform"}}``."""

METRICS: Mapping[str, str] = {
    "specmine_inside_promised_ratio": "specmine_overhead_promised_ratio",
    "specmine_inside_lent_ratio": "specmine_overhead_lent_ratio",
    "specmine_inside_predicted_ratio": "specmine_overhead_predicted_ratio",
    "specmine_inside_seconds": "specmine_overhead_seconds",
    "specmine_function_inside_seconds": "specmine_function_overhead_seconds",
    "specmine_beside_promised_ratio": "specmine_agent_promised_ratio",
    "specmine_beside_seconds": "specmine_agent_seconds",
    "specmine_beside_pressure_ratio": "specmine_agent_pressure_ratio",
}
"""Names of metrics and labels, as whole words of a scrape; a counter also under its name with ``_total``."""

WORDS: Mapping[str, str] = {
    "Where a function stands; 1 for the present state,": "The state of a function: 1 for the present one,",
    "When what this scrape shows was last renewed.": "Time of the snapshot that this scrape shows.",
    "Part of the promise lent to a mine command beside the daemon.": "Part of the promise that is leased to a mine"
    " command on this host.",
    "and what following waits costs programs that nobody watches.": "and of tracing waits in programs that nobody"
    " watches.",
    "with caches as cold as lately.": "with caches as cold as they were recently.",
    "What the kernel told of the same.": "What the kernel reports of the same.",
    "Things given up because the store could not be written for long.": "Records dropped because the store could not be"
    " written for long.",
    "inside\n    promised": "overhead\n    promised",
    "beside\n    promised": "agent\n    promised",
    "tells its classes apart, better than": "distinguishes its classes better than",
    "places for probes": "probe slots",
    "set of call edges tells them apart": "set of call edges distinguishes them",
    "; took": "; specmine's own processes took",
    "of CPU beside it": "of CPU",
    "and not by chance": "beyond random variation",
    "speaks for:": "likely cause:",
}
"""Words and phrases of text for people, of metrics' help, and of sentences in JSON."""
