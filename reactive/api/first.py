"""The first rows of now: what tables, relations and views share."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer.errors import PlanError
from reactive.runtime.boundary import boundary

Ts = TypeVarTuple("Ts")
T = TypeVar("T")
D = TypeVar("D")
A = TypeVar("A")
B = TypeVar("B")
Cs = TypeVarTuple("Cs")


@boundary
class First(Generic[*Ts]):
    """Base of what has rows, or can compute them."""

    def _first_rows(self, n: int) -> list[Any]:
        """At most `n` rows."""
        raise NotImplementedError

    @overload
    def head(self: First[T], n: int) -> list[T]: ...
    @overload
    def head(self: First[A, B, *Cs], n: int) -> list[tuple[A, B, *Cs]]: ...
    def head(self, n: int) -> list[Any]:
        """The first `n` rows of now, or as many as there are; those of an order in its order.

        Of a table or a view: those that iteration begins with. Of a relation they are computed for
        this once, which costs as much as to make a view of it.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> words.add_all(["three", "a", "to"])
        >>> words.order_by(len).head(2), words.head(1)
        (['a', 'to'], ['three'])
        """
        if type(n) is not int or n < 0:
            raise PlanError(f"head takes a number of rows, from 0 on, not {n!r:.60}")
        return self._first_rows(n)

    @overload
    def first(self: First[T]) -> T | None: ...
    @overload
    def first(self: First[T], default: D) -> T | D: ...
    @overload
    def first(self: First[A, B, *Cs]) -> tuple[A, B, *Cs] | None: ...
    @overload
    def first(self: First[A, B, *Cs], default: D) -> tuple[A, B, *Cs] | D: ...
    def first(self, default: Any = None) -> Any:
        """The first row of now, or the default if there is none; see `head`.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> words.first(), words.first(default="none")
        (None, 'none')
        """
        return next(iter(self._first_rows(1)), default)
