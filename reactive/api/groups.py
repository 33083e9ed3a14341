"""Rows grouped by a key, before it is said what to keep of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.expressions.text import written
from optimizer.rewriting import report
from reactive.api import literal as each_group
from reactive.api.aggregates import Aggregation, Less, Nulls, SortKey, sort_keys, turned
from reactive.api.aggregating import aggregated
from reactive.api.columns import taken
from reactive.engine.collections.bag import Bag
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import NotCopied
from reactive.engine.runtime.foreign_names import OF_GROUPS

if TYPE_CHECKING:
    from reactive.api.named_groups import NamedGroups
    from reactive.api.relation import GroupedRelation, Relation

Ts = TypeVarTuple("Ts")
K = TypeVar("K")


# What is done with each group of rows by itself, as groups have it.

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
"""What rows stand by: one key, or several."""


@boundary
class PerGroup(Generic[K, *Ts]):
    """Base of what is grouped."""

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
        """Whatever rows a callable makes of the rows of each group, behind the group's key.

        Parameters
        ----------
        function: callable, the key and a `Bag` of the rows -> an iterable of hashable rows.
            The multiset has no order of its own: the answer may depend on the rows alone. It
            has at least one; rows of several bindings are tuples.

        State: the rows, by group. Cost: O(rows of the groups that change), and a call for each.
        For what an aggregate, `top` or `each` can say, these take less.

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
        made = taken(function, 2, "reduce")
        return self._relation._new(plan.Reduce(self._relation.plan, self._key, made))

    def each(self, query: Callable[[Relation[*Ts]], Relation[*Us]]) -> Relation[K, *Us]:
        """What a query gives for each group, behind the key of the group.

        Parameters
        ----------
        query: callable, the rows of a group as a relation -> a relation. It is called once, with
            one that stands for all groups.

        A group exists while it has a row. An aggregate of all rows has one in each group, of no
        rows where others leave none of them; other relations in the query are the same for all.
        The rows of these by themselves, as in `group | others`, are there once for every group.

        State and cost: as of the same operators with the key of the group added to their keys.

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
        """Each key with the rows that have it: grouping without an aggregate.

        Parameters
        ----------
        query: callable, the rows of a group as a relation -> a relation, whose rows are inside in
            their place. It is called once, with one that stands for all groups, as in `each`;
            `group.order_by(...)` gives a sequence, `group.group_by(...).rows()` groups of groups.

        Its bindings are `key` and `rows`, a `Bag`, as `nest` has them: rows of its view read
        `row.rows`, `view[key]` is one of them, and callables that only fold the rows, as
        `len(rows)`, build no bag.

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
        """Of each group the `n` rows with the greatest values, or as many as it has.

        Parameters
        ----------
        n: how many, from 0 on.
        by: callable, bindings -> values that `<` compares; the name of a field; `asc(f)` or
            `desc(f)`; or a list of these, as `order_by` takes several. NaN comes after everything.
        descending: greatest first, of what is no `asc` or `desc`.
        nulls: `"first"` or `"last"`, where None stands; see `order_by`.

        Of rows with equal values it keeps the ones that `order_by` puts first. The result has no
        order itself, and its rows the bindings that they had.

        State: all rows, sorted, by group. Cost: O(changed rows x log group), whatever `n` is.

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
        """Of each group the row that is first in the order of a key: that of the least value.

        See `top`: its parameters, state and cost are the same.

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
        """Of each group the row that is last in the order of a key: that of the greatest value.

        It is the first in the order the other way round, also among rows with equal values. With
        `nulls="first"` a row whose value is None is there only if the group has no other.

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
        given = tuple(by) if isinstance(by, list | tuple) else (by,)
        if not given:
            raise PlanError(f"{role}: by={by!r} names nothing that its rows stand by")
        descending = descending and not all(isinstance(key, SortKey) for key in given)
        relation = self._relation
        keys = sort_keys(
            given, lambda of: relation._take(of, role), role, descending=descending, nulls=nulls
        )
        keys = tuple(map(turned, keys)) if turns else keys
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
class Groups(NotCopied, PerGroup[K, *Ts]):
    """Rows grouped by a key; say with `aggregate`, or another of its methods, what to make of each
    group."""

    _pickle_instead = "pickle the rows: groups.aggregate(...).materialize().snapshot()"

    def __init__(self, relation: Relation[*Ts], key: Function, name: str) -> None:
        self._relation = relation
        self._key = key
        self._name = name
        """The column of the key, where columns have names."""

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
        """One row per group: its key, then each aggregate. A group exists while it has a row.

        With names, see `Relation.aggregate`, the row is one record: the key is called as the field
        that it is, else `key`.

        >>> from reactive import Count, Database, Sum
        >>> words = Database().table(str)
        >>> stats = words.group_by(lambda w: w[0]).aggregate(Count(), Sum(len)).materialize()
        >>> words.add_all(["to", "that", "be"])
        >>> sorted(stats), stats["t"]
        ([('b', 1, 2), ('t', 2, 6)], (2, 6))
        """
        node = aggregated(self._relation, self._key, self._name, aggregates, named, as_)
        return self._relation._grouped(node)

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
