"""Generated edits of tables: inserts, deletes and updates, some of them in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

from reactive import Database, Table

Change: TypeAlias = tuple[int, str, Any, int]
"""Number of a table, kind of change, a new row, and the place of a present row."""
History: TypeAlias = list[list[Change]]
KINDS = ("add", "add", "remove", "update")


def histories(*rows: st.SearchStrategy[Any]) -> st.SearchStrategy[History]:
    """Draw commits of tables with such rows; the first commits have many changes."""
    changes = st.one_of(
        [
            st.tuples(st.just(number), st.sampled_from(KINDS), row, st.integers(0, 99))
            for number, row in enumerate(rows)
        ]
    )
    several = st.lists(changes, min_size=4, max_size=12)
    few = st.lists(changes, max_size=3)
    return st.builds(lambda first, rest: [first, *rest], several, st.lists(few, max_size=8))


def play(db: Database, tables: Sequence[Table[Any]], history: History) -> Iterator[None]:
    """Make the changes; stops after each commit."""
    for changes in history:
        with db.transaction():
            for number, what, row, choice in changes:
                _change(tables[number], what, row, choice)
        yield


def _change(table: Table[Any], what: str, row: Any, choice: int) -> None:
    there = sorted(table)
    if what == "add" or not there:
        table.add(row)
    elif what == "remove":
        table.remove(there[choice % len(there)])
    else:
        table.update(there[choice % len(there)], row)
