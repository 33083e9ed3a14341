"""Conditions and values of relations: `where`, `join`, `select`, `extend`, `bind`, `over`, `nest`.

The types of `extend` and `bind` are exact for up to three and four columns. Types do not know named
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.plans.properties import bindings
from optimizer.rewriting import columns
from optimizer.rewriting.columns import (
    BindingFacts,
    equal_fields,
    equal_to,
    field_of_row,
    have,
    known_shapes,
)
from optimizer.subqueries import keyed_rows
from reactive.api import extended as computed_bindings
from reactive.api import window_bindings
from reactive.api.columns import Column, Live, check_values, col
from reactive.engine.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.api.aggregates import Less, Nulls
    from reactive.api.groups import By
    from reactive.api.relation import AnyRelation, Relation
    from reactive.api.row_window import RowWindow


# Conditions of `where` and of joins, as parts of the plan.

Key = Callable[..., Any] | str
On = Callable[..., Any] | str | tuple[str, ...] | list[str]


def where_of(
    relation: AnyRelation, predicate: Callable[..., Any] | None, fields: Mapping[str, Any]
) -> plan.Node:
    """Return the plan of the rows that satisfy a predicate and have the given field values.

    Refuses to filter by nothing.
    """
    if predicate is None and not fields:
        raise PlanError(
            "where takes a predicate, or values of fields\n"
            '  where(lambda row: ...), where(town="Bonn")'
        )
    node = relation.plan
    if predicate is not None:
        node = plan.Where(node, relation._take(predicate, "where"))
    if fields:
        check_values(fields)
        given = {name: value for name, value in fields.items() if not isinstance(value, Live)}
        if given:
            node = plan.Where(node, equal_to(given, known_shapes(node), "where"))
        for name in (name for name in fields if name not in given):
            test = col(name) == fields[name]
            of_rows = columns.name_bindings(known_shapes(node))
            node = plan.Where(node, columns.resolve_names(test.expr, of_rows, "where", test.place))
    return node


def side_of(role: str, left: AnyRelation, right: AnyRelation) -> plan.Node:
    """Return the right side of a set operation, in no order; refuses another number of bindings."""
    left._check_other(role, right)
    mine, theirs = bindings(left.plan), bindings(right.plan)
    if mine != theirs:
        raise PlanError(
            f"{role} of relations with {mine} and {theirs} bindings\n"
            "  select() what both have in common first"
        )
    of = right.plan
    return keyed_rows.in_no_order(of) if isinstance(of, plan.OrderBy) else of


def match_of(
    role: str,
    left: AnyRelation,
    right: AnyRelation,
    on: On | None,
    left_key: Key | None,
    right_key: Key | None,
) -> plan.Match:
    """Return the condition under which rows match; without `on` and keys, all rows match."""
    left._check_other(role, right)
    if (left_key is None) != (right_key is None):
        given, missing = ("left_key", "right_key")[:: 1 if right_key is None else -1]
        raise PlanError(
            f"{role} has a {given} but no {missing}\n  rows match if the two keys are equal"
        )
    of_left = of_right = predicate = None
    if left_key is not None and right_key is not None:
        of_left = left._take(left_key, f"the left key of {role}")
        of_right = taken_of_right(right, right_key, f"the right key of {role}")
    if on is not None:
        predicate = _predicate(role, left, right, on)
    return plan.Match(of_left, of_right, predicate)


def taken_of_right(right: AnyRelation, key: Key, role: str) -> Function:
    """Return the key of a right row, given as a field name, a column or a callable."""
    if isinstance(key, str):
        return field_of_row(key, known_shapes(right.plan), role)
    if isinstance(key, Column):
        of = columns.name_right_bindings(known_shapes(right.plan))
        return columns.resolve_names(key.expr, of, role, key.place)
    return right._taken_of_row(key, role)


def _predicate(role: str, left: AnyRelation, right: AnyRelation, on: On) -> Function:
    """Return the condition of a join, given as field names, a column or a callable."""
    if isinstance(on, Column):
        of = columns.name_pair_bindings(known_shapes(left.plan), known_shapes(right.plan))
        return columns.resolve_names(on.expr, of, role, on.place)
    if not isinstance(on, str | tuple | list):
        return left._take(on, role, more=1)
    of_left, of_right = known_shapes(left.plan), known_shapes(right.plan)
    return equal_fields(_pairs(role, on, of_left, of_right), of_left, of_right, role)


def _pairs(
    role: str, on: str | tuple[str, ...] | list[str], left: BindingFacts, right: BindingFacts
) -> list[tuple[str, str]]:
    """Return the pairs of a left and a right field that must be equal.

    Refuses other values than names, and two names that both sides have.
    """
    names = (on,) if isinstance(on, str) else tuple(on)
    if not names or not all(isinstance(name, str) for name in names):
        raise PlanError(
            f"{role}: on={on!r:.60} are no names of fields\n"
            '  on="c" of both sides, on=("a", "b") of the left and of the right'
        )
    if not isinstance(on, tuple) or len(names) != 2:
        return [(name, name) for name in names]
    a, b = names
    if a != b and all(have(name, side) for name in names for side in (left, right)):
        raise PlanError(
            f"{role}: on={on!r} may mean two things, since both sides have both fields\n"
            f"  left_key={a!r}, right_key={b!r}: {a!r} of the left equals {b!r} of the right\n"
            f"  on=[{a!r}, {b!r}]: each equals itself on the other side"
        )
    return [(a, b)]


Ts = TypeVarTuple("Ts")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
U = TypeVar("U")


@boundary
class Extending(Generic[*Ts]):
    """Base of relations, with the methods that compute bindings."""

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
        """Projection: compute a value from each row. The weights of equal values add up.

        Parameters
        ----------
        columns: a callable, bindings -> hashable, or the name of a field: its values are the rows.
            Or several names of fields: the rows are then named tuples of them, as in SQL.
        named: callables, or names of fields, by their names in the new rows.

        A named tuple is one binding; its names are the `columns` of a view. `bind` makes several
        bindings.

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
        return computed_bindings.select_columns(self, columns, named)

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
        """Append bindings, each computed from the row.

        Parameters
        ----------
        columns, named: callables, bindings -> hashable, or names of fields. A named binding must
            have a new name, which `explain()`, messages and views show; `where(total=3)` and
            `order_by("total")` prefer it to a field of that name.

        State: none. Cost: O(changed rows). Source: [dbsp] linear operators.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> sized = words.extend(size=len)
        >>> view = sized.where(lambda word, size: size > 2).materialize()
        >>> words.add_all(["to", "be", "not"])
        >>> list(view)
        [('not', 3)]
        """
        return self._new(computed_bindings.plan_extend(self, columns, named))

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
        """Replace the bindings by computed ones. The weights of equal rows add up.

        `select` computes one value from a row, `bind` several that stay side by side.

        Parameters
        ----------
        columns, named: as for `extend`.

        State: none. Cost: O(changed rows). Source: [dbsp] linear operators.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> sized = words.bind(lambda word: word[0], size=len)
        >>> longest = sized.order_by(lambda first, size: size, descending=True).materialize()
        >>> words.add_all(["to", "be", "not"])
        >>> longest[0]
        ('n', 3)
        """
        return self._new(computed_bindings.plan_bind(self, columns, named))

    @overload
    def over(
        self,
        *,
        by: Callable[[*Ts], Hashable] | str | None = None,
        order: By[*Ts, Less] | None = None,
    ) -> Relation[*Ts, RowWindow]: ...
    @overload
    def over(
        self,
        *,
        by: Callable[[*Ts], Hashable] | str | None = None,
        order: By[*Ts, Less | None] | None = None,
        nulls: Nulls | None,
    ) -> Relation[*Ts, RowWindow]: ...
    def over(self: Any, *, by: Any = None, order: Any = None, nulls: Nulls | None = None) -> Any:
        """Append a binding: the row's window, whose functions read the rows around it in an order.

        Parameters
        ----------
        by: callable, bindings -> hashable, or the name of a field: rows with equal values are a
            partition, of which windows do not look out. By default all rows are one.
        order: callable, bindings -> values that `<` compares; the name of a field; `asc(f)` or
            `desc(f)`; or a list of these, for several keys. Without it, only aggregates of the
            whole partition have a meaning.
        nulls: `"first"` or `"last"`: the place of None, see `order_by`.

        The window `w` has `rank`, `dense_rank`, `row_number`, `percent_rank`, `cume_dist`, `ntile`,
        `lag`, `lead`, `first`, `last`, `nth`, `sum`, `avg`, `min`, `max`, `count` and `quantile`,
        see `RowWindow`. Any callable of the relation may call them, and `for s, w in
        relation.over(...)` in comprehensions; the windows are of all rows, whatever `where` or
        `join` select afterwards. Rows with equal sort keys are ordered by themselves, in a stable
        way. A window is no value: rows are to be materialized without it.

        State: all rows, sorted, by partition, and their answers. Cost: O(log partition) for a
        change, and O(1) for each row whose answer changes: of a `row_number` or a running sum all
        rows behind the changed one, of a `lag` two.
        Source: SQL:2003, window functions; Leis et al., 2015.

        Raises
        ------
        PlanError: a key is none of the rows; later, a function has no meaning for the window.

        >>> from reactive import Database, desc
        >>> words = Database().table(str)
        >>> ranked = words.over(by=len, order=desc(lambda word: word)).select(
        ...     lambda word, w: (word, w.rank(), w.lag(word))
        ... ).materialize()
        >>> words.add_all(["to", "be", "or", "not"])
        >>> sorted(ranked)
        [('be', 3, 'or'), ('not', 1, None), ('or', 2, 'to'), ('to', 1, None)]
        """
        return self._with_windows(window_bindings.plan_over(self, by, order, nulls))

    def nest(self: Any, /, **named: Callable[[*Ts], AnyRelation | list[Any]]) -> Any:
        """Append nested collections: for each row the rows of a query, as one more binding.

        Parameters
        ----------
        named: callables, bindings -> a relation, by the names of the new bindings. Each is called
            once, with placeholders for the row, which callables of the inner query may capture. Or
            a comprehension over a collection of the row: `lambda c: [o for o in c.orders]`.

        The inner rows are a `Bag`, empty if there are none; a tuple in order if the inner query
        ends with `order_by`, with or without `limit`. Inner queries may contain a `nest`, to any
        depth, and read all rows around them.

        In a view, rows with nested rows are named tuples `(row, name, ...)`, which look up other
        names in `row`. `view[key]` finds a row by the key of its table, or by the row if it has
        none. `to_python()` returns dictionaries and lists.

        State: the rows of both sides by their join key, and the rows of each `Bag`. Cost: a changed
        inner row changes one row on each level above it, for each parent that shows it.
        Source: [slender] nested collections; [neumann2015].

        Raises
        ------
        PlanError: a callable does not return a relation, or its query cannot be computed for all
            rows together.

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
