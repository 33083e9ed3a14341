"""What makes a record of columns: the class, and what they are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from types import GenericAlias
from typing import Any

from optimizer.callables.opaque import Opaque
from optimizer.expr import Function, Lifted
from optimizer.record import record


@record
class Naming:
    """Makes a record of a class, with the columns as arguments of their names.

    `generated` are classes whose fields are just the columns, in order.
    """

    kind: Any
    columns: tuple[str, ...]
    generated: bool

    def __call__(self, *values: Any) -> Any:
        if self.generated:
            return self.kind(*values)
        return self.kind(**dict(zip(self.columns, values, strict=True)))


@record
class Level:
    """Rows that a nest has inside of others: `name` is their binding, `kind` the class of its rows,
    None where these have nothing inside. `key` tells them apart, `levels` are those inside them,
    `types` are what is declared of the bindings that they begin with."""

    name: str
    kind: Any
    key: Callable[[Any], Any]
    is_sequence: bool
    levels: tuple[Level, ...] = ()
    types: tuple[Any, ...] = field(default=(), compare=False)


@record
class RowsOf:
    """Stands for the annotation of rows of a generated class: what is declared of each column, and
    the levels inside, which are the last of the columns."""

    types: tuple[Any, ...]
    names: tuple[str, ...]
    levels: tuple[Any, ...] = ()


def row_inside(level: Level) -> Any:
    """Stands for the annotation of a row of a level."""
    if level.kind is None:
        return level.types[0] if len(level.types) == 1 else GenericAlias(tuple, level.types)
    return RowsOf(level.types, level.kind._fields, level.levels)


@record
class Nesting(Naming):
    """The naming of rows with others inside: `levels` are the last of the columns, `key` tells a
    row apart, `types` are what is declared of the other columns."""

    key: Any = field(compare=False)
    levels: tuple[Level, ...] = field(compare=False)
    types: tuple[Any, ...] = field(default=(), compare=False)


@record
class KeyOfFirst:
    """What tells rows with others inside apart: the key of the table that their first part is of.

    >>> from operator import attrgetter
    >>> KeyOfFirst(Opaque(attrgetter("real"), 1, "real", None, (), None))((3, "x"))
    3
    """

    key: Opaque

    def __call__(self, row: Any) -> Any:
        return self.key.function(row[0])


def naming_of(function: Function) -> Naming | None:
    """The naming that a function is, and nothing else."""
    made = function.made if isinstance(function, Lifted) else None
    found = made.function if isinstance(made, Opaque) else None
    return found if isinstance(found, Naming) else None
