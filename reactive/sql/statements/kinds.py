"""Statements that change a database: one transaction each."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from reactive.sql.statements.changes import delete, insert, insert_rows, update
from reactive.sql.statements.definitions import create, drop
from reactive.sql.terms.scope import Scope


def run(tree: Any, around: Scope, db: Any) -> int:
    """Run a statement; how many rows it changed.

    Raises
    ------
    PlanError: it is no statement that is known, or names what there is not.
    """
    match tree:
        case exp.Create():
            return create(tree, around, db, lambda table, found: insert_rows(table, found, around))
        case exp.Insert():
            return insert(tree, around, db)
        case exp.Update():
            return update(tree, around, db)
        case exp.Delete():
            return delete(tree, around, db)
        case exp.Drop():
            return drop(tree, around, db)
        case exp.Query():
            raise around.error(tree, "execute changes tables", "db.sql(...) gives a relation")
        case exp.Transaction() | exp.Commit() | exp.Rollback():
            raise around.error(tree, "a statement is a transaction", "with db.transaction(): ...")
        case _:
            raise around.error(tree, f"{tree.key.upper()} is not supported")
