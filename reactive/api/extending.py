"""Rows with other bindings: `extend` and `bind`, as relations have them.

Their types are exact to four columns; with names they are not, as types know no names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from reactive.api import extended as bindings
from reactive.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.api.relation import AnyRelation, Relation

Ts = TypeVarTuple("Ts")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@boundary
class Extending(Generic[*Ts]):
    """Base of what can have other bindings."""

    def _new(self, node: Any, *others: Any) -> Relation[Any]:
        raise NotImplementedError

    @overload
    def extend(self, a: Callable[[*Ts], A], /) -> Relation[*Ts, A]: ...
    @overload
    def extend(self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], /) -> Relation[*Ts, A, B]: ...
    @overload
    def extend(
        self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], c: Callable[[*Ts], C], /
    ) -> Relation[*Ts, A, B, C]: ...
    @overload
    def extend(
        self, *columns: Callable[[*Ts], Any] | str, **named: Callable[[*Ts], Any] | str
    ) -> AnyRelation: ...
    def extend(self: Any, *columns: Any, **named: Any) -> Any:
        """The same rows with bindings appended, each of them computed from the row.

        Parameters
        ----------
        columns, named: callables, bindings -> hashable, or names of fields. The name is that of the
            binding then: `explain()` and messages have it, `where(total=3)` and `order_by("total")`
            find it before fields of that name, and views show it. It cannot be taken already.

        State: none. Cost: O(changed rows). Source: [dbsp] linear operators.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> sized = words.extend(size=len)
        >>> view = sized.where(lambda word, size: size > 2).materialize()
        >>> words.add_all(["to", "be", "not"])
        >>> list(view)
        [('not', 3)]
        """
        return self._new(bindings.extended(self, columns, named))

    @overload
    def bind(self, a: Callable[[*Ts], A], /) -> Relation[A]: ...
    @overload
    def bind(self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], /) -> Relation[A, B]: ...
    @overload
    def bind(
        self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], c: Callable[[*Ts], C], /
    ) -> Relation[A, B, C]: ...
    @overload
    def bind(
        self,
        a: Callable[[*Ts], A],
        b: Callable[[*Ts], B],
        c: Callable[[*Ts], C],
        d: Callable[[*Ts], D],
        /,
    ) -> Relation[A, B, C, D]: ...
    @overload
    def bind(
        self, *columns: Callable[[*Ts], Any] | str, **named: Callable[[*Ts], Any] | str
    ) -> AnyRelation: ...
    def bind(self: Any, *columns: Any, **named: Any) -> Any:
        """Rows of other bindings, each of them computed from the row. Equal ones add up.

        Where `select` makes one value of a row, this makes several that stay side by side.

        Parameters
        ----------
        columns, named: as those of `extend`.

        State: none. Cost: O(changed rows). Source: [dbsp] linear operators.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> sized = words.bind(lambda word: word[0], size=len)
        >>> longest = sized.order_by(lambda first, size: size, descending=True).materialize()
        >>> words.add_all(["to", "be", "not"])
        >>> longest[0]
        ('n', 3)
        """
        return self._new(bindings.bound(self, columns, named))
