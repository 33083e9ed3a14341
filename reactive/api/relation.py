"""Queries as data: immutable, composable, typed. Nothing is computed until a view is made.

Each method lifts the user's callables into the plan and wraps one node around it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    overload,
)

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import Place, caller
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.expressions.knowledge import Shapes
from optimizer.plans import explain as explaining
from optimizer.plans.check_reads import check_callable, check_reads
from optimizer.plans.properties import reads_stream, row_shape, shapes, tables
from optimizer.rewriting import columns
from optimizer.rewriting import report as reports
from optimizer.rewriting.columns import field, known_shapes
from optimizer.subqueries import keyed_rows
from optimizer.traverse import has_subqueries
from reactive.api import (
    comprehending,
    display,
    nesting,
    over_time,
    proving,
    window_bindings,
)
from reactive.api import windows as time_windows
from reactive.api.aggregates import Less, Nulls, SortKey, sort_keys
from reactive.api.aggregating import Aggregating, Operated, make_aggregates
from reactive.api.borders import making
from reactive.api.columns import Column, Live, is_parameter, name_of, plan_of_count, take_callable
from reactive.api.conditions import Extending, Key, On, match_of, side_of, where_of
from reactive.api.first import First
from reactive.api.groups import Groups
from reactive.api.keeping_order import KeepsOrder
from reactive.api.subscriptions.listening import Listening, NamedSubscription
from reactive.api.subscriptions.observe import Relay, Subscription
from reactive.api.subscriptions.subscribe import subscribe
from reactive.engine.compiler import costs as costing
from reactive.engine.compiler import placement, state_bound
from reactive.engine.dataflow.delta import Delta
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import hint
from reactive.engine.runtime.foreign_names import OF_RELATIONS

if TYPE_CHECKING:
    from datetime import timedelta

    from reactive.api.grouped_view import GroupedView
    from reactive.api.literal import OnError
    from reactive.api.ordered_view import OrderedView
    from reactive.api.parameter import Parameter
    from reactive.api.table import Table
    from reactive.api.view import AnyView, View
    from reactive.api.windows import SessionWindows
    from reactive.engine.collections.time_windows import TimeWindow, TimeWindows
    from reactive.engine.transactions.engine import Engine

Ts = TypeVarTuple("Ts")
T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
R = TypeVar("R")


@boundary
class Relation(Live, Listening[*Ts], Aggregating[*Ts], Extending[*Ts], First[*Ts], Operated[*Ts]):
    """A query over tables. It carries one or more bindings side by side; `join` appends one.

    Callables get one argument per binding. A row of a relation with one binding is the value
    itself; with several bindings it is the tuple of them. Weights count copies, as in a bag.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> words.where(str.islower).select(len)
    Relation:
    select len(row)
      where islower(row)
        table words
    """

    def __init__(self, engine: Engine, node: plan.Node, views: tuple[AnyView, ...] = ()) -> None:
        check_reads(node)
        if has_subqueries(node):
            sources = comprehending.sources_of(node)
            views = _with_views_of(sources, views)
            node = comprehending.without_subqueries(node)
            if not self._has_windows and any(source._has_windows for source in sources):
                node = window_bindings.resolved(node)
        self._engine = engine
        self.plan = node
        """The query as data (`optimizer.plan`)."""
        self._views = views
        """The views that the query reads; the reference keeps them alive."""

    # One relation in, one out.

    def where(
        self, predicate: Callable[[*Ts], object] | None = None, /, **fields: Any
    ) -> Relation[*Ts]:
        """Filter: keep the rows that satisfy `predicate` and have the given values of `fields`.

        Parameters
        ----------
        predicate: callable, bindings -> truth value.
        fields: `where(town="Bonn", paid=None)` is `row.town == "Bonn" and row.paid == None`, with
            the values given here. Exactly one binding must have a field of that name.

        State: none. Cost: O(changed rows). Source: [dbsp] linear operators.

        >>> from reactive import Database
        >>> numbers = Database().table(int)
        >>> even = numbers.where(lambda n: n % 2 == 0).materialize()
        >>> numbers.add_all([1, 2, 4])
        >>> sorted(even)
        [2, 4]
        """
        return self._new(where_of(self, predicate, fields))

    def select_many(self, function: Callable[[*Ts], Iterable[U]]) -> Relation[U]:
        """Return the elements of a collection computed from each row, one row per element.

        Parameters
        ----------
        function: callable, bindings -> iterable of hashables.

        State: none. Cost: O(changed rows and their elements). Source: [mrql] cmap.

        >>> from reactive import Database
        >>> lines = Database().table(str)
        >>> words = lines.select_many(str.split).materialize()
        >>> lines.add("to be or not to be")
        >>> words.count("be")
        2
        """
        return self._new(plan.SelectMany(self.plan, self._take(function, "select_many")))

    def unnest(self, function: Callable[[*Ts], Iterable[U]]) -> Relation[*Ts, U]:
        """Append a binding: pair each row with every element of `function(...)`.

        A row whose collection is empty disappears. `select_many` keeps the elements alone.

        Parameters
        ----------
        function: callable, bindings -> iterable of hashables.

        State: none. Cost: O(changed rows and their elements). Source: [i3ql] unnest.

        >>> from reactive import Database
        >>> lines = Database().table(str)
        >>> pairs = lines.unnest(str.split).materialize()
        >>> lines.add("to be")
        >>> sorted(pairs)
        [('to be', 'be'), ('to be', 'to')]
        """
        return self._new(plan.Unnest(self.plan, self._take(function, "unnest")))

    def distinct(self) -> Relation[*Ts]:
        """Keep one copy of each row.

        State: the rows. Cost: O(changed rows). Source: [dbsp] proposition 4.7.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> once = words.distinct().materialize()
        >>> words.add_all(["be", "be"])
        >>> list(once)
        ['be']
        """
        return self._new(plan.Distinct(self.plan))

    @overload
    def order_by(
        self,
        key: Callable[[*Ts], Less] | SortKey[Less, *Ts] | str,
        *more: Callable[[*Ts], Less] | SortKey[Less, *Ts] | str,
        descending: bool = False,
    ) -> OrderedRelation[*Ts]: ...
    @overload
    def order_by(
        self,
        key: Callable[[*Ts], Less | None] | SortKey[Less | None, *Ts] | str,
        *more: Callable[[*Ts], Less | None] | SortKey[Less | None, *Ts] | str,
        descending: bool = False,
        nulls: Nulls | None,
    ) -> OrderedRelation[*Ts]: ...
    def order_by(
        self, key: Any, *more: Any, descending: bool = False, nulls: Nulls | None = None
    ) -> OrderedRelation[*Ts]:
        """Sort the rows by one or more keys; `OrderedRelation.limit` keeps the first few of them.

        Parameters
        ----------
        key, more: callables, bindings -> values that `<` compares, or names of fields. Later keys
            order rows whose earlier keys are equal; NaN is greater than all other values. `asc(f)`
            and `desc(f)` give a key its own direction. A key may be the result of a query for the
            row.
        descending: greatest first, for keys without a direction of their own.
        nulls: `"first"` or `"last"`: the place of None, in either direction, as a key or as an item
            of a tuple. By default None is compared like any value.

        Rows with equal keys are ordered by themselves if `<` compares them, else by arrival. If the
        relation is ordered already, they stay in its order, as with `sorted`.

        State: all rows, sorted. Cost: O(changed rows x log rows).

        >>> from reactive import Database, desc
        >>> words = Database().table(str)
        >>> by_length = words.order_by(len).materialize()
        >>> longest = words.order_by(desc(len), lambda w: w).materialize()
        >>> words.add_all(["three", "to", "a", "be"])
        >>> list(by_length), by_length[0]
        (['a', 'be', 'to', 'three'], 'a')
        >>> list(longest)
        ['three', 'be', 'to', 'a']
        """

        def take(of: Key) -> Function:
            return self._take(of, "order_by")

        return self._in_sequence(
            keyed_rows.sort_stably(
                self.plan,
                sort_keys((key, *more), take, "order_by", descending=descending, nulls=nulls),
            ),
            self._kept_views(),
        )

    # Two relations.

    def join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
    ) -> Relation[*Ts, U]:
        """Pair the rows of two relations that match; weights multiply.

        Without a condition the result is the Cartesian product.

        Parameters
        ----------
        other: the relation to append as one binding. Its rows are tuples if it has several.
        on: callable, bindings and the appended one -> truth value. Or equal fields: `"c"` is a
            field of both sides, `("a", "b")` are `a` of the left and `b` of the right, `["c", "d"]`
            are two fields of both sides.
        left_key, right_key: callables, bindings -> hashable, and appended binding -> hashable; or
            names of fields. Rows match if the keys are equal and `on`, if given, is true. A NaN
            matches nothing.

        State: the rows of both sides; with keys, also those found in `on`, an index per side.
        Cost: O(changed rows + matches) with keys, else O(changed rows x rows of the other side),
        because `on` is called for every pair.
        Source: [dbsp] bilinear operators.

        Raises
        ------
        PlanError: only one key is given, a field does not exist, or the relations belong to two
            databases.

        >>> from reactive import Database
        >>> db = Database()
        >>> people, pets = db.table(tuple, name="people"), db.table(tuple, name="pets")
        >>> owners = people.join(pets, left_key=lambda p: p[0], right_key=lambda pet: pet[1])
        >>> names = owners.select(lambda p, pet: (p[1], pet[0])).materialize()
        >>> people.add((1, "Ann"))
        >>> pets.add(("Rex", 1))
        >>> list(names)
        [('Ann', 'Rex')]
        """
        match = match_of("join", self, other, on, left_key, right_key)
        if match == plan.Match():
            return self._new(plan.Product(self.plan, other.plan), other)
        return self._new(plan.Join(self.plan, other.plan, match), other)

    def asof_join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        at: Callable[[*Ts], Any] | str,
        of: Callable[[U], Any] | str,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
        direction: Literal["backward", "forward", "nearest"] = "backward",
        tolerance: Any = None,
        allow_equal: bool = True,
    ) -> Relation[*Ts, U]:
        """Pair each row with the one row of the other relation that is nearest in time.

        Rows without a partner are left out; `left_asof_join` keeps them.

        Parameters
        ----------
        other: the relation to append as one binding. Its rows are tuples if it has several.
        on: equations between the bindings and the appended one, as a callable or names of fields,
            as for `join`; without it, all rows are candidates.
        at: callable, bindings -> time; or the name of a field.
        of: callable, appended binding -> time; or the name of a field. Times are values that `<`
            compares; a row whose time is None or NaN has no partner.
        left_key, right_key: as for `join`.
        direction: `"backward"`: the last row of `other` before or at the time; `"forward"`: the
            first one at or after it; `"nearest"`: the nearer of both, of two the earlier.
        tolerance: the greatest distance of the two times, such as a timedelta; None: any.
        allow_equal: if False, rows at the very same time are no partners.

        Of several rows with the partner's time it is the least, compared field by field if the
        class has no order.

        State: the rows of both sides in order. Cost: O(log rows) per changed row; a changed row of
        `other` touches the rows between its neighbours in time.

        Raises
        ------
        PlanError: `on` has other conditions than equations, or an argument has no meaning.

        >>> from reactive import Database
        >>> db = Database()
        >>> trades = db.table(tuple[str, int], name="trades")
        >>> quotes = db.table(tuple[str, int, float], name="quotes")
        >>> priced = trades.asof_join(
        ...     quotes, on=lambda t, q: t[0] == q[0], at=lambda t: t[1], of=lambda q: q[1]
        ... ).select(lambda t, q: (t[1], q[2])).materialize()
        >>> trades.add(("A", 25))
        >>> quotes.add_all([("A", 20, 1.5), ("A", 30, 1.7)])
        >>> list(priced)
        [(25, 1.5)]
        >>> quotes.add(("A", 22, 1.6))
        >>> list(priced)
        [(25, 1.6)]
        """
        node = over_time.plan_asof_join(
            *("asof_join", (self, other), on, (left_key, right_key), (at, of)),
            direction=direction,
            tolerance=tolerance,
            allow_equal=allow_equal,
        )
        return self._new(node, other)

    def lookup(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
    ) -> Relation[*Ts, U]:
        """Pair each event of a stream with the rows of a relation as of the event's commit.

        A later change of the relation changes no pair, and no event is kept: this is a price at the
        time of an order, where `join` would be the price of now.

        Parameters
        ----------
        other: the relation to append as one binding. Its rows are tuples if it has several.
        on: equations between the bindings and the appended one, as a callable or names of fields,
            as for `join`; without it, all rows match.
        left_key, right_key: as for `join`.

        If one commit has an event and changes of `other`, these come first.

        State: the rows of `other`, by key. Cost: O(changed rows + matches). See docs/time.md.
        Source: [dbsp] the join of a stream with an integral.

        Raises
        ------
        PlanError: `on` has other conditions than equations; or rows of this relation may be
            removed: it is not made of the events of a stream (`Database.stream`), one by one.

        >>> from reactive import Database
        >>> db = Database()
        >>> prices = db.table(tuple[str, int], name="prices", key=lambda p: p[0])
        >>> sales = db.stream(tuple[str, int], at=lambda s: s[1], lateness=0, name="sales")
        >>> priced = sales.lookup(prices, on=lambda s, p: s[0] == p[0]).materialize()
        >>> prices.add(("tea", 3))
        >>> sales.add(("tea", 1))
        >>> prices.upsert(("tea", 4))
        >>> sales.add(("tea", 2))
        >>> sorted(priced)
        [(('tea', 1), ('tea', 3)), (('tea', 2), ('tea', 4))]
        """
        sides, keys = (self, other), (left_key, right_key)
        return self._new(over_time.plan_lookup("lookup", sides, on, keys), other)

    def left_lookup(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
    ) -> Relation[*Ts, U | None]:
        """Pair each event as `lookup` does, and keep events that match no row, with None.

        Parameters and cost: as for `lookup`.

        >>> from reactive import Database
        >>> db = Database()
        >>> names = db.table(tuple[int, str], name="names")
        >>> visits = db.stream(tuple[int, int], at=lambda v: v[1], lateness=0, name="visits")
        >>> named = visits.left_lookup(names, on=lambda v, n: v[0] == n[0]).materialize()
        >>> visits.add((7, 1))
        >>> names.add((7, "Ann"))
        >>> visits.add((7, 2))
        >>> list(named)
        [((7, 1), None), ((7, 2), (7, 'Ann'))]
        """
        sides, keys = (self, other), (left_key, right_key)
        return self._new(over_time.plan_lookup("left_lookup", sides, on, keys), other)

    def window(
        self, windows: TimeWindows | SessionWindows, at: Callable[[*Ts], Any] | str
    ) -> Relation[*Ts, TimeWindow]:
        """Append a binding: pair each row with the windows of time that it belongs to.

        A window is a tuple `(start, end)`, with these names; `group_by` groups by it. A row whose
        time is None, NaN or infinite belongs to no window, and is left out.

        Parameters
        ----------
        windows: `tumbling(size)`, `hopping(size, every)` or `session(gap, by=key)`, see there.
        at: callable, bindings -> time; or the name of a field. Times are datetimes, dates or
            numbers, as the size of the windows says.

        State: none; of sessions, the rows in order. Cost: O(changed rows and their windows); of
        sessions, O(log rows) and the rows of sessions whose window changes. See docs/time.md.

        Raises
        ------
        TypeError: the time of a row is of another kind than the windows, when the row comes.

        >>> from reactive import Count, Database, tumbling
        >>> clicks = Database().table(tuple[str, int], name="clicks")
        >>> per_ten = clicks.window(tumbling(10), at=lambda c: c[1])
        >>> counts = per_ten.group_by(lambda c, w: (c[0], w.start)).aggregate(Count()).materialize()
        >>> clicks.add_all([("home", 3), ("home", 5), ("home", 12)])
        >>> dict(counts)
        {('home', 0): 2, ('home', 10): 1}
        """
        return self._new(time_windows.plan_windows(self, windows, at))

    def expire_after(self, after: timedelta, at: Callable[[*Ts], Any] | str) -> Relation[*Ts]:
        """Keep the rows that are younger than `after`, by the clock of the database.

        A row leaves in the commit of the tick; a row whose moment is None never does. It is the
        same as `where(lambda row: row.at is None or now() - row.at < after)`. `expire_after=` of
        `Database.table` deletes the rows of the table.

        Parameters
        ----------
        after: the age at which rows leave, a timedelta that is not negative.
        at: callable, bindings -> datetime or None; or the name of a field.

        State: the rows, ordered by their moments. Cost: O(log rows) per changed row, and per row
        that leaves. Source: temporal filters; see docs/time.md.

        >>> from datetime import datetime, timedelta
        >>> from reactive import Database
        >>> db = Database()
        >>> logins = db.table(tuple[str, datetime], name="logins")
        >>> db.clock.advance(datetime(2024, 5, 1, 12))
        >>> recent = logins.expire_after(timedelta(minutes=5), at=lambda row: row[1]).materialize()
        >>> logins.add(("ann", datetime(2024, 5, 1, 12)))
        >>> db.clock.advance(datetime(2024, 5, 1, 12, 4)); len(recent)
        1
        >>> db.clock.advance(datetime(2024, 5, 1, 12, 5)); len(recent)
        0
        """
        return self._new(over_time.plan_expiring(self, after, at))

    def when_closed(self, at: Callable[[*Ts], Any] | str) -> Relation[*Ts]:
        """Return the rows that change no more: each comes once, and is never removed.

        Parameters
        ----------
        at: callable, bindings -> the time of events of a stream, or a window of such times or its
            end; or the name of a field. A row comes when the watermark has passed it.

        State: the rows above the watermark. Cost: O(log rows) for a changed row. See docs/time.md.

        Raises
        ------
        PlanError: changes of the rows do not follow the time of a stream.

        >>> from reactive import Count, Database, tumbling
        >>> clicks = Database().stream(int, at=lambda c: c, lateness=5, name="clicks")
        >>> per_ten = clicks.window(tumbling(10), at=lambda c: c)
        >>> counts = per_ten.group_by(lambda c, w: w).aggregate(Count())
        >>> final = counts.when_closed(lambda w, n: w.end).materialize()
        >>> clicks.add_all([3, 8, 12])
        >>> list(final)
        []
        >>> clicks.add(15)
        >>> list(final)
        [(TimeWindow(start=0, end=10), 2)]
        """
        return self._new(over_time.plan_when_closed(self, at))

    def left_asof_join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        at: Callable[[*Ts], Any] | str,
        of: Callable[[U], Any] | str,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
        direction: Literal["backward", "forward", "nearest"] = "backward",
        tolerance: Any = None,
        allow_equal: bool = True,
    ) -> Relation[*Ts, U | None]:
        """Pair each row as `asof_join` does, and keep rows without a partner, with None.

        Parameters and cost: as for `asof_join`.

        >>> from reactive import Database
        >>> db = Database()
        >>> trades, quotes = db.table(int, name="trades"), db.table(int, name="quotes")
        >>> pairs = trades.left_asof_join(quotes, at=lambda t: t, of=lambda q: q).materialize()
        >>> trades.add_all([5, 25])
        >>> quotes.add(20)
        >>> sorted(pairs)
        [(5, None), (25, 20)]
        """
        node = over_time.plan_asof_join(
            *("left_asof_join", (self, other), on, (left_key, right_key), (at, of)),
            direction=direction,
            tolerance=tolerance,
            allow_equal=allow_equal,
        )
        return self._new(node, other)

    def left_join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
        emit: over_time.Emit = "now",
    ) -> Relation[*Ts, U | None]:
        """Pair matching rows as `join` does, and keep left rows without a match, with None.

        Parameters and cost: as for `join`. With `emit="closed"`, for two streams whose times the
        condition bounds by each other, a left row without a match comes once, when the watermark of
        the other stream says that no match can come, and is never retracted; with `"now"` it comes
        at once, and is retracted when it gets a match. State: as for `join`, and the number of
        matches of each row.

        Raises
        ------
        PlanError: `emit="closed"`, and the condition has no interval of the times of two streams.

        >>> from reactive import Database
        >>> db = Database()
        >>> left, right = db.table(int, name="left"), db.table(int, name="right")
        >>> pairs = left.left_join(right, on=lambda a, b: a == b).materialize()
        >>> left.add_all([1, 2])
        >>> right.add(2)
        >>> sorted(pairs, key=str)
        [(1, None), (2, 2)]
        """
        if over_time.checked_emit("left_join", emit):
            match = match_of("left_join", self, other, on, left_key, right_key)
            return self._new(over_time.plan_closed_left_join(self, other, match), other)
        return self._outer("left", other, on, left_key, right_key)

    def right_join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
    ) -> Relation[*tuple[Any, ...]]:
        """Pair matching rows as `join` does, and keep right rows without a match.

        All bindings of the left are then None. Parameters, state and cost: as for `left_join`.
        """
        return self._outer("right", other, on, left_key, right_key)

    def full_join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
    ) -> Relation[*tuple[Any, ...]]:
        """Pair matching rows as `join` does, and keep the rows of both sides without a match.

        Bindings of the missing side are None. Parameters, state and cost: as for `left_join`.
        """
        return self._outer("full", other, on, left_key, right_key)

    def semi_join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
    ) -> Relation[*Ts]:
        """Keep the rows that have a match in `other` (EXISTS), with their weights.

        Parameters: as for `join`. State: the left rows by key, and a count per key. Cost:
        O(changed rows + rows that gain their first match or lose their last one).

        >>> from reactive import Database
        >>> db = Database()
        >>> words, stop = db.table(str, name="words"), db.table(str, name="stop")
        >>> known = words.semi_join(stop, on=lambda w, s: w == s).materialize()
        >>> words.add_all(["to", "be"])
        >>> stop.add("to")
        >>> list(known)
        ['to']
        """
        match = match_of("semi_join", self, other, on, left_key, right_key)
        return self._new(plan.SemiJoin(self.plan, other.plan, match), other)

    def anti_join(
        self,
        other: Relation[U],
        on: Callable[[*Ts, U], object] | str | tuple[str, ...] | list[str] | None = None,
        *,
        left_key: Callable[[*Ts], Hashable] | str | None = None,
        right_key: Callable[[U], Hashable] | str | None = None,
        emit: over_time.Emit = "now",
    ) -> Relation[*Ts]:
        """Keep the rows that have no match in `other` (NOT EXISTS), with their weights.

        Parameters: as for `join`; `emit` as for `left_join`. State and cost: as for `semi_join`.

        >>> from reactive import Database
        >>> db = Database()
        >>> paid = db.stream(tuple[str, int], at=lambda p: p[1], lateness=0, name="paid")
        >>> sent = db.stream(tuple[str, int], at=lambda s: s[1], lateness=0, name="sent")
        >>> in_time = lambda p, s: p[0] == s[0] and p[1] <= s[1] <= p[1] + 2
        >>> overdue = paid.anti_join(sent, on=in_time, emit="closed").materialize()
        >>> paid.add_all([("ann", 1), ("bob", 2)])
        >>> sent.add_all([("ann", 2)])
        >>> list(overdue)
        []
        >>> sent.add(("eve", 5))
        >>> list(overdue)
        [('bob', 2)]
        """
        match = match_of("anti_join", self, other, on, left_key, right_key)
        if over_time.checked_emit("anti_join", emit):
            return self._new(over_time.plan_closed("anti_join", self, other, match), other)
        return self._new(plan.AntiJoin(self.plan, other.plan, match), other)

    def union(self, other: Relation[*Ts]) -> Relation[*Ts]:
        """Return the rows of either side, each once; also `left | right`.

        Parameters
        ----------
        other: a relation with the same number of bindings.

        State: a weight per row. Cost: O(changed rows). Source: [dbsp] incremental distinct.

        >>> from reactive import Database
        >>> db = Database()
        >>> a, b = db.table(int, name="a"), db.table(int, name="b")
        >>> both = (a | b).materialize()
        >>> a.add_all([1, 2])
        >>> b.add_all([2, 3])
        >>> sorted(both)
        [1, 2, 3]
        """
        return self._new(plan.Union(self.plan, side_of("union", self, other)), other)

    def union_all(self, other: Relation[*Ts]) -> Relation[*Ts]:
        """Return the rows of both sides, with their weights added; also `left + right`.

        State: none. Cost: O(changed rows). Source: [dbsp] linear operators.
        """
        return self._new(plan.UnionAll(self.plan, side_of("union_all", self, other)), other)

    def difference(self, other: Relation[*Ts]) -> Relation[*Ts]:
        """Return the rows that `other` does not have, each once; also `left - right`.

        State: the weight of each row on both sides. Cost: O(changed rows).
        """
        return self._new(plan.Difference(self.plan, side_of("difference", self, other)), other)

    def difference_all(self, other: Relation[*Ts]) -> Relation[*Ts]:
        """Subtract the weights of `other`, and keep positive ones (SQL's EXCEPT ALL).

        State and cost: as `difference`.
        """
        return self._new(
            plan.DifferenceAll(self.plan, side_of("difference_all", self, other)), other
        )

    def intersection(self, other: Relation[*Ts]) -> Relation[*Ts]:
        """Return the rows that both sides have, each once; also `left & right`.

        State and cost: as `difference`.
        """
        return self._new(plan.Intersection(self.plan, side_of("intersection", self, other)), other)

    def intersection_all(self, other: Relation[*Ts]) -> Relation[*Ts]:
        """Return the rows that both sides have, with the smaller weight (SQL's INTERSECT ALL).

        State and cost: as `difference`.
        """
        return self._new(
            plan.IntersectionAll(self.plan, side_of("intersection_all", self, other)), other
        )

    def negate(self) -> Relation[*Ts]:
        """Negate the weight of each row.

        `a.union_all(b.negate())` has the rows of `a` minus those of `b`; a row that `b` has more
        often gets a negative weight. Views do not show such rows, `view.zset()` does. `where` and
        `select` forward negative weights, joins multiply them, `Count` and `Sum` add them. An
        operator that tests for presence, as `distinct` and `semi_join` do, adds all weights of the
        row or group: it is present if the sum is positive.

        State: none. Cost: O(changed rows). Source: [dbsp] negation of Z-sets.

        Raises
        ------
        StratificationError: a recursion depends on its own rows through the negation.
        PlanError: a recursion reads the negated rows; add them up and call `distinct()` first,
            which removes negative weights.

        >>> from reactive import Database
        >>> db = Database()
        >>> ordered, sent = db.table(str, name="ordered"), db.table(str, name="sent")
        >>> open_ = ordered.union_all(sent.negate()).materialize()
        >>> ordered.add_all(["tea", "tea", "rice"])
        >>> sent.add_all(["tea", "salt"])
        >>> sorted(open_), open_.zset()["salt"]
        (['rice', 'tea'], -1)
        """
        return self._new(plan.Negate(self.plan))

    def previous(self) -> Relation[*Ts]:
        """Return the rows as of the previous commit: after commit n, those of commit n - 1.

        The result also changes in a commit that changes nothing in this relation. The first view
        begins with the current rows, because earlier rows are not known; later views of the same
        relation begin with the rows of the first. A failed commit does not count. `view.verify()`,
        called after each commit, compares with rows that it stored at the previous call.

        State: the last change. Cost: O(rows changed in the last commit).
        Source: [dbsp] the delay operator, z^-1.

        Raises
        ------
        PlanError: the relation is inside a recursion, or is the rows of a group.
        OffloadError: a view of it reads rows outside of the process.

        >>> from reactive import Database
        >>> words = Database().table(str, name="words")
        >>> changed = words.difference_all(words.previous()).materialize()
        >>> words.add_all(["to", "be"])
        >>> sorted(changed)
        ['be', 'to']
        >>> words.add("or")
        >>> list(changed)
        ['or']
        """
        return self._new(plan.Previous(self.plan, self._engine.moment_of(self.plan)))

    def apply(
        self, function: Callable[..., Iterable[U]], *others: Relation[*tuple[Any, ...]]
    ) -> Relation[U]:
        """Return the rows that a function computes from whole relations.

        Use it for functions that queries cannot express, such as those of a graph library.

        Parameters
        ----------
        function: callable, a `Bag` of the rows of each relation -> an iterable of hashable rows.
            It is called for empty relations, too. Its result must depend only on the rows, not on
            their order; rows of several bindings are tuples.
        others: more relations to pass to `function`.

        State: the rows of all relations, and the last result. Cost: each commit that changes one of
        the relations calls `function` on all rows; the view emits the difference of the results.
        Source: [dbsp] definition 3.1.

        Raises
        ------
        PlanError: the relation is in a recursion, or the relations belong to two databases.

        >>> from statistics import median
        >>> from reactive import Database
        >>> numbers = Database().table(int)
        >>> view = numbers.apply(lambda rows: [median(rows)] if rows else []).materialize()
        >>> numbers.add_all([3, 1, 7])
        >>> view.value
        3
        """
        for other in others:
            self._check_other("apply", other)
        sources = (self.plan, *(other.plan for other in others))
        return self._new(nesting.plan_apply(function, sources), *others)

    def __or__(self, other: Relation[*Ts]) -> Relation[*Ts]:
        return self.union(other)

    def __and__(self, other: Relation[*Ts]) -> Relation[*Ts]:
        return self.intersection(other)

    def __sub__(self, other: Relation[*Ts]) -> Relation[*Ts]:
        return self.difference(other)

    def __add__(self, other: Relation[*Ts]) -> Relation[*Ts]:
        return self.union_all(other)

    # Groups.

    @overload
    def group_by(self, key: Callable[[*Ts], K]) -> Groups[K, *Ts]: ...
    @overload
    def group_by(self, key: str) -> Groups[Any, *Ts]: ...
    def group_by(self, key: Callable[[*Ts], Any] | str) -> Groups[Any, *Ts]:
        """Group rows by equal keys, for `aggregate` and other methods. NaN keys form one group.

        Parameters
        ----------
        key: callable, bindings -> hashable; or the name of a field.

        State: a row and an accumulator per group. Cost: O(changed rows), plus that of the
        aggregates.

        >>> from reactive import Count, Database
        >>> words = Database().table(str)
        >>> lengths = words.group_by(len).aggregate(Count()).materialize()
        >>> words.add_all(["to", "be", "not"])
        >>> lengths[2], dict(lengths)
        (2, {2: 2, 3: 1})
        """
        name = name_of(key)
        taken_key = self._take(key, "group_by")
        check_callable(taken_key, self.plan)
        return Groups(self, taken_key, name or "key")

    def _aggregate_rows(
        self, aggregates: tuple[Any, ...], named: Mapping[str, Any], as_: Any
    ) -> Relation[Any]:
        return make_aggregates(self, self._new, (None, None), aggregates, named, as_)  # type: ignore[no-any-return]

    # Consuming.

    def materialize(
        self, name: str | None = None, *, on_error: OnError = "raise", kept: bool = False
    ) -> View[*Ts]:
        """Compute the rows now, and return a view that each commit keeps up to date.

        The view is maintained while your program references it, until `close`.

        Parameters
        ----------
        name: a name for messages and `db.views()`.
        on_error: the reaction to a row on which a callable of the query raises an `Exception`.
            `"raise"`: the commit raises it and changes nothing; for a row that exists already,
            `materialize` raises. `"drop"`: the operator omits the row until the row is changed.
            `"null"`: the same, but a callable that may return None returns it for the row.
            `view.errors` lists the rows in the last two cases.
        kept: True to store the state of the view's operators in the database, so that a view of
            this name starts faster after a restart; the state is recomputed if that is estimated to
            be faster. `view.kept_state()` tells which. The database and the tables must be durable,
            and the name unique among kept views. See docs/durable.md.

        Cost: that of evaluating the query once; then the cost of its operators for each commit.

        Raises
        ------
        PlanError: `on_error` is not one of these; or the view cannot be kept.
        Exception: raised by a callable of the query, with `on_error="raise"`.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> numbers = words.select(lambda w: int(w)).materialize(on_error="null")
        >>> words.add_all(["7", "seven"])
        >>> list(numbers)
        [7, None]
        """
        if reads_stream(self.plan):
            self._warn_of_state(caller())
        view: View[*Ts] = self._engine.materialize(
            self._query(), name, caller(), on_error, kept=kept
        )
        return view

    def _subscribe_callback(
        self, callback: Callable[[Delta[Any]], object], *, snapshot: bool, way: Relay | None
    ) -> Subscription[Any]:
        """Subscribe without a view: the relation holds no rows for the subscription."""
        engine, query = self._engine, self.plan
        if reads_stream(self.plan):
            self._warn_of_state(caller())
        return subscribe(engine, query, callback, caller(), snapshot=snapshot, way=way)

    def _subscribed_as(self, name: str, callback: Any, **how: Any) -> NamedSubscription[Any]:
        """Subscribe with a view, whose rows are compared with the delivered ones."""
        view = self if hasattr(self, "_channel") else self.materialize()
        return making.subscribe_sink(view, name, callback, **how)

    def _first_rows(self, n: int) -> list[Any]:
        with self.materialize() as view:
            return view._first_rows(n)

    def read(self, predicate: Callable[[*Ts], object] | None = None, /, **fields: Any) -> list[Any]:
        """Compute the rows once, or those that `where(predicate, **fields)` keeps, without a view.

        What is asked for is pushed down to indexes of tables, through selections, joins, groups and
        set operations.

        Cost: the rows that are found on the way; all rows, where nothing is asked for, or an
        operator reads its whole input. The first question of a kind makes an index.

        >>> from reactive import Count, Database
        >>> words = Database().table(str, name="words")
        >>> words.add_all(["to", "be", "that"])
        >>> words.group_by(len).aggregate(Count()).read(lambda length, n: length == 2)
        [(2, 2)]
        """
        return proving.rows_of(self, predicate, fields)

    def show(self, limit: int = 20) -> None:
        """Compute the rows once, and print the first `limit` of them as a table.

        Copies of a row are one line with their count, except in an ordered relation. Nothing is
        kept; to look more often, make a view, which shows its rows without computing them.

        >>> from reactive import Database
        >>> words = Database().table(str, name="words")
        >>> words.add_all(["to", "be"])
        >>> words.select(len).show()
        query: 2 rows, 1 different
        ┏━━━━━━━━━━┳━━━━━━━━━━━━━┓
        ┃      row ┃       count ┃
        ┡━━━━━━━━━━╇━━━━━━━━━━━━━┩
        │        2 │           2 │
        └──────────┴─────────────┘
        """
        with self.materialize() as view:
            display.show(view, limit, "query")

    def tables(self) -> list[Table[Any]]:
        """Return the tables that the query reads, each once.

        >>> from reactive import Database
        >>> db = Database()
        >>> words, names = db.table(str, name="words"), db.table(str, name="names")
        >>> [table.name for table in words.union(names).union(words).tables()]
        ['words', 'names']
        """
        return [self._engine.table_of(node) for node in tables(self.plan)]

    def explain(self, *, optimized: bool = True, costs: bool = False) -> explaining.Explanation:
        """Return the plan as written and the plan as run, as trees of text.

        Parameters
        ----------
        optimized: also show the optimized plan, the rules that were applied, the variables that
            became constants, and the callables that could not be lifted, with remedies.
        costs: show instead the plan as run, with the cost of one changed row of each input of each
            operator: O(1), O(log n), its matches, its group, rounds, or all pairs; then the degree,
            the number of times that deltas are differentiated until they read no state of the
            database; then the operators that are not efficiently incremental.

        >>> from reactive import Database
        >>> words = Database().table(str, name="words")
        >>> words.distinct().where(str.islower).explain()
        as written
          where islower(row)
            distinct
              table words
        optimized
          distinct
            where islower(row)
              table words
        runs as
          pipeline where islower(row) | distinct
            table words
        rules: push_where_below_distinct
        >>> words.select(len).distinct().explain(costs=True)
        pipeline select len(row) | distinct  [O(1)]
          table words
        degree: none, rows are compared with those before
        """
        queries = self._engine.queries
        if costs:
            return costing.explain_costs(
                queries.optimize(self.plan).plan, queries.running(self._run())
            )
        if not (optimized and queries.phases):
            return explaining.explain(self.plan, explaining.source_text)
        runs, there = queries.running(self._run()).drawing(), self._engine.offloading
        levels = there.levels(self._run())
        best = queries.optimize(self.plan)
        bounded = state_bound.state_bound_of(best.plan) if reads_stream(self.plan) else None
        return reports.report(self.plan, best, runs, there.where, levels=levels, bounded=bounded)

    def _warn_of_state(self, place: Place) -> None:
        """Warn if the state of the query, which reads a stream, grows with the events."""
        state_bound.warn_of_state(self._engine.queries, self.plan, place)

    def _run(self) -> plan.Node:
        """Return the plan that `explain` shows as run."""
        return self.plan

    def __repr__(self) -> str:
        return f"Relation:\n{reports.as_read(self.plan)}"

    def _repr_html_(self) -> str:
        """Return the query as HTML, not its rows, which may take long to compute; see `show`."""
        return display.html_of_text(repr(self))

    def __copy__(self) -> Self:
        """Return the relation itself, because it is immutable."""
        return self

    _pickle_instead = "pickle the rows: relation.materialize().snapshot()"

    def _called(self) -> str:
        return f"the relation {explaining.headline(self.plan)}"

    # Construction.

    def _new(self, node: plan.Node, *others: AnyRelation) -> Relation[Any]:
        return Relation(self._engine, node, views_of(self, *others))

    def _in_sequence(self, node: plan.OrderBy, views: tuple[AnyView, ...]) -> OrderedRelation[Any]:
        return OrderedRelation(self._engine, node, views)

    def _make_groups(self, node: plan.Node) -> GroupedRelation[Any]:
        return GroupedRelation(self._engine, node, self._kept_views())

    def _with_windows(self, node: plan.Node) -> Relation[Any]:
        return Windowed(self._engine, node, views_of(self))

    def _query(self) -> Relation[*Ts]:
        """Return the query that a view of this relation evaluates."""
        return self

    def _kept_views(self) -> tuple[AnyView, ...]:
        """Return the views that a query over this relation must keep alive."""
        return self._views

    def _take(self, function: Key, role: str, more: int = 0) -> Function:
        """Convert a callable, a `Column` or the name of a field to a function of the plan."""
        if isinstance(function, str):
            return field(function, known_shapes(self.plan), role)
        if isinstance(function, Column):
            bindings_of = columns.name_bindings(known_shapes(self.plan))
            return columns.resolve_names(function.expr, bindings_of, role, function.place)
        return self._take_callable(function, role, more)

    def _take_callable(self, function: Callable[..., Any], role: str, more: int = 0) -> Function:
        """Convert a callable of the bindings, and of `more` others, to a function of the plan."""
        return self._convert_callable(function, (*shapes(self.plan), *(None,) * more), role)

    def _taken_of_row(self, function: Callable[..., Any], role: str) -> Function:
        """Convert a callable of the row as one value to a function of the plan."""
        return self._convert_callable(function, (row_shape(self.plan),), role)

    def _convert_callable(self, function: Callable[..., Any], known: Shapes, role: str) -> Function:
        """Convert a callable, which may name relations, to a function of the plan."""

        def lift_named(named: Opaque) -> Function:
            return comprehending.lift_over_relations(self._engine, named, known)

        return take_callable(function, len(known), role, lift_named)

    def _check_other(self, role: str, other: AnyRelation) -> None:
        """Refuse an object that is no relation, or a relation of another database."""
        if not isinstance(other, Relation):
            if isinstance(other, Live):
                other._relation_of(self._engine)  # which raises if it cannot be read
            raise PlanError(
                f"{role} takes a relation, not {type(other).__name__}\n  put the rows in a table"
            )
        if other._has_windows:
            window_bindings.refuse_windows(other.plan)
        if other._engine is not self._engine and not placement.agree(self._engine, other._engine):
            raise PlanError(
                f"{role} of relations of two databases\n"
                "  a query reads the tables of one; subscribe to the other and copy what it needs"
            )

    def _outer(
        self,
        kind: Literal["left", "right", "full"],
        other: AnyRelation,
        on: On | None,
        left_key: Key | None,
        right_key: Key | None,
    ) -> AnyRelation:
        """Return a left, right or full join with another relation."""
        match = match_of(f"{kind}_join", self, other, on, left_key, right_key)
        return self._new(plan.OuterJoin(self.plan, other.plan, match, kind), other)


@boundary
class GroupedRelation(Relation[K, *Ts]):
    """A relation with one row per group; its view is also a mapping.

    >>> from reactive import Count, Database
    >>> words = Database().table(str)
    >>> frequent = words.group_by(len).aggregate(Count()).where(lambda size, n: n > 1)
    >>> view = frequent.materialize()
    >>> words.add_all(["to", "be", "not"])
    >>> dict(view)
    {2: 2}
    """

    def materialize(
        self, name: str | None = None, *, on_error: OnError = "raise", kept: bool = False
    ) -> GroupedView[K, *Ts]:
        """Return a view that is also a mapping from the key of a group to its aggregates.

        See `Relation.materialize`.
        """
        if reads_stream(self.plan):
            self._warn_of_state(caller())
        view: Any = self._engine.materialize(self._query(), name, caller(), on_error, kept=kept)
        return view  # type: ignore[no-any-return]

    def where(
        self, predicate: Callable[[K, *Ts], object] | None = None, /, **fields: Any
    ) -> GroupedRelation[K, *Ts]:
        """Keep the groups that satisfy the predicate (SQL's HAVING); see `Relation.where`."""
        node = where_of(self, predicate, fields)
        return GroupedRelation(self._engine, node, self._kept_views())


@boundary
class OrderedRelation(KeepsOrder[*Ts], Relation[*Ts]):
    """A relation whose view is a sequence.

    `where`, `select`, `extend`, `bind`, `distinct`, `semi_join` and `anti_join` keep the order.
    Other methods lose it: they refuse an ordered relation without a `limit`, whose order would
    have no effect, and take the rows that a `limit` selects as a bag.

    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> sizes = words.order_by(lambda w: w).select(len).materialize()
    >>> words.add_all(["three", "a", "to"])
    >>> list(sizes)
    [1, 5, 2]
    """

    def limit(self, n: int | Parameter[int], offset: int = 0) -> OrderedRelation[*Ts]:
        """Keep the `n` rows after the first `offset` rows, or fewer if there are fewer.

        `n` may be a parameter (`Database.parameter`): a change of it touches the rows that enter or
        leave.

        State: all rows, sorted. Cost: O(changed rows x log rows).

        Raises
        ------
        PlanError: `n` or `offset` is not an int from 0 on, or the relation has a limit already.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> longest = words.order_by(len, descending=True).limit(1).materialize()
        >>> words.add_all(["three", "a", "to"])
        >>> longest[0]
        'three'
        """
        limit: Any = n
        for count in (n, offset) if not is_parameter(n) else (offset,):
            if type(count) is not int or count < 0:
                raise PlanError(f"limit takes counts of rows, from 0 on, not {count!r}")
        if is_parameter(n):
            limit = plan_of_count(limit, self._engine)
        node = self.plan
        assert isinstance(node, plan.OrderBy)
        if node.limit is not None or node.offset:
            raise PlanError("limit of a relation that is limited already\n  order_by() it again")
        return self._in_sequence(replace(node, limit=limit, offset=offset), self._kept_views())

    def previous(self) -> OrderedRelation[*Ts]:
        """Return the rows as of the previous commit, in their order and within their limit.

        See `Relation.previous`. State: all rows of the previous commit, sorted.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> before = words.order_by(len).previous().materialize()
        >>> words.add_all(["three", "to"])
        >>> words.add("a")
        >>> list(before)
        ['to', 'three']
        """
        node = self.plan
        assert isinstance(node, plan.OrderBy)
        was = plan.Previous(node.input, self._engine.moment_of(node.input))
        return OrderedRelation(self._engine, replace(node, input=was), self._kept_views())

    def materialize(
        self, name: str | None = None, *, on_error: OnError = "raise", kept: bool = False
    ) -> OrderedView[*Ts]:
        """Return a view that is also a sequence; see `Relation.materialize`."""
        if reads_stream(self.plan):
            self._warn_of_state(caller())
        view: Any = self._engine.materialize(self._query(), name, caller(), on_error, kept=kept)
        return view  # type: ignore[no-any-return]


@boundary
class Windowed(Relation[*Ts]):
    """A relation with a window among the bindings of its rows."""

    _has_windows = True

    def _new(self, node: plan.Node, *others: Any) -> Relation[Any]:
        views = views_of(self, *others)
        made = window_bindings.resolve(node)
        if made is None:
            return Windowed(self._engine, node, views)
        return Relation(self._engine, made, views)

    def _make_groups(self, node: plan.Node) -> GroupedRelation[Any]:
        return GroupedRelation(self._engine, window_bindings.resolved(node), self._kept_views())

    def _in_sequence(self, node: plan.OrderBy, views: tuple[AnyView, ...]) -> NoReturn:
        window_bindings.refuse_windows(node)

    def _query(self) -> NoReturn:
        window_bindings.refuse_windows(self.plan)

    def _subscribe_callback(self, callback: Any, **how: Any) -> NoReturn:
        window_bindings.refuse_windows(self.plan)


AnyRelation: TypeAlias = Relation[*tuple[Any, ...]]
"""A relation of any bindings."""


def views_of(*relations: AnyRelation) -> tuple[AnyView, ...]:
    """Return the views that a query over some relations must keep alive, each once."""
    first, *rest = [relation._kept_views() for relation in relations]
    if not any(rest):
        return first
    return tuple(dict.fromkeys([*first, *(view for views in rest for view in views)]))


def _with_views_of(
    sources: Iterable[AnyRelation], views: tuple[AnyView, ...]
) -> tuple[AnyView, ...]:
    """Return `views` and the views that `sources` keep alive, each once."""
    more = (view for source in sources for view in source._kept_views())
    return tuple(dict.fromkeys([*views, *more]))


hint(Relation, OF_RELATIONS)
