"""Rows grouped by a key, before it is said what to keep of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar, TypeVarTuple, overload

from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.expressions.text import written
from optimizer.rewriting import report
from reactive.api.aggregates import Aggregation
from reactive.api.aggregating import aggregated
from reactive.api.per_group import PerGroup
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.copying import NotCopied
from reactive.engine.runtime.foreign_names import OF_GROUPS

if TYPE_CHECKING:
    from reactive.api.named_groups import NamedGroups
    from reactive.api.relation import GroupedRelation, Relation

Ts = TypeVarTuple("Ts")
K = TypeVar("K")
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
