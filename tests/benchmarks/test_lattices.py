"""The benchmark of lattices checks each edit against its worklist."""

from __future__ import annotations

import pytest

from asv_benchmarks.lattices import ANALYSES, measure


@pytest.mark.parametrize("name", ANALYSES)
def test_an_analysis_equals_its_worklist_after_each_edit(name: str) -> None:
    found = measure(name, 40, edits=12)
    assert len(found.edits) == 12
