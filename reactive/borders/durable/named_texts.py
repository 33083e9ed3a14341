"""Named texts in a store, beside the rows of tables: definitions, of which the store knows nothing.

State:  the texts.
Cost:   one write, after the commits that wait.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reactive.borders.durable.rows.declared import declared_by
from reactive.borders.durable.rows.values import type_text
from reactive.borders.durable.store import Change, Column, Schema

if TYPE_CHECKING:
    from reactive.borders.durable.journal import Journal

OWN = "definitions of SQL"
"""The table of the store."""
SCHEMA = Schema(
    OWN, (Column("name", "str", "plain"), Column("text", "str", "plain")), "name", '{"sql": 1}'
)


class NamedTexts:
    """The texts of a journal's store, by their names. Call it inside the lock of the database."""

    def __init__(self, journal: Journal) -> None:
        journal.settle()
        self._journal = journal
        self.texts: dict[str, str] = {}
        if OWN in journal.store.tables():
            self.texts = {n: text for rows, _ in journal.store.rows(OWN) for n, text in rows}

    @property
    def store_name(self) -> str:
        """The name of the store."""
        return self._journal.store.name

    def write(self, changes: Mapping[str, str | None], beside: Sequence[Change] = ()) -> None:
        """Write texts, and other changes, in one write; None deletes a text.

        Raises `DurabilityError` if the write fails.
        """
        held = self.texts
        gone = [(n, held[n]) for n, text in changes.items() if n in held and held[n] != text]
        come = [(n, text) for n, text in changes.items() if text not in (None, held.get(n))]
        if not gone and not come and not beside:
            return
        self._journal.settle()
        if OWN not in self._journal.store.tables():
            self._journal.store.create(SCHEMA)
        self._journal.write_beside([Change(OWN, gone, come), *beside], is_safe=False)
        for name, _ in gone:
            del self.texts[name]
        self.texts |= {name: str(text) for name, text in come}

    def tables(self) -> set[str]:
        """Return the names of the tables in the store."""
        return {*self._journal.store.tables()}

    def drop(self, table: str) -> None:
        """Delete a table of the store that this process has not made."""
        self._journal.store.drop(table)

    def is_kept(self, table: Any) -> bool:
        """Return True if a table is durable."""
        return table in self._journal.kept

    def has_kept(self, name: str) -> bool:
        """Return True if a durable table has a name."""
        return any(kept.name == name for kept in self._journal.kept.values())

    def is_of_form(self, table: str, row_type: Any, key: Sequence[str]) -> bool:
        """Return True if the rows of a table in the store are of a class, with a key of fields."""
        schema = self._journal.store.tables()[table]
        is_added = bool(json.loads(schema.about or "{}").get("added"))
        stored = [(c.name, c.type) for c in schema.columns if not is_added or c.name != schema.key]
        fields = [(name, type_text(hint)) for name, hint in declared_by(row_type).fields.items()]
        own_key = schema.key if not is_added else True
        return stored == fields and own_key == (
            (key[0] if len(key) == 1 else True) if key else None
        )
