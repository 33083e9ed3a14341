"""What parts of a callable that cannot be read are called in messages."""

from __future__ import annotations

import ast


def statement_shown(node: ast.stmt) -> str:
    """What a statement is, for messages."""
    known = {
        ast.Assign: "an assignment to more than a name",
        ast.AugAssign: "an augmented assignment",
        ast.FunctionDef: "a nested function",
        ast.ClassDef: "a nested class",
        ast.Assert: "an 'assert'",
        ast.Expr: "an expression whose value is not used",
    }
    name = type(node).__name__.lower()
    return known.get(type(node), f"a {name!r} statement")


def kind_shown(node: ast.expr) -> str:
    """What an expression is, for messages."""
    known = {
        ast.GeneratorExp: "generator expression",
        ast.ListComp: "list comprehension",
        ast.SetComp: "set comprehension",
        ast.DictComp: "dict comprehension",
        ast.Lambda: "nested lambda",
        ast.Name: "a name without a value yet",
    }
    if isinstance(node, ast.Call):
        return "call with a generator or starred arguments"
    return known.get(type(node), type(node).__name__)
