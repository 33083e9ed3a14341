"""The tables of a program: one per kind of fact."""

from __future__ import annotations

from typing import Any

from examples.graphs.points_to import facts
from reactive import Database, Table


class Tables:
    """All tables, by name for queries and by kind of fact for loading."""

    def __init__(self, db: Database) -> None:
        self.news: Table[facts.New] = db.table(facts.New)
        self.assigns: Table[facts.Assign] = db.table(facts.Assign)
        self.loads: Table[facts.Load] = db.table(facts.Load)
        self.stores: Table[facts.Store] = db.table(facts.Store)
        self.defines: Table[facts.Define] = db.table(facts.Define)
        self.bases: Table[facts.Base] = db.table(facts.Base)
        self.methods: Table[facts.Method] = db.table(facts.Method)
        self.formals: Table[facts.Formal] = db.table(facts.Formal)
        self.returns: Table[facts.Return] = db.table(facts.Return)
        self.actuals: Table[facts.Actual] = db.table(facts.Actual)
        self.calls: Table[facts.Call] = db.table(facts.Call)
        self.invokes: Table[facts.Invoke] = db.table(facts.Invoke)
        self.super_calls: Table[facts.SuperCall] = db.table(facts.SuperCall)
        self._by_kind: dict[type, Table[Any]] = {table.row_type: table for table in db.tables()}

    def of(self, kind: type[facts.Fact]) -> Table[Any]:
        """Return the table of a kind of fact."""
        return self._by_kind[kind]
