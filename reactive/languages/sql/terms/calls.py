"""Calls of functions: their names, their arguments, and what makes a value of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from reactive.languages.sql.terms.errors import peek

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope
    from reactive.languages.sql.terms.values import TypedValue

Maker: TypeAlias = "Callable[[Any, Scope], TypedValue]"


def arguments(node: Any) -> list[exp.Expr]:
    """Return the arguments of a call, in their order in the text."""
    return list(_iterate_arguments(node))


def _iterate_arguments(node: Any) -> Iterator[exp.Expr]:
    """Yield the arguments of a call, which are marked as read; words such as units are left out."""
    names = ["expressions"] if isinstance(node, exp.Anonymous) else list(node.arg_types)
    for name in names:
        part = peek(node, name)
        parts = part if isinstance(part, list) else [part]
        for place, each in enumerate(parts):
            if isinstance(each, exp.Expr) and not isinstance(each, exp.Var):
                asked = node.args.get(name)  # which is read now
                yield asked[place] if parts is part else asked


def function_name(node: Any) -> str:
    """Return the name of a function."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return str(node.sql_name()).lower() if isinstance(node, exp.Func) else node.key
