"""Examples of every command: the help and the manual pages print them, a test parses them."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "doctor": ("specmine doctor", "specmine doctor -p 2210"),
    "mine": (
        "specmine mine -p 2210 --duration 60",
        "specmine mine --unit nginx.service --duration 5m --output nginx.json",
        "specmine mine --function 'handle_*' --budget 5% -- ./server --port 80",
    ),
    "status": ("specmine status", "specmine status --verbose"),
    "functions": ("specmine functions --program shop --sort time", "specmine functions --state unexplained"),
    "show": ("specmine show checksum", "specmine show load --program shop --format json"),
    "assertions": ("specmine assertions --program shop", "specmine assertions --format json"),
    "violations": ("specmine violations", "specmine violations checksum"),
    "record": ("specmine record -p 2210 --duration 60 --output shop.rec",),
    "replay": ("specmine replay shop.rec",),
    "analyze": ("specmine analyze durations.csv", "specmine analyze spans.json --format json"),
    "merge": ("specmine merge monday.db tuesday.db --output week.db",),
    "plot": ("specmine plot load --output load.svg",),
    "export": ("specmine export --format csv --output model.csv",),
    "label": ("specmine label ddb41c7e v2.5.0",),
    "acknowledge": ("specmine acknowledge checksum --comment 'SHA-256 is wanted'", "specmine acknowledge"),
    "off": ("specmine off",),
    "on": ("specmine on",),
    "experiment": ("specmine experiment list", "specmine experiment run timeslice noise"),
    "compare": ("specmine compare --store shop.db v2.4.1 v2.5.0", "specmine compare old.db new.db"),
    "plan": ("specmine plan shop.db --precision 2% --restart 20s",),
    "bench": (
        "specmine bench plan sort --file sort.yaml --store b.db",
        "specmine bench run sort --store b.db",
        "specmine bench status sort --store b.db --report sort.html",
    ),
    "check": (
        "specmine check shop.json --against live",
        "specmine check --formula 'p99(load) <= 2 ms' --junit check.xml",
    ),
    "report": ("specmine report shop.db --output report.html",),
    "web": ("specmine web", "specmine web --store shop.db --listen 127.0.0.1:8080"),
    "fleet": (
        "specmine fleet enroll web-17 --label role=web --database postgresql://db/f",
        "specmine fleet hosts --database postgresql://db/f",
        "specmine fleet levels --since 2h --database postgresql://db/f",
    ),
    "setup-service": ("specmine setup-service", "specmine setup-service --root /tmp/try"),
}
"""Command to command lines, as a user types them."""


def epilog(name: str, last: str) -> str:
    """Return what stands below the options of a command's help: its examples, then a last line."""
    lines = EXAMPLES.get(name, ())
    head = "Example" if len(lines) == 1 else "Examples"
    return "\n".join(["\b", f"{head}:", *(f"  {line}" for line in lines), "", last]) if lines else last
