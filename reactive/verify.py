"""Compare what is maintained with the query evaluated from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.properties import tables
from reactive.errors import TableError, VerificationError
from reactive.evaluate import evaluate, ordered
from reactive.order import tie_key
from reactive.zset import Row

if TYPE_CHECKING:
    from reactive.database import Database

MOST = 5


def verify(node: plan.Node, contents: Any, name: str, db: Database) -> None:
    """Raise `VerificationError` unless `contents` are the rows of the plan."""
    for table in tables(node):
        if not table.stored:
            raise TableError(
                f"cannot verify {name}: table {table.name!r} is not stored\n"
                "  there are no rows to evaluate the query on"
            )

    def rows(table: plan.Table) -> Any:
        return db._graph.contents(db._source(table))

    expected, found = evaluate(node, rows), Counter(dict(contents.items()))
    if isinstance(node, plan.OrderBy):
        wanted = ordered(node, rows)
        same = list(map(tie_key, wanted)) == list(map(tie_key, contents.rows()))
        if same:
            return  # rows that cannot be told apart by any order may stand for each other
    if expected != found:
        raise VerificationError(
            f"{name} differs from its query\n"
            f"  missing: {_few((expected - found).elements())}\n"
            f"  not in the query: {_few((found - expected).elements())}"
        )
    if isinstance(node, plan.OrderBy):
        raise VerificationError(f"{name} has the rows of its query, but not in their order")


def _few(rows: Iterable[Row]) -> str:
    shown = [repr(row) for row, _ in zip(rows, range(MOST + 1), strict=False)]
    return ", ".join(shown[:MOST] + ["..."] * (len(shown) > MOST)) or "none"
