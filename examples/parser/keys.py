"""The keys of joins."""

from __future__ import annotations

from typing import Any

from examples.parser.rows import Edge, Infix, Rule


def same(gap: int) -> int:
    """Return the gap itself."""
    return gap


def word(row: Any) -> str:
    """Return the key of a token, a terminal or an operator."""
    found: str = row.word
    return found


def begin(row: Any) -> int:
    """Return the gap where a token or an edge begins."""
    found: int = row.start
    return found


def end(row: Any) -> int:
    """Return the gap where a token or an edge ends."""
    found: int = row.end
    return found


def category(edge: Edge) -> str:
    """Return the category of a phrase."""
    return edge.category


def first(rule: Rule) -> str:
    """Return the first part of a rule."""
    return rule.body[0]


def end_and_need(edge: Edge) -> tuple[int, str]:
    """Return the end of an active edge, and the category that it needs."""
    return edge.end, edge.needs[0]


def start_and_category(edge: Edge) -> tuple[int, str]:
    """Return the start of a phrase, and its category."""
    return edge.start, edge.category


def end_and_category(edge: Edge) -> tuple[int, str]:
    """Return the end of a phrase, and its category."""
    return edge.end, edge.category


def start_and_operand(infix: Infix) -> tuple[int, str]:
    """Return the place of an operator, and the category of its operand."""
    return infix.token.start, infix.operator.category


def itself(row: Any) -> Any:
    """Return the key of a row that is there once."""
    return row
