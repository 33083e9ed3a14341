"""Rows grouped by a key, and the methods that make a relation of the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.expressions.text import written
from optimizer.rewriting import report
from reactive.api import literal as each_group
from reactive.api import through
from reactive.api.aggregates import Aggregation, Less, Nulls, SortKey, reverse_sort_key, sort_keys
from reactive.api.aggregating import make_aggregates
from reactive.api.columns import take_callable
from reactive.engine.collections.bag import Bag
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import Uncopyable
from reactive.engine.runtime.foreign_names import OF_GROUPS

if TYPE_CHECKING:
    from reactive.api.named_groups import NamedGroups
    from reactive.api.relation import GroupedRelation, Relation
    from reactive.engine.operators.own_operator import Operator

Ts = TypeVarTuple("Ts")
K = TypeVar("K")


# Queries of each group of rows by itself.

Us = TypeVarTuple("Us")
Cs = TypeVarTuple("Cs")
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")

By: TypeAlias = (
    Callable[[*Ts], V] | SortKey[V, *Ts] | str | list[Callable[[*Ts], V] | SortKey[V, *Ts] | str]
)
"""The sort key of rows: one key, or several."""


@boundary
class PerGroup(Generic[K, *Ts]):
    """Base of `Groups`: queries of each group by itself."""

    _relation: Relation[*Ts]
    _key: Function

    @overload
    def reduce(
        self: PerGroup[K, T], function: Callable[[K, Bag[T]], Iterable[U]]
    ) -> Relation[K, U]: ...
    @overload
    def reduce(
        self: PerGroup[K, A, B, *Cs],
        function: Callable[[K, Bag[tuple[A, B, *Cs]]], Iterable[U]],
    ) -> Relation[K, U]: ...
    def reduce(self: Any, function: Callable[[Any, Any], Iterable[Any]]) -> Any:
        """Return the rows that a callable makes of each group, after the key of the group.

        Parameters
        ----------
        function: callable, key and `Bag` of the rows -> an iterable of hashable rows. Its result
            must not depend on the order of the rows. The bag is never empty; rows of several
            bindings are tuples.

        State: the rows, by group. Cost: O(rows of the changed groups), and a call for each group.
        An aggregate, `top` or `each` costs less where it can express the query.
        Source: [dbsp] definition 3.1.

        >>> from statistics import median
        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> medians = words.group_by(lambda w: w[0]).reduce(
        ...     lambda letter, group: [median(map(len, group))]
        ... )
        >>> view = medians.materialize()
        >>> words.add_all(["to", "that", "the", "be"])
        >>> sorted(view)
        [('b', 2), ('t', 3)]
        """
        made = take_callable(function, 2, "reduce")
        return self._relation._new(plan.Reduce(self._relation.plan, self._key, made))

    @overload
    def through(
        self: PerGroup[K, U], operator: type[Operator[U, V]], **arguments: Any
    ) -> Relation[K, V]: ...
    @overload
    def through(
        self: PerGroup[K, A, B, *Cs],
        operator: type[Operator[tuple[A, B, *Cs], V]],
        **arguments: Any,
    ) -> Relation[K, V]: ...
    def through(self: Any, operator: Any, **arguments: Any) -> Any:
        """Return the rows of one operator of your own for each group, after the key of the group.

        Parameters
        ----------
        operator: a class derived from `Operator`; see `Relation.through`. A group has an operator
            while it has a row.
        arguments: arguments of `operator.__init__`.

        State and cost: those of the operators.

        Raises
        ------
        PlanError: `operator` is no such class.

        >>> from reactive import Database, Operator
        >>> class Lengths(Operator[str, int]):
        ...     def step(self, words):
        ...         return [(len(word), weight) for word, weight in words]
        >>> words = Database().table(str)
        >>> view = words.group_by(lambda w: w[0]).through(Lengths).materialize()
        >>> words.add_all(["to", "that", "be"])
        >>> sorted(view)
        [('b', 2), ('t', 2), ('t', 4)]
        """
        relation = self._relation
        made = through.plan_through_groups(
            operator, relation.plan, self._key, arguments, relation._engine
        )
        return relation._new(made)

    def each(self, query: Callable[[Relation[*Ts]], Relation[*Us]]) -> Relation[K, *Us]:
        """Run a query on each group, and return its rows after the key of the group.

        Parameters
        ----------
        query: callable, rows of a group as a relation -> a relation. It is called once, with a
            relation that stands for every group.

        A group exists while it has a row. An aggregate inside the query has one row per group, of
        no rows if a `where` left none. Other relations in the query are the same for all groups;
        their rows, as in `group | others`, are repeated for every group.

        State and cost: as for the same operators with the key of the group added to their keys.

        Raises
        ------
        PlanError: `query` does not return a relation of this database, or cannot be computed for
            all groups together.

        >>> from reactive import Count, Database
        >>> words = Database().table(str)
        >>> short = words.group_by(lambda w: w[0]).each(
        ...     lambda group: group.where(lambda w: len(w) < 3).aggregate(Count())
        ... )
        >>> view = short.materialize()
        >>> words.add_all(["to", "that", "be", "not"])
        >>> sorted(view)
        [('b', 1), ('n', 0), ('t', 1)]
        """
        made: Relation[K, *Us] = each_group.each(self._relation, self._key, query)
        return made

    def rows(self: Any, query: Callable[[Any], Any] | None = None) -> Any:
        """Pair each key with the rows that have it: grouping without an aggregate.

        Parameters
        ----------
        query: callable, rows of a group as a relation -> a relation, whose rows are nested instead.
            It is called once, with a relation that stands for every group, as in `each`;
            `group.order_by(...)` nests a sequence, `group.group_by(...).rows()` groups of groups.

        The bindings are `key` and `rows`, a `Bag`, as after `nest`: in the view use `row.rows`
        and `view[key]`. A callable that only folds the rows, as `len(rows)`, builds no bag.

        State: a bag per group. Cost: O(changed rows). Source: grouping in NRC [slender].

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> by_letter = words.group_by(lambda w: w[0]).rows()
        >>> view = by_letter.materialize()
        >>> longest = by_letter.select(lambda letter, rows: (letter, max(map(len, rows))))
        >>> lengths = longest.materialize()
        >>> words.add_all(["to", "that", "be"])
        >>> sorted(view["t"].rows), sorted(lengths)
        (['that', 'to'], [('b', 2), ('t', 4)])
        """
        relation = self._relation
        return relation._engine.rows_of_groups(relation, self._key, query)

    @overload
    def top(self, n: int, by: By[*Ts, Less], *, descending: bool = True) -> Relation[*Ts]: ...
    @overload
    def top(
        self, n: int, by: By[*Ts, Less | None], *, descending: bool = True, nulls: Nulls | None
    ) -> Relation[*Ts]: ...
    def top(
        self, n: Any = None, by: Any = None, *, descending: bool = True, nulls: Nulls | None = None
    ) -> Relation[*Ts]:
        """Keep the `n` rows of each group with the greatest values, or fewer if it has fewer.

        Parameters
        ----------
        n: the number of rows, from 0 on.
        by: callable, bindings -> values that `<` compares; the name of a field; `asc(f)` or
            `desc(f)`; or a list of these, for several keys. NaN is greater than all other values.
        descending: greatest first, for keys without a direction of their own.
        nulls: `"first"` or `"last"`: the place of None, see `order_by`.

        Ties are broken as in `order_by`. The rows keep their bindings; the result has no order.

        State: all rows, sorted, by group. Cost: O(changed rows x log group), whatever `n` is.

        Raises
        ------
        PlanError: `n` is not an int from 0 on; or `by` is missing, or names no key.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> longest = words.group_by(lambda w: w[0]).top(2, by=len).materialize()
        >>> words.add_all(["to", "that", "the", "be"])
        >>> sorted(longest)
        ['be', 'that', 'the']
        """
        if by is None:
            raise PlanError(
                'top takes what its rows stand by\n  top(3, by="total"), top(3, by=len)'
            )
        if type(n) is not int or n < 0:
            raise PlanError(
                f"top takes a number of rows, from 0 on, not {n!r:.60}\n"
                '  top(3, by="total") keeps three of each group'
            )
        return self._top("top", n, by, descending=descending, nulls=nulls)

    @overload
    def first(self, by: By[*Ts, Less]) -> Relation[*Ts]: ...
    @overload
    def first(self, by: By[*Ts, Less | None], *, nulls: Nulls | None) -> Relation[*Ts]: ...
    def first(self, by: Any = None, *, nulls: Nulls | None = None) -> Relation[*Ts]:
        """Keep the row of each group with the least value: the first row in the order of a key.

        Parameters (`by` and `nulls`), state and cost: as for `top`.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> shortest = words.group_by(lambda w: w[0]).first(by=len).materialize()
        >>> words.add_all(["to", "that", "be"])
        >>> sorted(shortest)
        ['be', 'to']
        """
        if by is None:
            raise PlanError('first takes what its rows stand by\n  first(by="time"), first(by=len)')
        return self._top("first", 1, by, descending=False, nulls=nulls)

    @overload
    def last(self, by: By[*Ts, Less]) -> Relation[*Ts]: ...
    @overload
    def last(self, by: By[*Ts, Less | None], *, nulls: Nulls | None) -> Relation[*Ts]: ...
    def last(self, by: Any = None, *, nulls: Nulls | None = None) -> Relation[*Ts]:
        """Keep the row of each group with the greatest value: the last row in the order of a key.

        It is the first row of the reversed order, also among rows with equal values. With
        `nulls="first"` a row whose value is None is kept only if the group has no other row.
        Parameters, state and cost: as for `top`.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> longest = words.group_by(lambda w: w[0]).last(by=len).materialize()
        >>> words.add_all(["to", "that", "be"])
        >>> sorted(longest)
        ['be', 'that']
        """
        if by is None:
            raise PlanError('last takes what its rows stand by\n  last(by="time"), last(by=len)')
        return self._top("last", 1, by, descending=False, nulls=nulls, turns=True)

    def _top(
        self,
        role: str,
        n: int,
        by: Any,
        *,
        descending: bool,
        nulls: Nulls | None,
        turns: bool = False,
    ) -> Relation[Any]:
        """Return the first `n` rows of each group in the order `by`; reversed if `turns`."""
        given = tuple(by) if isinstance(by, list | tuple) else (by,)
        if not given:
            raise PlanError(f"{role}: by={by!r} names nothing that its rows stand by")
        descending = descending and not all(isinstance(key, SortKey) for key in given)
        relation = self._relation
        keys = sort_keys(
            given, lambda of: relation._take(of, role), role, descending=descending, nulls=nulls
        )
        keys = tuple(map(reverse_sort_key, keys)) if turns else keys
        return relation._new(plan.Top(relation.plan, self._key, keys, n))


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
class Groups(Uncopyable, PerGroup[K, *Ts]):
    """Rows grouped by a key; `aggregate`, or another method, makes a relation of the groups."""

    _pickle_instead = "pickle the rows: groups.aggregate(...).materialize().snapshot()"

    def __init__(self, relation: Relation[*Ts], key: Function, name: str) -> None:
        self._relation = relation
        self._key = key
        self._name = name
        """The column of the key, if columns have names."""

    @overload
    def aggregate(self, a1: Aggregation[*Ts, A1], /) -> GroupedRelation[K, A1]: ...
    @overload
    def aggregate(
        self, a1: Aggregation[*Ts, A1], a2: Aggregation[*Ts, A2], /
    ) -> GroupedRelation[K, A1, A2]: ...
    @overload
    def aggregate(
        self, a1: Aggregation[*Ts, A1], a2: Aggregation[*Ts, A2], a3: Aggregation[*Ts, A3], /
    ) -> GroupedRelation[K, A1, A2, A3]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, A1],
        a2: Aggregation[*Ts, A2],
        a3: Aggregation[*Ts, A3],
        a4: Aggregation[*Ts, A4],
        /,
    ) -> GroupedRelation[K, A1, A2, A3, A4]: ...
    @overload
    def aggregate(
        self,
        a1: Aggregation[*Ts, A1],
        a2: Aggregation[*Ts, A2],
        a3: Aggregation[*Ts, A3],
        a4: Aggregation[*Ts, A4],
        a5: Aggregation[*Ts, A5],
        /,
    ) -> GroupedRelation[K, A1, A2, A3, A4, A5]: ...
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
    ) -> GroupedRelation[K, A1, A2, A3, A4, A5, A6]: ...
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
    ) -> GroupedRelation[K, A1, A2, A3, A4, A5, A6, A7]: ...
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
    ) -> GroupedRelation[K, A1, A2, A3, A4, A5, A6, A7, A8]: ...
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
    ) -> GroupedRelation[K, *tuple[Any, ...]]: ...
    @overload
    def aggregate(
        self, /, *, as_: type[R], **named: Aggregation[*Ts, Any]
    ) -> NamedGroups[K, R]: ...
    @overload
    def aggregate(self, /, **named: Aggregation[*Ts, Any]) -> NamedGroups[K, Any]: ...
    def aggregate(
        self, /, *aggregates: Aggregation[*Ts, Any], as_: Any = None, **named: Aggregation[*Ts, Any]
    ) -> Any:
        """Return one row per group: its key, then each aggregate.

        A group exists while it has a row.
        With named aggregates (see `Relation.aggregate`) the row is one record, in which the key has
        the name of its field, or `key` if it is computed.

        State and cost: as for the aggregates, per group.

        >>> from reactive import Count, Database, Sum
        >>> words = Database().table(str)
        >>> stats = words.group_by(lambda w: w[0]).aggregate(Count(), Sum(len)).materialize()
        >>> words.add_all(["to", "that", "be"])
        >>> sorted(stats), stats["t"]
        ([('b', 1, 2), ('t', 2, 6)], (2, 6))
        """
        relation, key = self._relation, (self._key, self._name)
        return make_aggregates(relation, relation._make_groups, key, aggregates, named, as_)

    if not TYPE_CHECKING:  # a type checker should go on refusing what there is not

        def __getattr__(self, name: str) -> Any:
            remedy = OF_GROUPS.get(name, "group_by(key).aggregate(Count(), ...)")
            raise AttributeError(
                f"groups have no {name!r}: say first what to keep of each group\n  {remedy}"
            )

        def __getitem__(self, key: Any) -> Any:
            raise PlanError(
                f"groups have no [{key!r:.100}]: say first what to keep of each group\n"
                "  group_by(key).aggregate(Count(), ...).materialize() has view[key]"
            )

    def __copy__(self) -> Self:
        return self

    def _called(self) -> str:
        return f"the groups by {written(self._key)}"

    def __repr__(self) -> str:
        return f"Groups by {written(self._key)} of\n{report.as_read(self._relation.plan)}"
