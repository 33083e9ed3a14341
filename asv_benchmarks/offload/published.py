"""The experiments of [mrql]: averages by group, of a table and of a join; inserts, then deletes.

Nine increments of one size, then the same rows are deleted, increment by increment. All sizes are
measured one after the other on the same view, which is as large after each as it was before.
"""

from __future__ import annotations

from asv_benchmarks.offload.cases import Case, Change, Changes
from asv_benchmarks.offload.flush import Times
from asv_benchmarks.offload.sides import Side, check_same, moved, spark

INCREMENTS = 9
SHARES = (0.01, 0.02, 0.03, 0.04)
"""Sizes of increments, of all rows: 10,000 to 40,000 of a million."""


def published_figures(
    case: Case, size: int, increments: int = INCREMENTS
) -> dict[str, dict[str, list[float]]]:
    """Rows of an increment -> seconds of each, on Spark and of a commit in the process."""
    with spark() as offload:
        away, here, changes = moved(case, size, offload), Side(case), Changes(case, size)
        here.load(case, size)
        _run(case, away, here, _script(case, changes, round(size * SHARES[0]), 2))
        found = {}
        for rows in (round(size * share) for share in SHARES):
            script = _script(case, changes, rows, increments)
            found[str(rows)] = _run(case, away, here, script)
        away.close()
    return found


def _script(case: Case, changes: Changes, rows: int, count: int) -> list[list[Change]]:
    """Return the inserts and deletes; each table gets its share of all rows."""
    added = [
        [
            Change(table, changes.more(table, share), 1)
            for table, share in enumerate(case.sizes(rows).values())
        ]
        for _ in range(count)
    ]
    return added + [[Change(c.table, c.rows, -1) for c in changes] for changes in added]


def _run(case: Case, away: Side, here: Side, script: list[list[Change]]) -> Times:
    times: Times = {"spark": [], "process": []}
    for changes in script:
        times["spark"].append(away.commit(*changes) + away.flush())
        times["process"].append(here.commit(*changes))
        check_same(case, away, here)
    return times
