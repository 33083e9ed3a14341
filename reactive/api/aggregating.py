"""`aggregate` of all rows, and `through` an operator of the user's own, as relations have them.

Its types are exact to eight aggregates, and with `as_=` the class of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.plans.properties import name_columns as with_names
from optimizer.plans.properties import shapes
from reactive.api import extended, through
from reactive.api.aggregates import Aggregation, make_fold
from reactive.engine.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.api.relation import Relation
    from reactive.engine.operators.own_operator import Operator

Ts = TypeVarTuple("Ts")
Cs = TypeVarTuple("Cs")
A = TypeVar("A")
B = TypeVar("B")
U = TypeVar("U")
V = TypeVar("V")
R = TypeVar("R")
A1 = TypeVar("A1")
A2 = TypeVar("A2")
A3 = TypeVar("A3")
A4 = TypeVar("A4")
A5 = TypeVar("A5")
A6 = TypeVar("A6")
A7 = TypeVar("A7")
A8 = TypeVar("A8")


@boundary
class Aggregating(Generic[*Ts]):
    """Base of relations, which can be aggregated."""

    def _aggregate_rows(
        self, aggregates: tuple[Any, ...], named: Mapping[str, Any], as_: Any
    ) -> Relation[Any]:
        """Return the relation of the aggregates of all rows."""
        raise NotImplementedError

    @overload
    def aggregate(self, a1: Aggregation[*Ts, A1], /) -> Relation[A1]: ...
    @overload
    def aggregate(
        self, a1: Aggregation[*Ts, A1], a2: Aggregation[*Ts, A2], /
    ) -> Relation[A1, A2]: ...
    @overload
    def aggregate(
        self, a1: Aggregation[*Ts, A1], a2: Aggregation[*Ts, A2], a3: Aggregation[*Ts, A3], /
    ) -> Relation[A1, A2, A3]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, A1],
        a2: Aggregation[*Ts, A2],
        a3: Aggregation[*Ts, A3],
        a4: Aggregation[*Ts, A4],
        /,
    ) -> Relation[A1, A2, A3, A4]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, A1],
        a2: Aggregation[*Ts, A2],
        a3: Aggregation[*Ts, A3],
        a4: Aggregation[*Ts, A4],
        a5: Aggregation[*Ts, A5],
        /,
    ) -> Relation[A1, A2, A3, A4, A5]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, A1],
        a2: Aggregation[*Ts, A2],
        a3: Aggregation[*Ts, A3],
        a4: Aggregation[*Ts, A4],
        a5: Aggregation[*Ts, A5],
        a6: Aggregation[*Ts, A6],
        /,
    ) -> Relation[A1, A2, A3, A4, A5, A6]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, A1],
        a2: Aggregation[*Ts, A2],
        a3: Aggregation[*Ts, A3],
        a4: Aggregation[*Ts, A4],
        a5: Aggregation[*Ts, A5],
        a6: Aggregation[*Ts, A6],
        a7: Aggregation[*Ts, A7],
        /,
    ) -> Relation[A1, A2, A3, A4, A5, A6, A7]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, A1],
        a2: Aggregation[*Ts, A2],
        a3: Aggregation[*Ts, A3],
        a4: Aggregation[*Ts, A4],
        a5: Aggregation[*Ts, A5],
        a6: Aggregation[*Ts, A6],
        a7: Aggregation[*Ts, A7],
        a8: Aggregation[*Ts, A8],
        /,
    ) -> Relation[A1, A2, A3, A4, A5, A6, A7, A8]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, Any],
        a2: Aggregation[*Ts, Any],
        a3: Aggregation[*Ts, Any],
        a4: Aggregation[*Ts, Any],
        a5: Aggregation[*Ts, Any],
        a6: Aggregation[*Ts, Any],
        a7: Aggregation[*Ts, Any],
        a8: Aggregation[*Ts, Any],
        a9: Aggregation[*Ts, Any],
        /,
        *more: Aggregation[*Ts, Any],
    ) -> Relation[*tuple[Any, ...]]: ...
    @overload
    def aggregate(self, /, *, as_: type[R], **named: Aggregation[*Ts, Any]) -> Relation[R]: ...
    @overload
    def aggregate(self, /, **named: Aggregation[*Ts, Any]) -> Relation[Any]: ...
    def aggregate(
        self, /, *aggregates: Aggregation[*Ts, Any], as_: Any = None, **named: Aggregation[*Ts, Any]
    ) -> Any:
        """Aggregate all rows into exactly one row; read it with `view.value`.

        Parameters
        ----------
        aggregates: one or more of `Count()`, `Sum(f)`, `Avg(f)`, `Min(f)`, `Max(f)`,
            `CountDistinct(f)`, `Collect(f)`, statistics such as `Median(f)`, `Aggregate(...)`,
            `Monoid(...)`; `f` is a callable or the name of a field.
        named: named aggregates: `aggregate(orders=Count(), total=Sum("total"))`. The row is then
            one record with these fields, a named tuple that equals the plain tuple.
        as_: the class of the record instead of a generated one; it is called with the columns by
            name.

        State and cost: as for the aggregates.

        Raises
        ------
        PlanError: no aggregate is given, or aggregates with and without names are mixed; or `as_`
            does not take the columns.

        >>> from reactive import Count, Database, Max
        >>> numbers = Database().table(int)
        >>> numbers.aggregate(Count(), Max(lambda n: n)).materialize().value
        (0, None)
        """
        return self._aggregate_rows(aggregates, named, as_)


@boundary
class Operated(Generic[*Ts]):
    """Base of relations, whose rows can pass through operators of the user's own."""

    @overload
    def through(
        self: Operated[U],
        operator: type[Operator[U, V]],
        *others: Relation[*tuple[Any, ...]],
        **arguments: Any,
    ) -> Relation[V]: ...
    @overload
    def through(
        self: Operated[A, B, *Cs],
        operator: type[Operator[tuple[A, B, *Cs], V]],
        *others: Relation[*tuple[Any, ...]],
        **arguments: Any,
    ) -> Relation[V]: ...
    def through(self: Any, operator: Any, *others: Any, **arguments: Any) -> Any:
        """Return the rows of an operator of your own, which turns changes into changes.

        Parameters
        ----------
        operator: a class derived from `Operator`. Its `step` takes one delta for this relation and
            one for each of `others`; rows of several bindings are tuples.
        others: more relations to read.
        arguments: arguments of `operator.__init__`. Operators of one class with equal arguments,
            over equal relations, are one.

        State and cost: those of the operator; its rows, if it has no `contents`.
        Source: [dbsp] definition 3.1.

        Raises
        ------
        PlanError: `operator` is no such class, its `step` takes another number of deltas, or the
            relations belong to two databases.

        >>> from reactive import Database, Operator
        >>> class Doubled(Operator[int, int]):
        ...     def step(self, numbers):
        ...         return [(2 * number, weight) for number, weight in numbers]
        >>> numbers = Database().table(int)
        >>> view = numbers.through(Doubled).materialize()
        >>> numbers.add_all([3, 4])
        >>> sorted(view)
        [6, 8]
        """
        for other in others:
            self._check_other("through", other)
        sources = (self.plan, *(other.plan for other in others))
        made = through.plan_through(operator, sources, arguments, self._engine)
        return self._new(made, *others)


def make_aggregates(
    relation: Any,
    make: Callable[[plan.Node], Any],
    key: tuple[Function | None, str | None],
    aggregates: Sequence[Any],
    named: Mapping[str, Any],
    as_: Any,
) -> Any:
    """Return the relation of aggregates by a key, or of all rows; named aggregates are one record.

    `make` makes a relation of a plan, and `key` is the key with its name.
    """
    _check_aggregates(aggregates, named, as_)
    given = (*aggregates, *named.values())
    of, key_name = key
    folds = tuple(make_fold(a, relation._take, shapes(relation.plan)) for a in given)
    made = make(plan.Aggregate(relation.plan, of, folds))
    if not named:
        return made
    records = with_names(made.plan, extended.naming_of_columns(key_name, tuple(named), as_))
    return made._make_groups(records) if of is not None else made._new(records)


def _check_aggregates(aggregates: Sequence[Any], named: Mapping[str, Any], as_: Any) -> None:
    """Refuse no aggregates at all, and aggregates with names mixed with ones without."""
    if not aggregates and not named:
        raise PlanError(
            "aggregate takes at least one aggregate\n  for the keys alone: select(key).distinct()"
        )
    if aggregates and (named or as_ is not None):
        raise PlanError(
            "aggregate takes aggregates with names, or without, not both\n"
            "  aggregate(orders=Count(), total=Sum(...)) names all of them"
        )
