"""Symbols of operators and displays, by their nodes."""

from __future__ import annotations

import ast

from optimizer.expr import Constant, Expr

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Not: "not",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
}
DISPLAYS = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
VALUES = (int, float, complex, str, bytes, tuple, frozenset)
"""Constants that are equal if their values are."""


def by_identity(operator: ast.cmpop, left: Expr, right: Expr) -> bool:
    """Return True if `is` compares with a constant's object; expressions have only its value."""
    if not isinstance(operator, ast.Is | ast.IsNot):
        return False
    values = [side.value for side in (left, right) if isinstance(side, Constant)]
    return any(isinstance(v, VALUES) and not isinstance(v, bool) for v in values)
