"""Compare what is maintained with the query evaluated from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.properties import tables
from reactive.errors import TableError, VerificationError
from reactive.evaluate import Tables, evaluate, order_key, ordered
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
        return db._table_of(table)._all()

    with db._graph.running():
        _compare(node, contents, name, rows)


def _compare(node: plan.Node, contents: Any, name: str, rows: Tables) -> None:
    if isinstance(node, plan.OrderBy) and _in_order(node, list(contents.rows()), rows):
        return
    expected, found = evaluate(node, rows), Counter(dict(contents.items()))
    if expected != found:
        raise VerificationError(
            f"{name} differs from its query\n"
            f"  missing: {_few((expected - found).elements())}\n"
            f"  not in the query: {_few((found - expected).elements())}"
        )
    if isinstance(node, plan.OrderBy):
        raise VerificationError(f"{name} has the rows of its query, but not in their order")


def _in_order(node: plan.OrderBy, shown: list[Row], tables: Tables) -> bool:
    """Whether the rows are right; those that no order tells apart may stand for each other."""

    def mark(row: Row) -> Any:
        return order_key(node, row), tie_key(row)

    foreign = Counter(shown) - evaluate(node.input, tables)
    return not foreign and list(map(mark, shown)) == list(map(mark, ordered(node, tables)))


def _few(rows: Iterable[Row]) -> str:
    shown = [repr(row) for row, _ in zip(rows, range(MOST + 1), strict=False)]
    return ", ".join(shown[:MOST] + ["..."] * (len(shown) > MOST)) or "none"
