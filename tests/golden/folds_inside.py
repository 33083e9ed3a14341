"""Golden texts of folds over inner rows that are computed without these: nest, fold, plan.

    council.group_by("last_name").rows()
    lambda key, rows: (key, len(rows))
    =>
    select (key, row1)
      aggregate Count() by row.last_name
        table council

`each of lambda key, rows: ...` returns several values. The fold is law: each is tried on all small
tables, beside the same callable over materialized bags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimizer import plan
from optimizer.rewriting.optimize import optimize
from reactive import Database
from reactive.engine.collections.zset import canonical
from tests.golden.cases import shown
from tests.golden.contents import Contents, from_scratch
from tests.golden.tables import NAMES, tables
from tests.written import evaluated

TEXT = Path(__file__).parent / "folds_inside.txt"


@dataclass(frozen=True)
class Case:
    """A relation of rows with others inside, a callable of them, and the text of a plan."""

    nest: str
    fold: str
    expected: str

    def __str__(self) -> str:
        return self.fold

    @property
    def method(self) -> str:
        """Name of the method that takes the callable."""
        return "select_many" if self.fold.startswith("each of ") else "select"

    @property
    def callable(self) -> str:
        return self.fold.removeprefix("each of ")

    def plans(self) -> tuple[plan.Node, plan.Node]:
        """Return the plan of the rows with bags, and the plan of the fold."""
        db = Database()
        names = {**NAMES, **tables(db)}
        nest = evaluated(self.nest, names)
        folded = evaluated(f"nest.{self.method}({self.callable})", {**names, "nest": nest})
        return nest.plan, folded.plan

    def shown(self) -> str:
        return shown(optimize(self.plans()[1]).plan)

    def of_bags(self, nest: plan.Node, contents: Contents) -> Any:
        """Return the result of the callable for rows with bags."""
        fold = evaluated(self.callable, NAMES)
        rows: Any = from_scratch(nest, contents)
        found: Counter[Any] = Counter()
        for row, weight in rows.items():
            for made in fold(*row) if self.method == "select_many" else [fold(*row)]:
                found[canonical(made)] += weight
        return found


def cases() -> Iterator[Case]:
    """All that are in the file."""
    for part in TEXT.read_text().strip().split("\n\n"):
        lines = [line for line in part.splitlines() if not line.startswith("#")]
        nest, fold, arrow, *expected = lines
        assert arrow == "=>"
        yield Case(nest, fold, "\n".join(expected))
