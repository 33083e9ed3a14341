"""Parameters: values that queries read, and that may be changed while their views are in use.

    n = db.parameter(10)
    large = orders.where(lambda o: o.total > n()).materialize()
    n.set(12)                   a commit: the rows between 10 and 12 leave the view

A parameter is a table of one row, its value, and `n()` in a query is a join with it. So a change
is a change of a table: part of a transaction, rolled back, stored, seen by subscribers. A bound
that moves touches the rows between its old and its new place (`operators/moved_bounds.py`).

State:  the value.
Cost:   of `set`: the rows of the views for which another value makes a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from optimizer.plans.nodes.sources import key_of_value
from reactive.api.columns import Live
from reactive.api.table import Table
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import hint
from reactive.engine.runtime.foreign_names import OF_PARAMETERS
from reactive.engine.runtime.interrupts import surely
from reactive.engine.storage.store import Duplicate
from reactive.engine.transactions.statements import Statements
from reactive.errors import PlanError, TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T")
D = TypeVar("D", bound=Sequence[Pair])


@boundary
class Parameter(Table[T, tuple[()]], Generic[T]):
    """A value that queries read, and that can be set: a `Table` of one row, without other changes.

    `Database.parameter` creates it. In callables of queries, comprehensions included, `n()` is the
    current value; in SQL it is given as `db.sql("... where total > :n", n=n)`. Outside of queries
    `n()` returns the value now.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> least = db.parameter(4)
    >>> long = words.where(lambda w: len(w) >= least()).materialize()
    >>> words.add_all(["to", "be", "that", "is"])
    >>> list(long)
    ['that']
    >>> least.set(2)
    >>> least(), sorted(long)
    (2, ['be', 'is', 'that', 'to'])
    """

    _is_parameter: ClassVar[bool] = True

    def __init__(
        self, engine: Engine, number: int, row_type: Any, name: str | None, replaces: Any = None
    ) -> None:
        super().__init__(engine, number, row_type, name, key_of_value, True, False, replaces)
        self._do = _OneValue(self, engine)
        self._do.move_to(self._store)

    def __call__(self) -> T:
        """Return the value, as the running thread or task sees it.

        Raises
        ------
        TableError: the parameter was dropped.
        """
        try:
            return self[()]
        except Exception as error:
            hide(error)
            raise

    def set(self, value: T) -> None:
        """Change the value, in one commit or as part of the open transaction.

        An equal value changes nothing.

        Raises
        ------
        TableError: the value is not of the parameter's type, or not hashable.

        >>> from reactive import Database
        >>> db = Database()
        >>> limit = db.parameter(10, name="limit")
        >>> limit.set(12)
        >>> limit()
        12
        """
        try:
            self._engine.write(self, self._do.upsert, value)
        except Exception as error:
            hide(error)
            raise

    def __repr__(self) -> str:
        with self._db_lock.inside():
            held = [row for row, _ in self._visible().pairs()] if self._held() else []
            return f"Parameter({self.name!r}, {held[0]!r:.200})" if held else super().__repr__()

    def _refusal_of(self, delta: Sequence[Pair]) -> str | None:
        """Return why a delta that leaves one row is refused; None if it is not."""
        return None

    def _called(self) -> str:
        return f"parameter {self.name!r}"


class _OneValue(Statements):
    """The statements of a parameter: they leave one row, or are refused."""

    def move_to(self, store: Any) -> None:
        super().move_to(store)
        self.add_one, self.remove_one = self.add, self.remove

    def add(self, row: Row, count: int = 1, **options: Any) -> list[Pair]:
        self._refuse_none(row)
        return self._whole(lambda: Statements.add(self, row, count, **options))

    def add_all(self, rows: Iterable[Row], known: Any = None, **options: Any) -> Sequence[Pair]:
        checked = list(rows)
        for row in checked:
            self._refuse_none(row)
        return self._whole(lambda: Statements.add_all(self, checked, known, **options))

    def remove(self, row: Row, count: int = 1, **options: Any) -> list[Pair]:
        return self._whole(lambda: Statements.remove(self, row, count, **options))

    def remove_all(self, rows: Iterable[Row]) -> Sequence[Pair]:
        return self._whole(lambda: Statements.remove_all(self, rows))

    def together(
        self, *statements: Callable[[], Sequence[Pair]], is_noted: bool = False
    ) -> list[Pair]:
        return self._whole(lambda: Statements.together(self, *statements, is_noted=is_noted))

    def _refuse_none(self, row: Row) -> None:
        if row is None:
            raise TableError(
                f"parameter {self._table.name!r} cannot be None\n"
                "  set a value that stands for nothing, and test for it in the query"
            )

    def _whole(self, change: Callable[[], D]) -> D:
        """Return the delta of a statement; take it back if it is refused, or broken off.

        It is refused if it leaves no row, or several, or a value that the parameter does not take.
        """
        if self.is_part:
            return change()  # no call follows the change
        done: list[D] = []
        try:
            done += (change(),)
            refusal = self._refusal_of_rest(done[0])
            if refusal is None:
                return done[0]
            raise TableError(refusal)
        except BaseException:
            for delta in done:
                surely(partial(self.store.revert, delta))
            raise

    def _refusal_of_rest(self, delta: Sequence[Pair]) -> str | None:
        """Return why what a delta leaves is refused; None if it is not."""
        if len(self.store) == 1:
            return self._table._refusal_of(delta)  # type: ignore[attr-defined, no-any-return]
        return (
            f"cannot change the rows of parameter {self._table.name!r}: it has one value\n"
            "  set(value) changes it"
        )

    def _refusal(self, row: Row, error: BaseException, count: int = 1) -> BaseException:
        if isinstance(error, Duplicate):
            return TableError(
                f"cannot add {row!r:.100} to parameter {self._table.name!r}: it has a value\n"
                "  set(value) changes it"
            )
        return super()._refusal(row, error, count)


def type_of_value(value: Any, row_type: Any) -> Any:
    """Return the type of a parameter: the given one, or the class of its first value.

    Raises
    ------
    PlanError: the value is None, a class or a relation.
    """
    if value is None:
        raise PlanError(
            "a parameter cannot be None\n"
            "  give a first value that stands for nothing, and test for it in the query"
        )
    if isinstance(value, type):
        raise PlanError(
            f"a parameter takes its first value, not the class {value.__name__}\n"
            "  write db.parameter(10)"
        )
    if isinstance(value, Live):
        raise PlanError(
            f"a parameter holds a value, not {value._called()}\n"
            "  join the relation, or name it in a comprehension"
        )
    return type(value) if row_type is None else row_type


def begin(parameter: Parameter[Any], value: Any, drop: Callable[[Any], object]) -> None:
    """Give a new parameter its first value, unless a file has one; `drop` it if that is refused."""
    if len(parameter):
        return
    try:
        parameter.add(value)
    except BaseException:
        drop(parameter)
        raise


hint(Parameter, OF_PARAMETERS)
