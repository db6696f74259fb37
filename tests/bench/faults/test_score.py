"""What is counted of faults that were tried several times."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.faults.score import main


def test_the_score_compares_the_factor_with_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One is near, one is not; of one nothing was measured."""
    tries = [(2.0, 2.1, (1.5, 2.5)), (2.0, 5.0, (1.5, 2.5)), (2.0, None, (1.5, 2.5))]
    lines = [
        f'{{"program": "p", "fault": "f", "opened_s": 9.0, "factor": {factor}, "interval": {list(interval)}, '
        f'"measured_factor": {"null" if measured is None else measured}}}'
        for factor, measured, interval in tries
    ]
    (tmp_path / "outcomes").write_text("\n".join(lines))
    main([str(tmp_path / "outcomes")])
    rows = {row.split("|")[1].strip(): row for row in capsys.readouterr().out.splitlines() if row.startswith("|")}
    assert "1 of 2" in rows["factor within 20 % of what bpftrace measures"]
    assert "1 of 2" in rows["interval of the factor holds that"]
