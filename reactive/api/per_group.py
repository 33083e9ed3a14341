"""What is done with each group of rows by itself, as groups have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.expr import Function
from reactive.api.callables import taken
from reactive.collections.multiset import Multiset
from reactive.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.api.relation import Relation

Ts = TypeVarTuple("Ts")
Cs = TypeVarTuple("Cs")
A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")


@boundary
class PerGroup(Generic[K, *Ts]):
    """Base of what is grouped."""

    _relation: Relation[*Ts]
    _key: Function

    @overload
    def reduce(
        self: PerGroup[K, T], function: Callable[[K, Multiset[T]], Iterable[U]]
    ) -> Relation[K, U]: ...
    @overload
    def reduce(
        self: PerGroup[K, A, B, *Cs],
        function: Callable[[K, Multiset[tuple[A, B, *Cs]]], Iterable[U]],
    ) -> Relation[K, U]: ...
    def reduce(self: Any, function: Callable[[Any, Any], Iterable[Any]]) -> Any:
        """Whatever rows a callable makes of the rows of each group, behind the group's key.

        Parameters
        ----------
        function: callable, the key and a `Multiset` of the rows -> an iterable of hashable rows.
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
