"""The variables of a loop that hold what has been evaluated."""

from __future__ import annotations

from optimizer.expr import Expr, Operation
from optimizer.expressions.declared import may_be_moment


class Known(dict[Expr, str]):
    """The variables that hold what has been evaluated.

    What may be an iterator or a container, as of a callable that could not be read, is good for one
    use: that of who asks first, before a loop begins (`once`). What is `kept` in a row is good for
    one row, and a loop makes several.
    """

    def __init__(self) -> None:
        super().__init__()
        self.once: dict[Expr, str] = {}
        self.kept: set[Expr] = set()

    def begin_loop(self) -> None:
        """Forget what is not good for more than one row."""
        self.once.clear()
        for expr in self.kept:
            self.pop(expr, None)
        self.kept.clear()

    def for_loops(self) -> dict[Expr, str]:
        """What loops within may use."""
        return {expr: name for expr, name in self.items() if expr not in self.kept}

    def get(self, expr: Expr, default: str | None = None) -> str | None:  # type: ignore[override]
        found = super().get(expr) if self else None
        if found is None:
            return self.once.pop(expr, default) if self.once else default
        return found


def canonical_test(name: str, expr: Operation) -> str:
    """Return the text of a test that the value of an operation is as rows hold it.

    >>> canonical_test("value", Operation("*", ()))
    'value == value'
    """
    is_no_moment = f" and {name}.__class__ is not datetime" if may_be_moment(expr) else ""
    return f"{name} == {name}{is_no_moment}"
