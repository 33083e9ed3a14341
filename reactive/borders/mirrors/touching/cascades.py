"""What the SQL database changes by itself because of foreign keys, when rows go or keys change.

    delete from customers where id = 3      touches  orders  whose customer_id is 3, which go too
                                                             (ON DELETE CASCADE, or SET NULL)

The rows that will be touched are asked for before the statement is run: afterwards nobody knows
them. Where a cascade comes back to a table that it began at, all tables of the round are touched.

Cost: one statement for each foreign key that cascades from a table, and from those below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Column, Connection, ForeignKeyConstraint, Table, select, tuple_

from reactive.borders.mirrors.kinds import key_columns
from reactive.borders.mirrors.touching.touched import Touched

ACTS = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


class Cascades:
    """Of all tables that are known.

    Parameters
    ----------
    tables: all of them.
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        every = list(tables)
        self._deleted = _by_referred(every, lambda key: key.ondelete)
        self._updated = _by_referred(every, lambda key: key.onupdate)

    def below(self, table: Table) -> set[Table]:
        """The tables whose rows may change because rows of this one go, or change their keys; with
        this one."""
        found, waiting = {table}, [table]
        while waiting:
            each = waiting.pop()
            keys = [*self._deleted.get(each, ()), *self._updated.get(each, ())]
            new = {key.table for key in keys} - found
            found |= new
            waiting += new
        return found

    def referred(self, table: Table) -> set[Column[Any]]:
        """The columns that others follow when they are assigned."""
        keys = self._updated.get(table, ())
        return {element.column for key in keys for element in key.elements}

    def note_deleted(
        self,
        touched: Touched,
        table: Table,
        chosen: Any,
        parameters: Mapping[str, Any],
    ) -> None:
        """Note what will change because the chosen rows of a table go.

        Parameters
        ----------
        chosen: a condition on the table, or None for all rows.
        parameters: of the condition.
        """
        self._note(touched, table, chosen, parameters, (table,))

    def _note(
        self,
        touched: Touched,
        table: Table,
        chosen: Any,
        parameters: Mapping[str, Any],
        above: tuple[Table, ...],
    ) -> None:
        for key in self._deleted.get(table, ()):
            child = key.table
            if child in above:
                touched.note_all(self.below(child))
                continue
            gone = select(*[each.column for each in key.elements])
            refers = _of(key.columns).in_(gone if chosen is None else gone.where(chosen))
            asked = select(*key_columns(child)).where(refers)
            touched.note(child, _keys(touched.connection, asked, parameters))
            if str(key.ondelete).upper() == "CASCADE":
                self._note(touched, child, refers, parameters, (*above, child))


def _of(columns: Iterable[Any]) -> Any:
    every = list(columns)
    return every[0] if len(every) == 1 else tuple_(*every)


def _keys(connection: Connection, asked: Any, parameters: Mapping[str, Any]) -> Iterator[Any]:
    return (tuple(row) for row in connection.execute(asked, dict(parameters)))


def _by_referred(
    tables: Iterable[Table], act: Callable[[ForeignKeyConstraint], str | None]
) -> dict[Table, list[ForeignKeyConstraint]]:
    """The foreign keys by which something changes, by the table that they refer to."""
    found: dict[Table, list[ForeignKeyConstraint]] = {}
    for table in tables:
        for key in table.foreign_key_constraints:
            if (act(key) or "").upper() in ACTS:
                found.setdefault(key.referred_table, []).append(key)
    return found
