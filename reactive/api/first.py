"""The methods `head` and `first` of tables, relations and views.

Reading a relation as if it had rows raises an error with the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer.errors import PlanError
from reactive.api.each_row import each_row
from reactive.engine.runtime.boundary import boundary, hide
from reactive.errors import NoRows

Ts = TypeVarTuple("Ts")
T = TypeVar("T")
D = TypeVar("D")
A = TypeVar("A")
B = TypeVar("B")
Cs = TypeVarTuple("Cs")


@boundary
class First(Generic[*Ts]):
    """Base of tables, views and relations: they have rows, or compute them."""

    _sql_columns: list[str] | None = None
    """The columns of a query that was written in SQL."""

    def _first_rows(self, n: int) -> list[Any]:
        """Return at most `n` rows."""
        raise NotImplementedError

    @overload
    def head(self: First[T], n: int) -> list[T]: ...
    @overload
    def head(self: First[A, B, *Cs], n: int) -> list[tuple[A, B, *Cs]]: ...
    def head(self, n: int) -> list[Any]:
        """Return the first `n` current rows, or fewer if there are fewer.

        An ordered relation returns them in its order, a table or a view in the order of iteration.
        A relation computes them each time, at the cost of making a view.

        Raises
        ------
        PlanError: `n` is not an int from 0 on.

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
        """Return the first current row, or `default` if there is none; see `head`.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> words.first(), words.first(default="none")
        (None, 'none')
        """
        return next(iter(self._first_rows(1)), default)

    def __iter__(self) -> Any:
        return each_row(self, self._no_rows)

    if not TYPE_CHECKING:  # type checkers refuse these by themselves

        def __len__(self):
            try:
                raise NoRows(f"a relation is a query and has no rows to count\n  {_FIRST}")
            except NoRows as error:
                hide(error)
                raise

        def __getitem__(self, key):
            try:
                raise PlanError(self._not_found(key))
            except PlanError as error:
                hide(error)
                raise

    def _not_found(self, key: Any) -> str:
        """Return the error text for `[key]` on a query, or on a view without keys and order."""
        channel = getattr(self, "_channel", None)
        if channel is not None:
            return f"{channel} has no [{key!r:.100}]: its rows have no keys and no order\n  {_KEYS}"
        if isinstance(key, slice):
            return f"a relation is a query and has no part [{_slice(key)}]\n  {_PART}"
        of_field = f"; select({key!r}) is a query of one field" if isinstance(key, str) else ""
        return f"a relation is a query and has no row {key!r:.100}\n  {_FIRST}{of_field}"

    def _no_rows(self) -> Any:
        raise PlanError(f"a relation is a query and has no rows to iterate over\n  {_FIRST}")


def _slice(part: slice) -> str:
    """Return a slice as it is written between brackets."""
    ends = [part.start, part.stop, *([] if part.step is None else [part.step])]
    return ":".join("" if end is None else str(end) for end in ends)


_PART = "order_by(key).limit(n, offset=m) is a query of a part; a view of what is ordered has [m:n]"
_FIRST = "materialize() it first; the view has them"
_KEYS = "group_by(key).aggregate(...) has keys, order_by(key) an order; list(view) has all rows"
