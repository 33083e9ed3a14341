"""Values of every kind in a real session of Spark: the column "Spark" of the docs, which is made
without a session, is so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import make_dataclass
from typing import Any

import pytest

from reactive import Database
from spark_backend.codec.schema import Pickled, kept_as
from tests.borders import matrix

NAMES = list(matrix.CASES)
MOST = max(len(values) for _, values in matrix.CASES.values())
PICKLED = [each for each in NAMES if isinstance(kept_as(matrix.row_class(each)), Pickled)]
EXACT = [each for each in NAMES if each not in PICKLED]


def _class(name: str, cases: Sequence[str]) -> Any:
    """A class of rows with a field for each of some cases."""
    fields = [(f"c{NAMES.index(case)}", matrix.CASES[case][0]) for case in cases]
    made: Any = make_dataclass(name, [("id", int), *fields], frozen=True)
    made.__module__ = __name__
    return made


WIDTH = 16
"""Cases that are fields of one class: Spark takes long for rows of many columns."""
CLASSES: dict[Any, list[str]] = {
    _class(f"{name}{start}", part): part
    for name, cases in (("Exact", EXACT), ("Pickled", PICKLED))
    for start in range(0, len(cases), WIDTH)
    for part in [cases[start : start + WIDTH]]
}
globals().update({kind.__name__: kind for kind in CLASSES})  # workers look for them by name


def row(kind: Any, cases: Sequence[str], n: int) -> Any:
    """A row with a value of each case, which repeat where there are few."""
    values = [matrix.CASES[case][1] for case in cases]
    return kind(n, *[of[n % len(of)] for of in values])


@pytest.mark.sampled
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_session_gives_what_the_docs_say(session: Any, offload: Any, kind: Any) -> None:
    cases = CLASSES[kind]
    is_pickled = isinstance(kept_as(kind), Pickled)
    for case in cases:
        said = matrix.crossed(case, "Spark").text
        assert said.startswith("pickled: " if is_pickled else "exact")
    rows = [row(kind, cases, n) for n in range(2 * MOST)]
    with Database(offload=offload) as db:
        table = db.table(kind, name="rows")
        view: Any = table.where(lambda row: row.id >= 0).distinct().materialize("view")
        table.add_all(rows[:MOST])
        view.offload()
        table.add_all(rows[MOST:])
        table.remove(rows[0])
        db.flush()
        found = {row.id: row for row in view}
        assert found.keys() == {row.id for row in rows[1:]}
        for case in cases:
            field = f"c{NAMES.index(case)}"
            for old in rows[1:]:
                value, new = getattr(old, field), getattr(found[old.id], field)
                assert (new, type(new)) == (value, type(value)), case
