"""The benchmark of mirrors runs the operations that it measures."""

from __future__ import annotations

from asv_benchmarks import mirrors


def test_figures_are_made_of_commits_and_loads() -> None:
    assert mirrors.commit_figures(rows=60, rounds=2)["ratio"] > 0
    assert mirrors.load_figures(rows=50)["load"] > 0
