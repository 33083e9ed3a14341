"""The scalar functions of SQL, by what sqlglot makes of a call, or by name.

A function is one line of a table: what is called, the type that it gives, the types that it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from reactive.sql.functions import arrays, choices, numbers, texts, times
from reactive.sql.functions.calls import Maker as Maker
from reactive.sql.functions.calls import name_of as name_of

if TYPE_CHECKING:
    from reactive.sql.terms.scope import Scope

TABLE: dict[str | type[exp.Expr], Maker] = {
    **texts.TABLE,
    **numbers.TABLE,
    **times.TABLE,
    **arrays.TABLE,
    **choices.TABLE,
}
OF_SQLITE: dict[str | type[exp.Expr], Maker] = {
    **texts.OF_SQLITE,
    **numbers.OF_SQLITE,
    **choices.OF_SQLITE,
}
NAMES: tuple[str, ...] = tuple(
    sorted(
        name.lower()
        for key in TABLE
        for name in (
            [key]
            if isinstance(key, str)
            else key.sql_names()
            if issubclass(key, exp.Func)
            else [key.key]
        )
    )
)
"""What they are called, for messages."""


def maker_of(node: Any, scope: Scope) -> Maker | None:
    """What makes the value of a call; None if the function is not known."""
    key = str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node)
    special = OF_SQLITE.get(key) if scope.dialect.numeric_booleans else None
    return special or TABLE.get(key)
