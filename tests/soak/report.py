"""Text of a case: plans, callables, commits."""

from __future__ import annotations

from tests.random_queries.nodes import called, shown
from tests.random_queries.texts import lines_of
from tests.soak.cases import Case


def described(case: Case, message: str) -> str:
    """All that there is to know of a difference, and the command that shows it again."""
    kinds = f"{case.mode}, {case.style}, strict={case.strict}, shares={case.shares}"
    lines = [f"DIFFERENCE seed {case.seed} ({kinds})", message[:3_000]]
    lines += [f"  {name} = {value}" for name, value in case.settings.items()]
    lines += [f"  t{place} {table}" for place, table in enumerate(case.tables)]
    for place, life in case.lives.items():
        lines.append(f"plan {place}: {life.how}, from {life.born} to {life.dies}")
        lines += shown(life.node, 1)
    names = set[str]().union(*(called(life.node) for life in case.lives.values()))
    lines += [f"    {line}" for line in lines_of(case.source, names)]
    lines += [f"  step {number}: {step}" for number, step in case.steps.items()]
    return "\n".join([*lines, f"again: python -m tests.soak --one {case.seed}"])
