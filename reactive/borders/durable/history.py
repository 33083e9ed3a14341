"""The last commits of a database, as its store has kept them: `Database.history`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.durable.journal import Journal
from reactive.borders.durable.refusals import DAMAGED, damaged
from reactive.borders.durable.rows.columns import reader
from reactive.borders.durable.rows.values import Unstorable
from reactive.borders.durable.store import Schema, Store, Values
from reactive.engine.collections.zset import Pair, consolidate
from reactive.errors import DurabilityError


@dataclass(frozen=True, slots=True)
class Past:
    """A commit of the past.

    Parameters
    ----------
    version: its number.
    time: when it was.
    changes: by the name of each table that it changed, rows with how much more often they were
        there afterwards. A row of a table that this process has not made is a dictionary.

    >>> Past(7, datetime(2026, 1, 1), {"words": [("to", 1)]}).changes["words"]
    [('to', 1)]
    """

    version: int
    time: datetime
    changes: Mapping[str, Sequence[tuple[Any, int]]]


def history(engine: Any, since: int) -> list[Past]:
    """The commits after a version.

    Raises
    ------
    PlanError: the database is in memory, and keeps none.
    """
    journal: Journal | None = engine.journal
    if journal is None:
        raise PlanError(
            "a database in memory has no history\n  give it a path: Database('shop.db', keep=1000)"
        )
    with engine.inside():
        return _history(journal, since)


def _history(journal: Journal, since: int) -> list[Past]:
    journal.settle()
    schemas = journal.store.tables()
    reads = {kept.name: kept.codec.read for kept in journal.kept.values()}
    found = []
    for logged in journal.store.history(since):
        changes = {
            name: _rows(journal, name, reads.get(name), schemas.get(name), pairs)
            for name, pairs in logged.changes.items()
        }
        when = datetime.fromtimestamp(logged.time, UTC)
        found.append(Past(logged.version, when, changes))
    return found


def rows_at(journal: Journal | None, version: int, tables: Sequence[Any]) -> list[list[Pair]] | str:
    """Return the rows of tables as of a version, or the reason why they are not known.

    Cost: O(the rows, and the commits that are kept).
    """
    if journal is None or not journal.writes:
        return "its database writes no file"
    for table in tables:
        if table not in journal.kept:
            return f"table {table.name!r}, which it reads, is not durable"
    journal.settle()
    logged = journal.store.history(0)
    first = logged[0].version if logged else None
    if first is None or first > max(version, 1):
        return f"{journal.store.name} has the commits " + (
            "after none: Database(path, keep=1000) keeps the last 1000"
            if first is None
            else f"from version {first} on: Database(path, keep=...) keeps more"
        )
    found = []
    for table in tables:
        kept = journal.kept[table]
        pairs = list(table._all())
        for each in logged:
            if each.version > version:
                changes = each.changes.get(kept.name, ())
                rows = _rows(journal, kept.name, kept.codec.read, None, changes)
                pairs += [(row, -n) for row, n in rows]
        found.append(consolidate(pairs))
    return found


def changes_since(
    journal: Journal, store: Store, version: int, until: int, tables: Sequence[Any]
) -> list[list[Pair]] | str:
    """Return how tables changed after a version, up to another, or why that is not known."""
    logged = store.history(0)
    if not logged or logged[0].version > max(version, 1):
        return f"{store.name} does not keep all commits since: Database(path, keep=...) does"
    found = []
    for kept in (journal.kept[table] for table in tables):
        net: dict[Values, int] = {}
        for each in logged:
            if version < each.version <= until:
                for values, weight in each.changes.get(kept.name, ()):
                    net[values] = net.get(values, 0) + weight
        changed = [(values, weight) for values, weight in net.items() if weight]
        found.append(_rows(journal, kept.name, kept.codec.read, None, changed))
    return found


def _rows(
    journal: Journal, name: str, read: Any, schema: Schema | None, pairs: Any
) -> list[tuple[Any, int]]:
    values, weights = [row for row, _ in pairs], [weight for _, weight in pairs]
    try:
        rows = _as_mappings(schema, values) if read is None else read(values)
    except (Unstorable, *DAMAGED) as error:
        told = f"of a change of table {name!r}: {values!r:.200}"
        raise DurabilityError(damaged(journal.store.name, "reactive_changes", told)) from error
    return list(zip(rows, weights, strict=True))


def _as_mappings(schema: Schema | None, values: Any) -> list[Any]:
    if schema is None:
        return list(values)
    reads = [(column.name, reader(column.kind, {})) for column in schema.columns]
    return [
        {name: read(value) for (name, read), value in zip(reads, row, strict=True)}
        for row in values
    ]
