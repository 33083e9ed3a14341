"""What makes a record of columns: the class, and what they are called."""

from __future__ import annotations

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


def naming_of(function: Function) -> Naming | None:
    """The naming that a function is, and nothing else."""
    made = function.made if isinstance(function, Lifted) else None
    found = made.function if isinstance(made, Opaque) else None
    return found if isinstance(found, Naming) else None
