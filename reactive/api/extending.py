"""Rows of other values: `select`, `extend` and `bind`, as relations have them.

Their types are exact to four columns; with names they are not, as types know no names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer import plan
from reactive.api import extended as bindings
from reactive.engine.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.api.relation import AnyRelation, Relation

Ts = TypeVarTuple("Ts")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
U = TypeVar("U")


@boundary
class Extending(Generic[*Ts]):
    """Base of what can have other bindings."""

    def _new(self, node: Any, *others: Any) -> Relation[Any]:
        raise NotImplementedError

    @overload
    def select(self, function: Callable[[*Ts], U], /) -> Relation[U]: ...
    @overload
    def select(self, name: str, /, **named: Callable[[*Ts], Any] | str) -> Relation[Any]: ...
    @overload
    def select(self, /, **named: Callable[[*Ts], Any] | str) -> Relation[Any]: ...
    @overload
    def select(
        self,
        first: Callable[[*Ts], Any] | str,
        second: Callable[[*Ts], Any] | str,
        /,
        *more: Callable[[*Ts], Any] | str,
        **named: Callable[[*Ts], Any] | str,
    ) -> Relation[Any]: ...
    def select(self: Any, /, *columns: Any, **named: Any) -> Any:
        """Projection: a function of each row. Equal results add up, as in a bag.

        Parameters
        ----------
        columns: a callable, bindings -> hashable, or the name of a field: rows are its values. Or
            several names of fields, from which named rows are made, as by SQL.
        named: callables, or names of fields, by what they are called in the rows.

        Named rows are one binding, whose `columns` a view has; `bind` gives several bindings.

        State: none. Cost: O(changed rows). Source: [dbsp] linear operators.

        >>> from reactive import Database
        >>> numbers = Database().table(int)
        >>> parity = numbers.select(lambda n: n % 2).materialize()
        >>> named = numbers.select(number=lambda n: n, half=lambda n: n / 2).materialize()
        >>> numbers.add_all([1, 2, 4])
        >>> sorted(parity), min(named)
        ([0, 0, 1], Row(number=1, half=0.5))
        """
        if len(columns) == 1 and not named:
            return self._new(plan.Select(self.plan, self._take(columns[0], "select")))
        return bindings.selected(self, columns, named)

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
        self, /, *columns: Callable[[*Ts], Any] | str, **named: Callable[[*Ts], Any] | str
    ) -> AnyRelation: ...
    def extend(self: Any, /, *columns: Any, **named: Any) -> Any:
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
        self, /, *columns: Callable[[*Ts], Any] | str, **named: Callable[[*Ts], Any] | str
    ) -> AnyRelation: ...
    def bind(self: Any, /, *columns: Any, **named: Any) -> Any:
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

    def nest(self: Any, /, **named: Callable[[*Ts], AnyRelation | list[Any]]) -> Any:
        """The same rows, with the rows that a query gives for each of them as one binding more.

        Parameters
        ----------
        named: callables, bindings -> a relation, and the names of their bindings. Each is called
            once, with what stands for every row: callables of the relation that capture it read it.
            Or a list of what is in a collection of the row: `lambda c: [o for o in c.orders]`.

        A row for which the query gives nothing has an empty `Bag`. Where the query ends with
        `order_by`, with or without `limit`, what is inside is a tuple in this order. Queries inside
        may have a `nest` of their own, to any depth, and read all rows around them.

        Rows of views, and rows inside that have others inside, are named tuples `(row, name, ...)`;
        other names are looked up in their row. `view[key]` finds a row by the key of the table, if
        it has one, and else by the row itself. `to_python()` gives dictionaries and lists.

        State: the rows on both sides by what joins them, the rows of each `Bag`. Cost: of one
        row inside, one row of each level above it, for each parent that shows it.
        Source: [slender] nested collections; [neumann2015].

        Raises
        ------
        PlanError: a callable gives no relation, or cannot be asked for all rows together.

        >>> from reactive import Database
        >>> db = Database()
        >>> words, letters = db.table(str, name="words"), db.table(str, name="letters")
        >>> view = letters.nest(
        ...     words=lambda letter: words.where(lambda w: letter in w).order_by(len).limit(2)
        ... ).materialize()
        >>> letters.add_all(["o", "z"])
        >>> words.add_all(["or", "not", "gone"])
        >>> view["o"].words, view["z"].words
        (('or', 'not'), ())
        """
        return self._engine.nest(self, named)
