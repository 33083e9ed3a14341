"""The benchmark of proofs and of the journal runs, on one folder."""

from __future__ import annotations

import pytest

from asv_benchmarks import why


@pytest.mark.long
def test_it_tells_all_times(capsys: pytest.CaptureFixture[str]) -> None:
    why.of_findings(["json"])
    why.of_commits()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(any(map(str.isdigit, line)) for line in lines)
