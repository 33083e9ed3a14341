"""Golden texts of what is computed of rows inside, without them: a nest, a fold, and its plan.

    council.group_by("last_name").rows()
    lambda key, rows: (key, len(rows))
    =>
    select (key, row1)
      aggregate Count() by row.last_name
        table council

`each of lambda key, rows: ...` is what gives several values. The fold is law: each is tried on all
small tables, beside the same callable of bags that are built.
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
        """What the callable is given to."""
        return "select_many" if self.fold.startswith("each of ") else "select"

    @property
    def callable(self) -> str:
        return self.fold.removeprefix("each of ")

    def plans(self) -> tuple[plan.Node, plan.Node]:
        """That of the rows with bags, and that of what is computed of them."""
        db = Database()
        names = {**NAMES, **tables(db)}
        nest = evaluated(self.nest, names)
        folded = evaluated(f"nest.{self.method}({self.callable})", {**names, "nest": nest})
        return nest.plan, folded.plan

    def shown(self) -> str:
        return shown(optimize(self.plans()[1]).plan)

    def of_bags(self, nest: plan.Node, contents: Contents) -> Any:
        """What the callable gives for rows with bags."""
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
