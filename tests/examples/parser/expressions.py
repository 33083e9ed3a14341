"""Expressions: the tree that the parser finds, and the one that Python finds, written alike."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import pairwise

from examples.parser.grammar import Grammar
from examples.parser.parser import Parser
from examples.parser.rows import Operator, Terminal
from examples.parser.trees import Tree

from .parsing import made

NAMES = ("a", "b", "c")
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Or: "or",
    ast.And: "and",
    ast.Not: "not",
    ast.Eq: "==",
    ast.Lt: "<",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Mod: "%",
    ast.USub: "-",
    ast.Pow: "**",
}


def written(grammar: Grammar, words: Iterable[str]) -> list[str]:
    """The trees of an expression, each with brackets around every operation."""
    parser, _ = made(grammar, words)
    return shown(parser)


def shown(parser: Parser) -> list[str]:
    """The trees that a parser has now."""
    return [bracketed(tree) for tree in parser.trees()]


def of_operators(operators: Iterable[Operator]) -> Grammar:
    """Names and operators, nothing else."""
    names = tuple(Terminal(name, "Expression") for name in NAMES)
    return Grammar("Expression", (), names, tuple(operators))


def bracketed(part: Tree | str) -> str:
    """Return a tree with brackets around nodes of several parts."""
    if isinstance(part, str):
        return part
    inner = " ".join(map(bracketed, part.parts))
    return inner if len(part.parts) == 1 else f"({inner})"


def by_python(words: list[str]) -> str | None:
    """Return Python's tree of an expression; None if it is no expression."""
    try:
        return _bracketed(ast.parse(" ".join(words), mode="eval").body)
    except SyntaxError:
        return None


def is_beyond(words: list[str]) -> bool:
    """Return True if Python has rules of its own for this: chains, and signs after a power."""
    comparisons = sum(word in ("==", "<") for word in words)
    return comparisons > 1 or ("**", "-") in pairwise(words)


def _bracketed(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.BoolOp(op=op, values=values):
            first, *others = map(_bracketed, values)
            for other in others:
                first = f"({first} {SYMBOLS[type(op)]} {other})"
            return first
        case ast.UnaryOp(op=op, operand=operand):
            return f"({SYMBOLS[type(op)]} {_bracketed(operand)})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({_bracketed(left)} {SYMBOLS[type(op)]} {_bracketed(right)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"({_bracketed(left)} {SYMBOLS[type(op)]} {_bracketed(right)})"
    raise AssertionError(node)
