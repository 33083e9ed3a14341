"""Relations defined by their own rows as of the previous commit: y(n) = step(x(n), y(n - 1)).

    averages = db.feedback(Average, lambda y: ... prices ... y.previous() ..., name="averages")

      +--> table previous(averages) --> step --> averages
      |                    |                        |
      +---- at the next commit ---- difference <----+

The rows of the previous commit are a table of their own. So the step is a query as any other: its
views are what it is from scratch, of the present rows of all tables.

State:  the rows of the previous commit, and what a commit has changed.
Cost:   of each commit, the rows that the one before changed, and the work of the step for them.
Source: [dbsp] the delay operator, z^-1, in a feedback.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.plans.properties import bindings, may_be_negative
from reactive.api import family
from reactive.api.columns import Live
from reactive.api.relation import Relation, views_of
from reactive.api.table import Table
from reactive.api.view import AnyView
from reactive.engine.runtime.boundary import boundary
from reactive.engine.transactions.feedback import FeedbackLoop, start_loop, stop_loop
from reactive.errors import OffloadError, TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T")


class Delayed(Live, Generic[T]):
    """The relation that a step of `Database.feedback` defines, of which it may read `previous()`.

    Other uses would define rows by themselves, and are refused.

    >>> from reactive import Database
    >>> db = Database()
    >>> names = db.table(str, name="names")
    >>> ever = db.feedback(str, lambda y: names.union(y.previous()), name="ever").materialize()
    >>> names.add("Ann")
    >>> names.remove("Ann")
    >>> list(ever)
    ['Ann']
    """

    _copy_instead = _pickle_instead = "use it in the step of db.feedback, as y.previous()"

    def __init__(self, table: Table[T, Any], name: str) -> None:
        self._table, self._name = table, name

    def previous(self) -> Relation[T]:
        """Return the rows as of the previous commit; in the beginning, those of `start`."""
        return self._table._new(self._table.plan)

    def _called(self) -> str:
        return f"the relation {self._name!r} of feedback"

    def __repr__(self) -> str:
        return f"Delayed({self._name!r})"

    def _kept_views(self) -> tuple[AnyView, ...]:
        return ()

    def _relation_of(self, engine: Any) -> NoReturn:
        raise self._without_delay()

    def __iter__(self) -> NoReturn:
        raise self._without_delay()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            raise self._without_delay()

    def _without_delay(self) -> PlanError:
        return PlanError(
            f"the step of feedback {self._name!r} reads the rows that it defines\n"
            f"  read those of the commit before: {self._name}.previous(); fixpoint() and iterate()"
            " define rows by themselves"
        )


@boundary
class Recurrence(Relation[T], Generic[T]):
    """A relation defined by its own rows as of the previous commit; `Database.feedback` makes it.

    >>> from reactive import Database
    >>> db = Database()
    >>> loads = db.table(tuple[str, float], name="loads", key=lambda load: load[0])
    >>> smooth = db.feedback(
    ...     tuple[str, float],
    ...     lambda y: loads.left_join(
    ...         y.previous(), on=lambda load, old: load[0] == old[0]
    ...     ).select(lambda load, old: (load[0], load[1] + old[1] / 2 if old else load[1])),
    ...     name="smooth",
    ... )
    >>> view = smooth.materialize()
    >>> loads.add(("cpu", 8.0))
    >>> loads.upsert(("cpu", 4.0))
    >>> list(view), list(smooth.previous().materialize())
    ([('cpu', 8.0)], [('cpu', 8.0)])
    """

    def __init__(self, engine: Engine, made: Relation[T], table: Table[T, Any], name: str) -> None:
        super().__init__(engine, made.plan, views_of(made))
        self.name = name
        self._table = table
        self._loop: FeedbackLoop | None = None
        self._change: AnyView | None = None

    def previous(self) -> Relation[T]:
        """Return the rows as of the previous commit, which the step reads, too."""
        return self._table._new(self._table.plan)

    def close(self) -> None:
        """End the recurrence: drop its rows of the previous commit.

        Raises
        ------
        PlanError: views or subscriptions, named in the message, read it.
        TransactionError: inside a transaction.
        """
        engine = self._engine
        if self._loop is None:
            return
        with engine.shaping(to_write=True):
            readers = [
                leaf
                for leaf in family.readers(engine, self._table)
                if self._change is None or leaf is not self._change._node
            ]
            if not readers:
                self._stop()
            family.drop(engine, self._table, views=False, why=f"{self._called()} was closed")

    def _stop(self) -> None:
        """Let commits change it no more."""
        if self._loop is not None:
            stop_loop(self._engine, self._loop)
        if self._change is not None:
            self._change.close()
        self._loop = self._change = None

    def _called(self) -> str:
        return f"feedback {self.name!r}"

    def _begin(self, *, is_followed: bool) -> None:
        """Let each commit from now on be a step, unless the table follows those of a file."""
        checked = Opaque(
            _RowCheck(self._table, self._called()), 1, "checked", None, (), object(), "feedback"
        )
        rows = self._new(plan.Select(self.plan, checked))
        before = self.previous().negate()
        change = self._change = rows.union_all(before).materialize(f"change of {self.name}")
        if change._node.deferred:
            raise OffloadError(
                f"{self._called()} reads what is not in the process, which changes at flushes and "
                "not at commits\n  view.recall() brings a part back"
            )
        self._loop = FeedbackLoop(self._table, self.plan, lambda: list(change._contents.items()))
        if not is_followed:
            start_loop(self._engine, self._loop)


class _RowCheck:
    """A row itself, if the table of a feedback can hold it."""

    def __init__(self, table: Table[Any, Any], called: str) -> None:
        self._check, self._called = table._do.check, called

    def __call__(self, row: Any) -> Any:
        """Return a row; raise `TableError` for one that cannot be fed back."""
        try:
            self._check(row)
        except TableError as error:
            raise TableError(
                f"the step of {self._called} makes {row!r:.100}, which cannot be fed back: {error}"
            ) from None
        return row


def make(
    engine: Engine,
    row_type: type[T],
    step: Callable[[Delayed[T]], Relation[T]],
    start: Iterable[T],
    name: str,
    stored: tuple[Any, ...],
) -> Recurrence[T]:
    """Return the recurrence of a step, and take the first step; see `Database.feedback`.

    stored: the arguments of the table of previous rows, as in `Database.table`.
    """
    of_step = _parameter_of(step)
    journal, own = engine.journal, f"previous({name})"
    is_stored = journal is not None and stored[0] is not False and own in journal.store.tables()
    table: Table[T, Any] = engine.add_table(
        lambda number, _: Table(engine, number, row_type, own, None, True), None, stored
    )
    try:
        if not is_stored:
            table.add_all(start)
        made = step(Delayed(table, of_step))
        _check_made(engine, made, name)
        found = Recurrence(engine, made, table, name)
        try:
            found._begin(is_followed=journal is not None and not journal.writes)
        except BaseException:
            found._stop()
            raise
    except BaseException:
        family.drop(engine, table, views=True, why=f"feedback {name!r} could not be made")
        raise
    return found


def _parameter_of(step: Any) -> str:
    """Return the name of the first parameter of a step; the others must have defaults."""
    problem = f"not {step!r:.60}"
    if callable(step):
        try:
            (name, *_) = inspect.signature(step).bind(None).arguments
            return name
        except (TypeError, ValueError) as error:
            problem = str(error)
    raise PlanError(
        f"the step of feedback takes one parameter, the relation that it defines: {problem}\n"
        "  lambda y: x.union(y.previous())"
    )


def _check_made(engine: Engine, made: Any, name: str) -> None:
    """Refuse what cannot be fed back."""
    if isinstance(made, Delayed):
        raise made._without_delay()
    if not isinstance(made, Relation):
        raise PlanError(
            f"the step of feedback {name!r} returned {made!r:.100}, which is no relation\n"
            "  it takes y, and returns the relation that y is after each commit"
        )
    problem, remedy = "", ""
    if made._engine is not engine:
        problem, remedy = "is of another database", "use tables of this one"
    elif made._query() is not made or isinstance(made.plan, plan.OrderBy):
        problem, remedy = "has an order or nested rows", "feed rows back, and order what is made"
    elif bindings(made.plan) != 1:
        problem = f"has {bindings(made.plan)} bindings"
        remedy = "select one value for each row: select(lambda a, b: (a, b))"
    elif may_be_negative(made.plan):
        problem = "may have rows of negative weight"
        remedy = "difference_all() and db.stream() have none; negate() and stored=False may"
    if problem:
        raise PlanError(f"what the step of feedback {name!r} returns {problem}\n  {remedy}")
