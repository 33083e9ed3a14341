"""Statements that change a database: one transaction each."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from reactive.languages.sql.statements.changes import delete, insert, update
from reactive.languages.sql.statements.definitions import create, drop
from reactive.languages.sql.terms.scope import Scope


def run(tree: Any, around: Scope, db: Any) -> int:
    """Run a statement; how many rows it changed.

    Raises
    ------
    PlanError: it is no statement that is known, or names what there is not.
    """
    match tree:
        case exp.Create():
            return create(tree, around, db)
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
            word = (around.text.split() or [""])[0].rstrip(";").upper()
            use = "INSERT OR REPLACE INTO" if word == "REPLACE" else "CREATE, INSERT, UPDATE ..."
            raise around.error(tree, f"{word} is not supported", f"use {use}")
