"""The scalar functions of SQL, by what sqlglot makes of a call, or by name.

A function is one line of a table: what is called, the type that it gives, the types that it takes.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from reactive.sql.functions import arrays, choices, numbers, texts, times
from reactive.sql.functions.calls import Maker as Maker
from reactive.sql.functions.calls import name_of as name_of

TABLE: dict[str | type[exp.Expr], Maker] = {
    **texts.TABLE,
    **numbers.TABLE,
    **times.TABLE,
    **arrays.TABLE,
    **choices.TABLE,
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


def maker_of(node: Any) -> Maker | None:
    """What makes the value of a call; None if the function is not known."""
    key = str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node)
    return TABLE.get(key)
