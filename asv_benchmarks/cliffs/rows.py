"""All rows, in the order of the table, and the watched rows."""

from __future__ import annotations

from asv_benchmarks.cliffs import (
    cyclic,
    floats,
    loops,
    mechanisms,
    orders,
    pairs,
    recursive,
    spellings,
    starting,
    statements,
    values,
    views,
)
from asv_benchmarks.cliffs.cliff import Cliff

FAMILIES: dict[str, tuple[Cliff, ...]] = {
    "orders": orders.CLIFFS,
    "cyclic": cyclic.CLIFFS,
    "pairs": pairs.CLIFFS,
    "values": values.CLIFFS,
    "views": views.CLIFFS,
    "statements": statements.CLIFFS,
    "floats": floats.CLIFFS,
    "recursive": recursive.CLIFFS,
    "loops": loops.CLIFFS,
    "starting": starting.CLIFFS,
    "spellings": spellings.CLIFFS,
    "mechanisms": mechanisms.CLIFFS,
}
CLIFFS: tuple[Cliff, ...] = tuple(cliff for family in FAMILIES.values() for cliff in family)
WATCHED = (
    "`order_by(...).limit(10)`, 10 rows a key, a new best comes",
    "load of an order, 1,000 keys",
    "triangles a→b→c, a→c: listed, one edge",
    "pairs of a join, a view over filled tables",
    "1,000 views `s.quantity > 3 and s.customer == c`, a change",
    "30 views on one table, a change, per view",
    "a chain of 20 views, a change, per level",
    "a transaction of one statement",
    "`(a.k == b.k) & (c.k == b.k)`, load",
    "`<` of both sides, then the key",
    "float sums, one change",
    "closure of a digraph, one edge",
    "PageRank by `left_join`, one edge",
    f"{views.KINDS} views of a join by a field of the other table, a change",
    f"{views.KINDS} alerts above groups, a change",
    *(cliff.name for cliff in mechanisms.CLIFFS),
    "`replace_where` of 50 rows by a field",
    '`db.execute("update ... where id = :id")`',
)
"""Some of each family, which asv and `make bench` measure."""


def cliff_of(name: str) -> Cliff:
    """The row of a name."""
    return next(cliff for cliff in CLIFFS if cliff.name == name)
