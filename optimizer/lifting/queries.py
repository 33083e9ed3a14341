"""What reads the queries in a callable: comprehensions over relations, and what is made of them.

It is plugged into the reader of callables, which knows no plans. `optimizer.comprehensions` is one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Protocol

from optimizer.expr import Expr
from optimizer.expressions.knowledge import Shapes


class Queries(Protocol):
    """Asked for each part of a callable before the reader reads it by itself."""

    @property
    def shapes(self) -> Shapes:
        """What is known of the parameters that expressions have at the moment."""
        ...

    def statements(self, body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
        """The statements of a function, in which loops that make collections are expressions."""
        ...

    def read(self, node: ast.expr, reader: Any) -> Expr | None:
        """A part as an expression; None of one that reads no relation."""
        ...

    def value(self, node: ast.expr, reader: Any) -> Expr | None:
        """The same, of a part that may also be rows."""
        ...

    def truth(self, node: ast.expr, reader: Any) -> Expr | bool:
        """Whether a part is true; at once, if nothing but constants decide it in a query."""
        ...

    def after(self, name: str, value: Expr, then: Expr, rest: Sequence[ast.stmt]) -> Expr | None:
        """What goes on after a name was given a value; None if no relation has a part in it."""
        ...

    def outer(self, expr: Expr) -> Expr:
        """What a value of a row around the whole callable is in the query that is being read."""
        ...

    def check_kept(self, node: ast.expr, reader: Any) -> None:
        """Refuse a part that is to be kept whole, if it reads relations."""
        ...
