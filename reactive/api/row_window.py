"""`RowWindow`: the functions of a row's window, as callables name them.

    scores.over(by="team", order=desc("points")).select(lambda s, w: (s.name, w.rank()))

The callables are read, not run: no object of the class is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeVar, final, overload

from optimizer.errors import PlanError
from reactive.api.aggregates import Divisible, Less, Summable

V = TypeVar("V")
D = TypeVar("D")
S = TypeVar("S")
L = TypeVar("L", bound=Less)
Rows: TypeAlias = tuple[int | None, int | None]
"""A frame by rows: the first and the last, counted from the row; None for an end of the partition.
"""
Distances: TypeAlias = tuple[Any, Any]
"""A frame by values of the order: the least and the greatest distance from the row's value."""


@final
class RowWindow:
    """The window of a row: the rows of its partition in order, and its place among them.

    `Relation.over` appends it as a binding; callables and comprehensions call its methods.

    Frames: without `rows` and `range`, a function of values reads the rows from the first one of
    the partition up to the row and its peers, which have equal sort keys; the whole partition if
    `over` has no order. `rows=(-2, 0)` are the row and the two before it, `rows=(None, None)` is
    the whole partition. `range=(-5, 0)` are the rows whose sort key is up to 5 less in the
    direction of the order; there must be one key, and with dates a distance is a timedelta.

    None among the values is left out by `sum`, `avg`, `min`, `max`, `quantile` and `count(value)`;
    a frame without values gives None, and 0 for `count`.

    >>> from reactive import Database
    >>> prices = Database().table(tuple[int, float], name="prices")
    >>> moves = prices.over(order=lambda p: p[0]).select(
    ...     lambda p, w: (p[0], w.lag(p[1]), w.avg(p[1], rows=(-1, 0)))
    ... ).materialize()
    >>> prices.add_all([(1, 10.0), (2, 12.0), (3, 20.0)])
    >>> sorted(moves)
    [(1, None, 10.0), (2, 10.0, 11.0), (3, 12.0, 16.0)]
    """

    __slots__ = ()

    def __init__(self) -> None:
        _refuse("RowWindow()")

    # The place of the row.

    def rank(self) -> int:
        """Return the number of rows before the row's peers, plus 1: peers share a rank."""
        _refuse("rank")

    def dense_rank(self) -> int:
        """Return the number of different sort keys up to the row's."""
        _refuse("dense_rank")

    def row_number(self) -> int:
        """Return the place of the row in its partition, from 1 on; peers are in a stable order."""
        _refuse("row_number")

    def percent_rank(self) -> float:
        """Return `(rank - 1) / (rows - 1)`, from 0 to 1; 0 for a single row."""
        _refuse("percent_rank")

    def cume_dist(self) -> float:
        """Return the part of the partition's rows that are up to the row or its peers."""
        _refuse("cume_dist")

    def ntile(self, count: int) -> int:
        """Return the number of the row's part, if the partition is divided into `count` parts.

        The parts are as equal as possible, the first ones larger by one row.
        """
        _refuse("ntile")

    # Values of other rows.

    @overload
    def lag(self, value: V, by: int = 1, *, skip_none: bool = False) -> V | None: ...
    @overload
    def lag(self, value: V, by: int = 1, *, default: D, skip_none: bool = False) -> V | D: ...
    def lag(self, value: Any, by: int = 1, *, default: Any = None, skip_none: bool = False) -> Any:
        """Return the value of the row `by` rows before.

        Parameters
        ----------
        value: an expression of the row, computed for the other row.
        by: a constant number of rows.
        default: an expression of the row, for rows without such a row.
        skip_none: count rows only whose value is not None.
        """
        _refuse("lag")

    @overload
    def lead(self, value: V, by: int = 1, *, skip_none: bool = False) -> V | None: ...
    @overload
    def lead(self, value: V, by: int = 1, *, default: D, skip_none: bool = False) -> V | D: ...
    def lead(self, value: Any, by: int = 1, *, default: Any = None, skip_none: bool = False) -> Any:
        """Return the value of the row `by` rows behind; parameters as for `lag`."""
        _refuse("lead")

    @overload
    def first(self, value: V) -> V: ...
    @overload
    def first(
        self,
        value: V,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
        skip_none: bool = False,
    ) -> V | None: ...
    def first(
        self,
        value: Any,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
        skip_none: bool = False,
    ) -> Any:
        """Return the value of the first row of the frame; with `skip_none`, that is not None."""
        _refuse("first")

    @overload
    def last(self, value: V) -> V: ...
    @overload
    def last(
        self,
        value: V,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
        skip_none: bool = False,
    ) -> V | None: ...
    def last(
        self,
        value: Any,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
        skip_none: bool = False,
    ) -> Any:
        """Return the value of the last row of the frame.

        The frame ends by default with the row's last peer; `rows=(None, None)` is the partition.
        """
        _refuse("last")

    def nth(
        self,
        value: V,
        n: int,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
        skip_none: bool = False,
    ) -> V | None:
        """Return the value of the frame's row `n`, from 1 on; -1 is the last. None without one."""
        _refuse("nth")

    # Aggregates of the frame.

    def count(
        self, value: object = ..., *, rows: Rows | None = None, range: Distances | None = None
    ) -> int:
        """Return the number of rows of the frame; with `value`, of those where it is not None."""
        _refuse("count")

    @overload
    def sum(self, value: Summable[V]) -> V: ...
    @overload
    def sum(
        self,
        value: Summable[V] | None,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
    ) -> V | None: ...
    def sum(self, value: Any, *, rows: Rows | None = None, range: Distances | None = None) -> Any:
        """Return the exact sum of the frame's values, as `Sum` does."""
        _refuse("sum")

    @overload
    def avg(self, value: Divisible[V]) -> V: ...
    @overload
    def avg(
        self,
        value: Divisible[V] | None,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
    ) -> V | None: ...
    def avg(self, value: Any, *, rows: Rows | None = None, range: Distances | None = None) -> Any:
        """Return the mean of the frame's values."""
        _refuse("avg")

    @overload
    def min(self, value: L) -> L: ...
    @overload
    def min(
        self, value: L | None, *, rows: Rows | None = None, range: Distances | None = None
    ) -> L | None: ...
    def min(self, value: Any, *, rows: Rows | None = None, range: Distances | None = None) -> Any:
        """Return the least of the frame's values; NaN is greater than all others."""
        _refuse("min")

    @overload
    def max(self, value: L) -> L: ...
    @overload
    def max(
        self, value: L | None, *, rows: Rows | None = None, range: Distances | None = None
    ) -> L | None: ...
    def max(self, value: Any, *, rows: Rows | None = None, range: Distances | None = None) -> Any:
        """Return the greatest of the frame's values; NaN is greater than all others."""
        _refuse("max")

    @overload
    def quantile(self, value: Divisible[V], at: float) -> V: ...
    @overload
    def quantile(
        self,
        value: Divisible[V] | None,
        at: float,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
    ) -> V | None: ...
    def quantile(
        self,
        value: Any,
        at: float,
        *,
        rows: Rows | None = None,
        range: Distances | None = None,
    ) -> Any:
        """Return the value at a fraction of the frame's sorted values, as `Quantile` does.

        Between two neighbours it is computed, so that of integers it is a float. `at=0.5` is the
        median.
        """
        _refuse("quantile")

    # Folds of the rows up to the row.

    @overload
    def scan(self, value: V, step: Callable[[V, V], V]) -> V: ...
    @overload
    def scan(self, value: V, step: Callable[[S, V], S], start: S) -> S: ...
    def scan(self, value: Any, step: Callable[[Any, Any], Any], start: Any = None) -> Any:
        """Return the state after the row, folded over the values of the rows up to it, in order.

        When a row comes or goes, the step is called for the rows from its place on, up to the first
        whose state is equal to the one before: states behind it are, too. So a row at the end costs
        one call, and one in the middle as many as the state remembers it.

        Parameters
        ----------
        value: an expression of the row, None included.
        step: a callable, (state, value) -> state. It must depend on nothing else, and return a new
            state that has a hash, such as a number or a tuple. Equal states must be alike to it;
            NaN equals NaN.
        start: the state before the first row; without it, the first row's value is its state.

        >>> from reactive import Database
        >>> db = Database()
        >>> moves = db.table(tuple[int, int], name="moves")
        >>> balances = moves.over(order=lambda m: m[0]).select(
        ...     lambda m, w: (m[0], w.scan(m[1], lambda balance, x: max(0, balance + x), 0))
        ... ).materialize()
        >>> moves.add_all([(1, 3), (2, -5), (3, 4)])
        >>> sorted(balances)
        [(1, 3), (2, 0), (3, 4)]
        """
        _refuse("scan")

    @overload
    def ema(self, value: Divisible[V], *, alpha: Any) -> V: ...
    @overload
    def ema(self, value: Divisible[V], *, half_life: Any, at: Any) -> V: ...
    @overload
    def ema(self, value: Divisible[V] | None, *, alpha: Any) -> V | None: ...
    @overload
    def ema(self, value: Divisible[V] | None, *, half_life: Any, at: Any) -> V | None: ...
    def ema(self, value: Any, *, alpha: Any = None, half_life: Any = None, at: Any = None) -> Any:
        """Return the exponential moving average of the values up to the row.

        It begins with the first value, as pandas' `ewm(adjust=False)` does. A value of None
        changes nothing. It costs what `scan` does: a row in the middle changes all later means.

        Parameters
        ----------
        value: an expression of the row, a number.
        alpha: the part of the newest value, more than 0 and up to 1.
        half_life: in place of alpha, the time in which a value loses half of its part.
        at: with half_life, the time of the row: a datetime with a timedelta, or a number. The order
            must be the same; times that go back are an error of the commit.
        """
        _refuse("ema")


def _refuse(name: str) -> NoReturn:
    raise PlanError(
        f"{name} is read from a callable or a comprehension over the rows of over(...), not called"
        "\n  relation.over(order=...).select(lambda row, w: (row, w.rank()))"
    )
