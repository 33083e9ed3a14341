"""Deltas that subscribers receive: their moves, their channels, and their rows as plain data.

Moves: pairs of a deleted row and the row that replaced it.

    a -> b, b -> c  =  a -> c          updates of a commit are composed
    a -> b, b -> a  =  nothing

A delta lists the inserted and deleted rows; moves pair some of them. They never change the delta: a
move is valid only while its old row is among the deleted rows and its new row among the inserted
rows, as many times as moves use them. All other rows count as plainly inserted or deleted.

Law:    sum of the valid moves, (old, -1) and (new, +1), and of the rest  =  the delta.
Cost:   O(moves), and O(delta) where there are any.
Source: [i3ql] section 3, the event `updated`.

Rows as plain data, as for JSON: records become dictionaries, tuples lists.

    Row(town='Bonn', orders=2)        {"town": "Bonn", "orders": 2}
    (Order(id=1), ("Ann", 3))         [{"id": 1}, ["Ann", 3]]
    FrozenList, FrozenDict, FrozenSet list, dictionary, list
    Row(row=Town("Bonn"), people=...) {"name": "Bonn", "people": [...]}, as nest makes them
    Row(a=Order(1), b=Line(1), ...)   {"a": {"id": 1}, "b": {"id": 1}, ...}, as over a join

Other values stay as they are: the caller that writes JSON decides how to write a date.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

from optimizer import plan
from optimizer.callables.source import Place
from optimizer.expressions.knowledge import Foldable
from optimizer.expressions.text import Nesting
from optimizer.kinds import texts
from optimizer.plans.properties import find_groups, key_of_group, naming, table_key, written_names
from optimizer.rewriting.columns import declared_fields
from reactive.engine.collections import inner_changes, nested_edits, weight_tree, whole_rows
from reactive.engine.collections.order import Edit
from reactive.engine.collections.zset import Pair, Pairs, Row
from reactive.engine.runtime.closeable import hint
from reactive.engine.runtime.foreign_names import OF_DELTAS

# The delta of a relation from one commit to the next.

T = TypeVar("T", default=Any)
Parts = tuple[tuple[tuple[Any, Any], ...], Sequence[Pair]]
"""The updated rows, and the pairs of all other rows."""


class Delta(Generic[T]):
    """The net change of a relation in one commit: inserted, deleted and updated rows. Immutable.

    `version` is the commit's number. `is_snapshot` marks the first delta of a subscription, which
    holds all current rows. A replaced row is in `updated`, and neither in `added` nor in `removed`:
    of a table, by `Table.update` or `upsert`; of a view, if the update passes through `where`,
    `select`, `select_many`, `unnest`, `union_all` and inner joins; of groups and other keyed
    relations, also if another row was inserted with the key of a deleted one. `items()` lists all
    changes.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> subscription = words.subscribe(print)
    >>> words.add_all(["to", "be", "to"])
    Delta(version=1, added=('to', 'be', 'to'))
    """

    __slots__ = (
        *("_by_path", "_columns", "_edits", "_key", "_pairs", "_parts", "_places", "_tick"),
        *("is_snapshot", "version"),
    )

    number: int | None = None
    """The number, from 0 on, of a delta of a named subscription; None for other deltas."""

    _columns: Sequence[str]  # missing if the bindings have no names
    _places: tuple[Edit, ...]  # missing if these are read from the pairs
    _tick: datetime  # missing if the commit did not advance the clock

    def __init__(
        self,
        version: int,
        pairs: Sequence[Pair],
        key: Callable[[Row], Any] | None = None,
        edits: Sequence[Edit] = (),
        *,
        is_snapshot: bool = False,
        moves: Moves | None = None,
    ) -> None:
        self.version = version
        self.is_snapshot = is_snapshot
        self._edits: tuple[Edit, ...] = tuple(edits) if edits else ()
        self._by_path: tuple[Edit, ...] | None = None
        """The edits inside nested rows by path, computed on the first read of `edits`."""
        self._pairs = pairs
        self._key = key
        self._parts: Parts | Moves | None = moves
        """The updated rows and the rest, once computed; before that, the function that finds moves.
        """

    @property
    def tick(self) -> datetime | None:
        """The moment to which the commit advanced the clock; None if it did not.

        Rows that such a commit removed have left, or were deleted, because of the time, unless its
        transaction removed them itself.

        >>> from datetime import datetime, timedelta
        >>> from reactive import Database
        >>> db = Database()
        >>> minutes = timedelta(minutes=5)
        >>> codes = db.table(tuple[str, datetime], expire_after=minutes, at=lambda c: c[1])
        >>> db.clock.advance(datetime(2024, 5, 1, 12, 0))
        >>> codes.add(("x81", datetime(2024, 5, 1, 12, 0)))
        >>> with codes.subscribe(lambda delta: print(len(delta.removed), delta.tick)):
        ...     db.clock.advance(datetime(2024, 5, 1, 12, 5))
        1 2024-05-01 12:05:00
        """
        return getattr(self, "_tick", None)

    def items(self) -> tuple[tuple[T, int], ...]:
        """Return each changed row once, with its signed weight."""
        return tuple(self._pairs)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The steps that turn the old rows into the new ones; empty for a plain relation.

        Ordered relations, a `nest` and rows that have a `Bag` have edits: the shortest sequence
        there is. An inner row is inserted and deleted by its path.

        >>> from reactive import Database
        >>> db = Database()
        >>> words, letters = db.table(str, name="words"), db.table(str, name="letters")
        >>> begin = letters.nest(words=lambda letter: words.where(lambda w: w[0] == letter))
        >>> letters.add("t")
        >>> with begin.subscribe(lambda delta: print(delta.edits)):
        ...     words.add("to")
        (Edit(path=('t', 'words'), position=None, row='to', weight=1),)
        """
        if self._by_path is None:
            found = nested_edits.keyed_edits(self._key, self._pairs, self._edits)
            self._by_path = tuple(found)
        return self._by_path

    @property
    def places(self) -> tuple[Edit, ...]:
        """The rows that came and went, by their places in a view of `rank`, `row_number` and such.

        A view whose only window columns are places computes these when it is read. A row that is
        inserted at the front is one edit here, and changes all numbers in `added` and `removed`.
        Each edit inserts or deletes the row at `position`, from 0, of the partition whose key, a
        tuple, is `path`: deletions from the end, with rows as they were before the commit, then
        insertions in order, with rows as they are after it. The numbers of other rows follow from
        their places. A delta is told, too, if rows moved and all look as before. In a delta merged
        of several, each row is as its own commit told it. Empty for other relations, for snapshots,
        and for subscriptions with a name, which store rows.

        Cost: O(edits), and O(rows / 500), with which places are counted.

        >>> from reactive import Database
        >>> points = Database().table(int, name="points")
        >>> numbered = points.over(order=lambda n: n).select(lambda n, w: (n, w.row_number()))
        >>> points.add_all([5, 7, 9])
        >>> with numbered.subscribe(lambda delta: print(len(delta.added), delta.places)):
        ...     points.add(3)
        4 (Edit(position=0, row=(3, 1), weight=1),)
        """
        if hasattr(self, "_places"):
            return self._places
        find: Callable[[], tuple[Edit, ...] | None] | None = getattr(self._pairs, "places", None)
        return (find() or ()) if find is not None else ()

    @property
    def zset(self) -> weight_tree.ZSet[T]:
        """The changes as a Z-set; Z-sets of several commits can be added.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> subscription = words.subscribe(lambda delta: print(delta.zset))
        >>> words.add_all(["to", "be", "to"])
        ZSet({'to': 2, 'be': 1})
        """
        return weight_tree.zset_of(self._pairs)

    @property
    def added(self) -> tuple[T, ...]:
        """The inserted rows, repeated by weight."""
        pairs = self._pairs
        rows = None if pairs.__class__ is list else whole_rows.uniform_rows(pairs, 1)
        if rows is None:
            rows = [row for row, weight in self._unmoved for _ in range(weight)]
        return tuple(rows)

    @property
    def removed(self) -> tuple[T, ...]:
        """The deleted rows, repeated by weight."""
        pairs = self._pairs
        rows = None if pairs.__class__ is list else whole_rows.uniform_rows(pairs, -1)
        if rows is None:
            rows = [row for row, weight in self._unmoved for _ in range(-weight)]
        return tuple(rows)

    @property
    def updated(self) -> tuple[tuple[T, T], ...]:
        """Pairs of a replaced row and its new row."""
        return self._split[0]

    @property
    def _has_moves(self) -> bool:
        """True if some changes may be updates, apart from changes paired by key."""
        return self._parts is not None

    @property
    def _unmoved(self) -> Sequence[Pair]:
        """The pairs that are not part of an update."""
        if self._parts is None and self._key is None:
            return self._pairs
        return self._split[1]

    @property
    def _split(self) -> Parts:
        """The updated rows, and the pairs that are not part of an update."""
        parts = self._parts
        if not isinstance(parts, tuple):
            parts = self._parts = self._updates(parts)
        return parts

    def _updates(self, find: Moves | None) -> Parts:
        """Return the valid moves of the delta, and the pairs that no move covers."""
        pairs = self._pairs
        if pairs.__class__ is not list and whole_rows.uniform_rows(pairs, 1) is not None:
            return (), pairs  # no row is replaced by another
        moves, rest = split_valid_moves([] if find is None else find(), self._pairs)
        if self._key is not None:
            more, rest = pair_by_key(self._key, rest)
            moves += more
        return tuple(moves), rest

    def to_dict(self) -> dict[str, Any]:
        """Return the delta as plain data.

        Rows with names, and bindings with names (`bind`, `extend`, SQL), become dictionaries;
        others become lists.

        >>> from reactive import Count, Database
        >>> words = Database().table(str)
        >>> totals = words.group_by(len).aggregate(words=Count())
        >>> subscription = totals.subscribe(lambda delta: print(delta.to_dict()["added"]))
        >>> words.add("to")
        [{'key': 2, 'words': 1}]
        """
        names: Sequence[str] | None = getattr(self, "_columns", None)
        parts: dict[str, Any] = {"version": self.version, "is_snapshot": self.is_snapshot}
        parts["added"] = [name_columns(row, names) for row in self.added]
        parts["removed"] = [name_columns(row, names) for row in self.removed]
        parts["updated"] = [
            {"old": name_columns(old, names), "new": name_columns(new, names)}
            for old, new in self.updated
        ]
        if self.edits:
            parts["edits"] = [_plain_edit(edit, names) for edit in self.edits]
        return parts

    def to_arrow(self) -> Any:
        """Return the delta as a `pyarrow.Table`.

        The columns are the columns of the rows, and `weight`, which is positive for inserted rows
        and negative for deleted rows (`weight_` if the rows have a column `weight`). Columns are
        named by the rows; plain tuples give their positions, other values `value`.

        Raises
        ------
        PlanError: pyarrow is not installed, or Arrow has no type for a value.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> subscription = words.subscribe(lambda delta: print(delta.to_arrow().to_pylist()))
        >>> words.add("to")
        [{'value': 'to', 'weight': 1}]
        """
        from reactive.engine.runtime import left_out, needs

        needs.check_library("delta.to_arrow")
        return left_out.optional("borders.frames.arrow_columns").weighted_table(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[T, int]]:
        return iter(self._pairs)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Delta)
            and (self.version, self.is_snapshot) == (other.version, other.is_snapshot)
            and dict(self._pairs) == dict(other._pairs)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        """Pickle without the key function, which may be a lambda."""
        pairs, edits, (moves, rest) = list(self._pairs), self.edits, self._split
        columns, parts = getattr(self, "_columns", None), (moves, list(rest))
        given = (self.version, pairs, edits, self.is_snapshot, parts, columns, self.tick)
        return _unpickled, (*given, self.places)

    def __repr__(self) -> str:
        parts = [f"version={self.version}"]
        parts += ["is_snapshot=True"] * self.is_snapshot
        for name in ("added", "removed", "updated"):
            if rows := getattr(self, name):
                parts.append(f"{name}={rows!r}")
        return f"Delta({', '.join(parts)})"


class NumberedDelta(Delta[T]):
    """A delta with a number, delivered again under that number until its receipt is certain."""

    __slots__ = ("number",)

    def __init__(
        self, number: int, version: int, pairs: Sequence[Pair], key: Callable[[Row], Any] | None
    ) -> None:
        super().__init__(version, pairs, key, is_snapshot=number == 0)
        self.number: int = number

    def __reduce__(self) -> Any:
        return _unpickled_numbered, (self.number, *super().__reduce__()[1])

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"(number={self.number}, ", 1)


def _plain_edit(edit: Edit, names: Sequence[str] | None) -> dict[str, Any]:
    row = plain_data(edit.row) if edit.path else name_columns(edit.row, names)
    parts = {"position": edit.position, "row": row, "weight": edit.weight}
    return parts | ({"path": plain_data(edit.path)} if edit.path else {})


def _unpickled(
    version: int,
    pairs: Sequence[Pair],
    edits: Sequence[Edit],
    is_snapshot: bool,
    parts: Any,
    columns: Sequence[str] | None = None,
    tick: datetime | None = None,
    places: tuple[Edit, ...] = (),
) -> Delta[Any]:
    """Return a delta from its pickled parts."""
    made: Delta[Any] = Delta(version, pairs, None, edits, is_snapshot=is_snapshot)
    made._parts = parts
    return with_columns(with_tick(with_places(made, places), tick), columns)


def _unpickled_numbered(
    number: int,
    version: int,
    pairs: Sequence[Pair],
    edits: Any,
    is_snapshot: bool,
    parts: Any,
    columns: Sequence[str] | None = None,
    tick: datetime | None = None,
    places: tuple[Edit, ...] = (),
) -> Delta[Any]:
    """Return a numbered delta from its pickled parts."""
    made: Delta[Any] = NumberedDelta(number, version, pairs, None)
    made._edits, made._parts = tuple(edits), parts
    return with_columns(with_tick(made, tick), columns)


hint(Delta, OF_DELTAS)


def with_columns(delta: Delta[T], columns: Sequence[str] | None) -> Delta[T]:
    """Set the names of the bindings of a delta's rows, if any; return the delta itself."""
    if columns is not None:
        delta._columns = columns
    return delta


def with_places(delta: Delta[T], places: Sequence[Edit]) -> Delta[T]:
    """Set the edits of the places of a delta's rows, if any; return the delta itself."""
    if places:
        delta._places = tuple(places)
    return delta


def with_tick(delta: Delta[T], tick: datetime | None) -> Delta[T]:
    """Set the moment to which the commit of a delta advanced the clock, if it did."""
    if tick is not None:
        delta._tick = tick
    return delta


# A channel: the subscribers of a leaf, and the name of the leaf in messages.


class Subscriber(Protocol):
    """A receiver of a channel's changes: the part of a subscription that the graph uses.

    The names with an underscore are hidden from users, who hold the subscription.
    """

    _callback: Callable[[Any], object]

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...

    def _heard(self, result: object, /) -> None:
        """Take the result of the callback."""

    def _record_failure(self, error: BaseException, /) -> None:
        """Take the exception of the callback."""

    def _end_endless(self, times: int, /) -> None:
        """End, because the callback has changed its own rows `times` times in a row."""

    def _end_slow(self, waiting: int, /) -> None:
        """End, because `waiting` deltas are too many."""


class Channel:
    """The subscribers of a leaf, referenced weakly: a subscription without other references ends.

    `subscribers` is replaced, never mutated, so that a delta keeps the subscribers of its commit.
    """

    __slots__ = (
        *("__weakref__", "base", "columns", "key", "lineage", "name", "place", "plan", "reason"),
        *("remedy", "subscribers"),
    )

    def __init__(self, node: plan.Node, name: str | None, place: Place) -> None:
        self.name = name
        self.place = place
        self.plan = node
        self.base = node
        """The plan that is compiled in place of `plan` (`compiler/lineage.py`)."""
        self.key = _key_of_rows(node)
        self.columns = written_names(node)
        """The names of the bindings of the rows, if any."""
        self.lineage: Lineage | None = None
        """Follows updates of tables to this leaf, while there are subscribers."""
        self.reason: str | None = None
        """Why the channel was closed, if not by its user."""
        self.remedy = "materialize its .relation again"
        """The remedy named in errors after the channel is closed."""
        self.subscribers: tuple[weakref.ref[Any], ...] = ()

    def __str__(self) -> str:
        return f"the view made at {self.place}" if self.name is None else f"view {self.name!r}"

    def add(self, subscription: Subscriber) -> weakref.ref[Any]:
        reference = weakref.ref(subscription, self._remove)
        self.subscribers = (*self.subscribers, reference)
        return reference

    def discard(self, subscription: Subscriber) -> None:
        self.subscribers = tuple(r for r in self.subscribers if r() not in (None, subscription))
        self._look_after()

    def close(self) -> None:
        """End all subscriptions."""
        for reference in self.subscribers:
            subscription = reference()
            if subscription is not None:
                subscription.close()

    def snapshot(self, version: int, rows: Pairs, order: Iterable[Row] | None) -> Delta[Any]:
        """Return all current rows as a delta; `order` lists them in order, if they have one."""
        edits = [Edit(position, row, 1) for position, row in enumerate(order or ())]
        found: Delta[Any] = Delta(version, rows, self.key, edits, is_snapshot=True)
        return with_columns(found, self.columns)

    def _remove(self, reference: weakref.ref[Any]) -> None:
        self.subscribers = tuple(r for r in self.subscribers if r is not reference)
        self._look_after()

    def _look_after(self) -> None:
        """Stop following updates if no subscriber is left."""
        lineage = self.lineage
        if lineage is not None and not self.subscribers:
            self.lineage = None
            lineage.end()


def _key_of_rows(node: plan.Node) -> Callable[[Row], Any] | None:
    """Return the function from a row to its key, which pairs updates; None without a key."""
    nesting = naming(node)
    if isinstance(nesting, Nesting) and isinstance(node, plan.Select | plan.OrderBy):
        return nested_edits.NestedKey(nesting, is_ordered=isinstance(node, plan.OrderBy))
    table = table_key(node)
    if table is not None and table.key is not None:
        return table.key.function
    aggregate = find_groups(node)
    if aggregate is None:
        return None
    return key_of_group(node) if aggregate.key is not None else _single_key


def _single_key(row: Row) -> Any:
    return ()


Move = tuple[Row, Row]
"""A deleted row, and the row that replaced it."""
Moves = Callable[[], Sequence[Move]]
"""Finds moves on demand."""


class MovesBySource(dict[Any, Moves]):
    """The moves of a commit, by source node.

    tick: the moment to which the commit advances the clock, if it does.
    """

    tick: datetime | None = None


class Lineage(Protocol):
    """Follows moves of tables to the output of a leaf."""

    def find_moves(self, moved: MovesBySource) -> Moves | None:
        """Return the function that finds the resulting moves of the leaf; None without moves."""
        ...

    def renew(self) -> None:
        """Adapt to a leaf that reads another node."""
        ...

    def end(self) -> None:
        """Stop following moves."""
        ...


class MoveComposer:
    """Composed moves: each continues the move that led to its old row.

    >>> chains = MoveComposer([("a", "b"), ("x", "y"), ("b", "c"), ("y", "x")])
    >>> chains.moves()
    [('a', 'c')]
    """

    __slots__ = ("_olds",)

    def __init__(self, moves: Iterable[Move] = ()) -> None:
        self._olds: dict[Row, list[Row]] = {}  # by the new row
        for old, new in moves:
            self.move(old, new)

    def __bool__(self) -> bool:
        return bool(self._olds)

    def move(self, old: Row, new: Row) -> None:
        """Add a move."""
        start = self._pop_old(old, old)
        if start != new:
            self._olds.setdefault(new, []).append(start)

    def remove(self, row: Row) -> None:
        """Delete a row without replacement; the move that led to it is dropped."""
        self._pop_old(row, None)

    def moves(self) -> list[Move]:
        return [(old, new) for new, olds in self._olds.items() for old in olds]

    def _pop_old(self, row: Row, default: Row) -> Row:
        """Remove and return the last old row that became `row`; `default` if there is none."""
        olds = self._olds.get(row)
        if olds is None:
            return default
        old = olds.pop()
        if not olds:
            del self._olds[row]
        return old


def split_valid_moves(
    moves: Sequence[Move], pairs: Sequence[Pair]
) -> tuple[list[Move], Sequence[Pair]]:
    """Return the valid moves of a consolidated delta, and the remaining pairs.

    >>> split_valid_moves([("a", "b"), ("x", "y")], [("a", -2), ("b", 1), ("y", 1)])
    ([('a', 'b')], [('a', -1), ('y', 1)])
    """
    found: list[Move] = []
    if not moves:
        return found, pairs
    left, held = dict(pairs), {row: row for row, _ in pairs}
    for old, new in moves:
        if left.get(old, 0) < 0 < left.get(new, 0):
            left[old] += 1
            left[new] -= 1
            found.append((held[old], held[new]))
    return found, [pair for pair in left.items() if pair[1]] if found else pairs


def pair_by_key(
    key: Callable[[Row], Hashable], pairs: Sequence[Pair]
) -> tuple[Sequence[Move], Sequence[Pair]]:
    """Pair deleted and inserted rows of equal key as moves; return the moves and the other pairs.

    >>> pair_by_key(len, [("to", -1), ("be", 1), ("not", 1)])
    ([('to', 'be')], [('not', 1)])
    """
    if len(pairs) < 2:
        return (), pairs
    old = {key(row): row for row, weight in pairs if weight == -1}
    if not old:
        return (), pairs
    new = {key(row): row for row, weight in pairs if weight == 1}
    both = old.keys() & new.keys()
    if not both:
        return (), pairs
    moves = [(row, new[k]) for k, row in old.items() if k in both]
    gone = {id(row) for move in moves for row in move}
    return moves, [pair for pair in pairs if id(pair[0]) not in gone]


JSON: tuple[type, ...] = (bool, int, float, str, list, dict, type(None))
"""The classes that JSON can write."""
NONE = object()


def to_python(value: Any) -> Any:
    """Return a row, or a part of one, as plain data, as `view.to_python()` does for each row.

    Encoders can call it for values that they do not know, such as the list in a row:
    `json.dumps(row, default=to_python)`, `orjson.dumps(row, default=to_python)`,
    `msgspec.json.encode(row, enc_hook=to_python)`, and in pydantic
    `TypeAdapter(...).dump_json(row, fallback=to_python)`.

    Raises
    ------
    TypeError: JSON cannot write the value, and it is no date, time, duration, Decimal, UUID, bytes
        or member of an Enum, which are written as files of JSON are read.

    Cost: O(values).

    >>> import json
    >>> from reactive import Database, to_python, tracked
    >>> @tracked
    ... class Order:
    ...     id: int
    ...     lines: list[str]
    ...     tags: dict[str, int]
    >>> orders = Database().table(Order, key="id")
    >>> orders.add(Order(1, ["tea"], {"a": 1}))
    >>> json.dumps(orders[1].lines, default=to_python)
    '["tea"]'
    >>> json.dumps([orders[1]], default=to_python)
    '[{"id": 1, "lines": ["tea"], "tags": {"a": 1}}]'
    """
    found = plain_data(value)
    if found is value and not isinstance(value, JSON):
        found = texts.json_of(value)
        if found is not value:
            return found
        raise TypeError(
            f"JSON has no word for the {type(value).__name__} {value!r:.100}\n"
            "  say what to write: json.dumps(view.to_python(), default=str)"
        )
    return found


def plain_data(value: Any) -> Any:
    """Return a row, or a part of one, without the classes of records.

    >>> from typing import NamedTuple
    >>> Point = NamedTuple("Point", [("x", int), ("y", int)])
    >>> plain_data(Point(1, 2)), plain_data((Point(1, 2), "a"))
    ({'x': 1, 'y': 2}, [{'x': 1, 'y': 2}, 'a'])
    """
    if inner_changes.is_nested(value):
        return _with_inside(value)
    names = declared_fields(type(value))
    if names:
        parts = {name: getattr(value, name, NONE) for name in names}
        return {name: plain_data(part) for name, part in parts.items() if part is not NONE}
    if isinstance(value, Mapping) and isinstance(value, Foldable):
        return {key: plain_data(part) for key, part in value.items()}
    if isinstance(value, tuple | frozenset | Foldable):
        parts_of: Any = value
        return [plain_data(part) for part in parts_of]
    return value


def name_columns(row: Any, names: Sequence[str] | None) -> Any:
    """Return a row as plain data: a dictionary by column names, if there are any.

    >>> [name_columns((1, "a"), names) for names in (["id", "name"], None)]
    [{'id': 1, 'name': 'a'}, [1, 'a']]
    """
    if names is None or inner_changes.is_nested(row):
        return plain_data(row)
    values = row if isinstance(row, tuple) and len(row) == len(names) else (row,)
    return {name: plain_data(value) for name, value in zip(names, values, strict=True)}


def _with_inside(row: Any) -> dict[str, Any]:
    """Return a nested row as a dictionary: its own fields, and beside them its inner rows.

    A row of several bindings has one entry per binding, since bindings may share field names.
    """
    parts = dict(zip(row._fields, map(plain_data, row), strict=True))
    own = parts[row._fields[0]]
    if row.roots > 1 or not isinstance(own, dict):
        return parts
    del parts[row._fields[0]]
    return own | parts
