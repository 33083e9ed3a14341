"""What a subscriber is told: the change of a relation from one commit to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic

from typing_extensions import TypeVar

from reactive.engine.collections import nested_edits, weighted
from reactive.engine.collections.edits import Edit
from reactive.engine.collections.zset import Pair, Row, repeat
from reactive.engine.dataflow.moves import Moves, by_key, standing
from reactive.engine.dataflow.plain_data import named, plain
from reactive.engine.runtime.foreign_names import OF_DELTAS
from reactive.engine.runtime.name_hints import hint

T = TypeVar("T", default=Any)
Parts = tuple[tuple[tuple[Any, Any], ...], Sequence[Pair]]
"""The updated rows, and the pairs of all others."""


class Delta(Generic[T]):
    """Rows that came and went, net, in one commit. Immutable.

    `version` is the commit's number. `is_snapshot` marks the one that holds all rows of when
    the subscription began. A row that was replaced is in `updated` and neither in `added` nor in
    `removed`: of a table by `Table.update` or `upsert`, and of a view by what that came to through
    `where`, `select`, `select_many`, `unnest`, `union_all` and inner joins; of groups and of what
    else has a key, also where another row has come with the same key. `items()` has all of it.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> subscription = words.subscribe(print)
    >>> words.add_all(["to", "be", "to"])
    Delta(version=1, added=('to', 'to', 'be'))
    """

    __slots__ = (
        *("_by_path", "_columns", "_edits", "_key", "_pairs", "_parts", "is_snapshot"),
        "version",
    )

    number: int | None = None
    """The number of a delta that a subscription with a name is told, from 0 on; of others None."""

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
        """The edits of rows with others inside, once somebody has asked."""
        self._pairs = pairs
        self._key = key
        self._parts: Parts | Moves | None = moves
        """How it comes apart, once somebody has asked; until then what finds the moves in it."""

    def items(self) -> tuple[tuple[T, int], ...]:
        """Each row that changed with its signed weight, each row once."""
        return tuple(self._pairs)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The steps that turn the old rows into the new ones, of an ordered relation, of a `nest`
        and of rows that have a `Bag`; the smallest there are: a row inside of others comes and goes
        by its path.

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
            found = nested_edits.edits_by(self._key, self._pairs, self._edits)
            self._by_path = tuple(found)
        return self._by_path

    @property
    def zset(self) -> weighted.ZSet[T]:
        """The same as a Z-set: those of several commits add up.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> subscription = words.subscribe(lambda delta: print(delta.zset))
        >>> words.add_all(["to", "be", "to"])
        ZSet({'to': 2, 'be': 1})
        """
        return weighted.zset_of(self._pairs)

    @property
    def added(self) -> tuple[T, ...]:
        """Rows that came, each as often as it did."""
        return tuple(repeat(pair for pair in self._split[1] if pair[1] > 0))

    @property
    def removed(self) -> tuple[T, ...]:
        """Rows that went, each as often as it did."""
        return tuple(repeat((row, -weight) for row, weight in self._split[1] if weight < 0))

    @property
    def updated(self) -> tuple[tuple[T, T], ...]:
        """Pairs of an old row and the new one in its place."""
        return self._split[0]

    @property
    def _has_moves(self) -> bool:
        """Whether some of it may be known to be updates, beside what keys tell."""
        return self._parts is not None

    @property
    def _split(self) -> Parts:
        """The updated rows, and the pairs that are not part of an update."""
        parts = self._parts
        if not isinstance(parts, tuple):
            parts = self._parts = self._updates(parts)
        return parts

    def _updates(self, find: Moves | None) -> Parts:
        moves, rest = standing([] if find is None else find(), self._pairs)
        if self._key is not None:
            more, rest = by_key(self._key, rest)
            moves += more
        return tuple(moves), rest

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data: rows with names, or of bindings with names (`bind`, `extend`,
        SQL), as dictionaries; others as lists.

        >>> from reactive import Count, Database
        >>> words = Database().table(str)
        >>> totals = words.group_by(len).aggregate(words=Count())
        >>> subscription = totals.subscribe(lambda delta: print(delta.to_dict()["added"]))
        >>> words.add("to")
        [{'key': 2, 'words': 1}]
        """
        names: Sequence[str] | None = getattr(self, "_columns", None)
        parts: dict[str, Any] = {"version": self.version, "is_snapshot": self.is_snapshot}
        parts["added"] = [named(row, names) for row in self.added]
        parts["removed"] = [named(row, names) for row in self.removed]
        parts["updated"] = [
            {"old": named(old, names), "new": named(new, names)} for old, new in self.updated
        ]
        if self.edits:
            parts["edits"] = [_plain_edit(edit, names) for edit in self.edits]
        return parts

    def _with_columns(self, columns: Sequence[str] | None) -> Delta[T]:
        """Note what the bindings of the rows are called, if they have names; return itself."""
        if columns is not None:
            self._columns = columns
        return self

    def to_arrow(self) -> Any:
        """The same as a `pyarrow.Table`: the columns of the rows, and `weight`, how often each
        comes, or goes if it is negative; `weight_` where a row has one. Columns are those that the
        rows name; of plain tuples their places, of other values `value`.

        Raises
        ------
        PlanError: pyarrow is not installed; or a value is nothing that Arrow has.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> subscription = words.subscribe(lambda delta: print(delta.to_arrow().to_pylist()))
        >>> words.add("to")
        [{'value': 'to', 'weight': 1}]
        """
        from reactive.engine.runtime import left_out, needs

        needs.check("delta.to_arrow")
        return left_out.optional("borders.frames.arrow_delta").table_of(self._pairs)

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
        """It pickles without the key of its rows, which may be a lambda."""
        pairs, edits = list(self._pairs), self.edits
        columns = getattr(self, "_columns", None)
        return _unpickled, (self.version, pairs, edits, self.is_snapshot, self._split, columns)

    def __repr__(self) -> str:
        parts = [f"version={self.version}"]
        parts += ["is_snapshot=True"] * self.is_snapshot
        for name in ("added", "removed", "updated"):
            if rows := getattr(self, name):
                parts.append(f"{name}={rows!r}")
        return f"Delta({', '.join(parts)})"


class NumberedDelta(Delta[T]):
    """One that comes again under the same number where it is not known to have been taken."""

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
    row = plain(edit.row) if edit.path else named(edit.row, names)
    parts = {"position": edit.position, "row": row, "weight": edit.weight}
    return parts | ({"path": plain(edit.path)} if edit.path else {})


def _unpickled(
    version: int,
    pairs: Sequence[Pair],
    edits: Sequence[Edit],
    is_snapshot: bool,
    parts: Any,
    columns: Sequence[str] | None = None,
) -> Delta[Any]:
    made: Delta[Any] = Delta(version, pairs, None, edits, is_snapshot=is_snapshot)
    made._parts = parts
    return made._with_columns(columns)


def _unpickled_numbered(
    number: int,
    version: int,
    pairs: Sequence[Pair],
    edits: Any,
    is_snapshot: bool,
    parts: Any,
    columns: Sequence[str] | None = None,
) -> Delta[Any]:
    made: Delta[Any] = NumberedDelta(number, version, pairs, None)
    made._edits, made._parts = tuple(edits), parts
    return made._with_columns(columns)


hint(Delta, OF_DELTAS)
