"""The tables of a project: one per kind of fact, and the modules known from elsewhere."""

from __future__ import annotations

from typing import Any

from examples.live_lint import facts
from reactive import Database, Table


class Tables:
    """All tables, by name for queries and by kind of fact for loading."""

    def __init__(self, db: Database) -> None:
        self.modules: Table[facts.Module] = db.table(facts.Module)
        self.broken: Table[facts.Broken] = db.table(facts.Broken)
        self.silenced: Table[facts.Silenced] = db.table(facts.Silenced)
        self.imports: Table[facts.Import] = db.table(facts.Import)
        self.exports: Table[facts.Export] = db.table(facts.Export)
        self.bindings: Table[facts.Binding] = db.table(facts.Binding)
        self.dynamic: Table[facts.Dynamic] = db.table(facts.Dynamic)
        self.name_uses: Table[facts.NameUse] = db.table(facts.NameUse)
        self.internals: Table[facts.Internal] = db.table(facts.Internal)
        self.private_uses: Table[facts.PrivateUse] = db.table(facts.PrivateUse)
        self.dotted: Table[facts.Dotted] = db.table(facts.Dotted)
        self.functions: Table[facts.Function] = db.table(facts.Function)
        self.classes: Table[facts.Class] = db.table(facts.Class)
        self.bases: Table[facts.Base] = db.table(facts.Base)
        self.init_calls: Table[facts.InitCall] = db.table(facts.InitCall)
        self.parameters: Table[facts.Parameter] = db.table(facts.Parameter)
        self.parameter_uses: Table[facts.ParameterUse] = db.table(facts.ParameterUse)
        self.defaults: Table[facts.Default] = db.table(facts.Default)
        self.handlers: Table[facts.Handler] = db.table(facts.Handler)
        self.calls: Table[facts.Call] = db.table(facts.Call)
        self.known: Table[facts.Known] = db.table(facts.Known)
        self.by_kind: dict[type, Table[Any]] = {table.row_type: table for table in db.tables()}
