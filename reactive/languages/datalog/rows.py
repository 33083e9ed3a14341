"""The classes of rows and records: named tuples whose fields are the columns.

A class is the same for all declarations of the same columns, also in other programs and processes.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any, NamedTuple

from optimizer.kinds.class_facts import class_maker
from reactive.engine.storage.row_check import ALWAYS_STRICT

KINDS: dict[str, Any] = {"number": int, "unsigned": int, "float": float, "symbol": str}
"""What the values of columns are; of records and other data nothing is declared."""
TAG = "branch"
"""The first field of a value of an algebraic data type, which has the name of its branch."""


@class_maker
def row_class(name: str, columns: tuple[tuple[str, str], ...]) -> Any:
    """The class of rows with these columns, each with the name of its kind.

    >>> import pickle
    >>> Path = row_class("path", (("from", "number"), ("to", "number")))
    >>> row = Path(1, 2)
    >>> row, row == (1, 2), type(pickle.loads(pickle.dumps(row))) is Path
    (path(from_=1, to=2), True, True)
    """
    names = field_names([column for column, _ in columns])
    fields = [
        (name, KINDS.get(kind, object)) for name, (_, kind) in zip(names, columns, strict=True)
    ]
    make: Any = NamedTuple
    made = make(identifier(name), fields)
    made.__module__ = __name__
    setattr(made, ALWAYS_STRICT, True)
    made.__reduce__ = lambda row: (_row, (name, columns, tuple(row)))
    made.__doc__ = f"A row of {name!r}: {', '.join(column for column, _ in columns)}."
    return made


def _row(name: str, columns: tuple[tuple[str, str], ...], values: tuple[Any, ...]) -> Any:
    """A row again, from a pickle."""
    return row_class(name, columns)(*values)


def identifier(name: str) -> str:
    """A name as Python has it.

    >>> identifier("from"), identifier("?x"), identifier("_y"), identifier("g.edge")
    ('from_', 'q_x', 'q_y', 'g_edge')
    """
    plain = name.replace(".", "_").replace("?", "_")
    plain = f"q{plain}" if plain.startswith("_") else plain
    return f"{plain}_" if iskeyword(plain) else plain


def field_names(columns: list[str]) -> list[str]:
    """A different name of a field for each column."""
    found: list[str] = []
    for column in columns:
        name = identifier(column)
        while name in found:
            name += "_"
        found.append(name)
    return found
