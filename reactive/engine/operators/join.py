"""Joins of two inputs, by key or of all pairs, with the keys, sums and look-ups that they use.

Equi-join: pair the rows of two inputs that agree on a key.

Join is bilinear, so its delta needs two products, not a recomputation:

    d(L join R)  =  dL join (R + dR)  +  L join dR

            dL --- IndexBy --+
                             Join --- d(L join R)
            dR --- IndexBy --+

Both indexes have already applied their deltas: `L` before the commit is the current `L` minus `dL`.
A further predicate filters the pairs. If both inputs change, one commit can insert and delete the
same pair; the join consolidates its output, so that no later operator sees it.

If the optimizer extracted the keys from a predicate, `on` is the residual predicate. While an index
has error rows, the join evaluates the `whole` predicate on all candidates (below).

State:  none of its own; one index per input, shared with other joins on the same key.
Cost:   O(|dL| + |dR| + matches) per commit, independent of |L| and |R|.
Source: [dbsp] proposition 3.4 and section 4, bilinear operators; [i3ql] join.

Sums by: integrate an input as sums by key, for a join that needs nothing else of its rows.

    step:   state  :=  state + d        d: key -> (weight, sum of each value), the change

It replaces `IndexBy` below a join: it steps first and emits its change by key. A side that computes
a part of the group key keeps sums by key and that part.

A callable that raises here might not be called at all by the plan without factorization, which
evaluates rows with a partner only. So any error becomes a `BailOut`, and the database returns to
that plan.

State:  a tuple of sums per key; with `by_group`, a dictionary of such tuples per key.
Cost:   O(|dL|).
Source: [slender] recursive IVM; F-IVM, views of relations grouped by their join keys.

Join key of a row: as written in the query, or extracted from a predicate.

A written key raises what its callable raises. Extracted tests and keys raise nothing: a row for
which one fails is an error row, and the join evaluates the whole predicate on its pairs.

At: the rows of an index whose key is a value, one of several values, or in a range.

Rows without a key, or with a key that is not comparable with the range, are filtered by the
condition itself: it may accept them, or raise.

State:  none; the index is shared with look-ups of other keys and with joins.
Cost:   O(|dL|); initially O(rows found + rows without a comparable key), whatever the index size.

Error rows: rows whose join key could not be computed, because a callable raised.

A predicate can read a key that only some rows have. The plain plan evaluates the predicate on every
pair, and raises only where its earlier parts are true. So an error row is paired with every row of
the other side, filtered rows included, and every row with the error rows of the other side.

    key            candidates of the other side
    a value        the rows of that key, and its error rows
    ERROR_KEY      all rows
    FILTERED       its error rows
    NO_MATCH       its error rows

State:  none; the indexes store error rows.
Cost:   O(rows of the other side) for an error row, as without an index; O(error rows) for others.

Product: all pairs of rows of two inputs; weights multiply.

    d(L x R)  =  dL x (R + dR)  +  L x dR

A product is a join on a key that all rows share: `Join` over indexes without a key.

State:  both inputs.
Cost:   O(|dL| * |R| + |L| * |dR|).
Source: [dbsp] bilinear operators; [i3ql] cross product.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, ClassVar, Protocol

from optimizer import plan
from optimizer.expr import Call, constant
from optimizer.plans.field_values import AnyOf, Between
from optimizer.plans.side_conditions import Ranges, SideTerm, Span
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.exact import RunningSum, add_sums, copy_sum, scale_sum, state_bytes
from reactive.engine.collections.index import (
    ERROR_KEY,
    FILTERED,
    NO_MATCH,
    Form,
    Key,
    KeyedPair,
    Mark,
    Range,
    match_key,
)
from reactive.engine.collections.zset import Pair, Row, consolidate, family_of, interval, point
from reactive.engine.operators.aggregate import SUMS, Inputs, State
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.operator import BailOut, DetachedState, InLine
from reactive.engine.runtime.interrupts import reraise_asynchronous


class Join:
    """Pair the rows of two indexes; `pair(left, right)` makes the result row.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> left, right = IndexBy(len), IndexBy(len)
    >>> join = Join(left, right, lambda a, b: (a, b))
    >>> join.step(left.step([("anna", 1)]), right.step([("otto", 2), ("eva", 1)]))
    [(('anna', 'otto'), 2)]
    """

    __slots__ = ("_left", "_on", "_pair", "_right", "_whole", "touched")

    def __init__(
        self,
        left: IndexBy,
        right: IndexBy,
        pair: Callable[[Row, Row], Row],
        on: Callable[[Row], object] | None = None,
        whole: Callable[[Row], object] | None = None,
    ) -> None:
        self._left = left
        self._right = right
        self._pair = pair
        self._on = on
        self._whole = whole
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        """Return the delta: dL with the current right, dR with the left before the commit."""
        if self._left.poisoned or self._right.poisoned:
            return self._careful(left, right)
        out = self._left_part(left, self._right.index)
        if right:
            index = self._left.index
            out += self._right_part(right, index.earlier(left) if left else index)
        self.touched += len(left) + len(right) + len(out)
        if left and right:
            out = consolidate(out)
        return self._fitting(out, self._on)

    def contents(self) -> Iterable[Pair]:
        """Return all pairs that match; the whole predicate decides while there are error rows."""
        items = list(self._left.index.items())
        if not (self._left.poisoned or self._right.poisoned):
            return self._fitting(self._left_part(items, self._right.index), self._on)
        kept = [(row, -weight) for _, (row, weight) in items]
        left_out = consolidate([*self._left.all_rows(), *kept])
        items += [(FILTERED, pair) for pair in left_out]
        return self._fitting(self._left_part(items, KeyCandidates(self._right)), self._whole)

    def _careful(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        """Compute the delta while there are error rows, now or before the commit."""
        out = self._left_part(left, KeyCandidates(self._right))
        out += self._right_part(right, KeyCandidates(self._left, left))
        self.touched += len(left) + len(right) + len(out)
        return self._fitting(consolidate(out), self._whole)

    def _fitting(self, pairs: list[Pair], on: Callable[[Row], object] | None) -> list[Pair]:
        """Return the pairs that pass the predicate."""
        if on is None:
            return pairs
        out = []
        for pair in pairs:
            if on(pair[0]):
                out.append(pair)
        return out

    def _left_part(self, delta: Iterable[KeyedPair], others: Any) -> list[Pair]:
        """Pair left rows with their partners in `others`; weights are multiplied."""
        pair, lookup = self._pair, others.pairs
        return [
            (pair(row, other), weight * times)
            for key, (row, weight) in delta
            for other, times in lookup(key)
        ]

    def _right_part(self, delta: Iterable[KeyedPair], others: Any) -> list[Pair]:
        """Pair right rows with their partners in `others`; weights are multiplied."""
        pair, lookup = self._pair, others.pairs
        return [
            (pair(other, row), weight * times)
            for key, (row, weight) in delta
            for other, times in lookup(key)
        ]


Sums = tuple[RunningSum, ...]
"""The number of rows, then the sum of each value."""
Change = tuple[Any, Sums]
"""A key, or a key and a part of the group, and the change of its sums."""


class JoinSides(Protocol):
    """The sides of a join of sums."""

    is_filled: bool

    def look_ups(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]: ...


class OldGenerationDict(dict[Any, Any]):
    """Sums by key that stay in the oldest generation of the garbage collector.

    The collector untracks a plain dictionary whose values are tuples of numbers. Inserting a new
    tuple tracks the dictionary again, in the youngest generation: the next collection then visits
    all of it, which takes as long as thousands of changes.
    """

    __slots__ = ()


class SumsBy:
    """Maintain sums by key; `loop` computes their change from the deltas.

    Parameters
    ----------
    width: the number of summed values.
    by_group: True if keys are pairs of a key and a part of the group.
    one: the loop for a single row, if there is one.
    at_once: computes the result of `loop` for some deltas, and returns None for others.
    sides: the sides of the input, if that is a join; they return the look-ups for its loop.
    """

    __slots__ = (
        *("_at_once", "_is_whole", "_last", "_look_ups", "_loop", "_merge", "_one", "_owner"),
        "_sides",
        *("by_group", "source", "step", "sums", "touched"),
    )

    def __init__(
        self,
        loop: Callable[..., dict[Any, Sums]],
        width: int,
        owner: plan.Node,
        source: str,
        *,
        by_group: bool,
        sides: JoinSides | None = None,
        one: Callable[..., Sequence[Change]] | None = None,
        at_once: Callable[[Sequence[Any]], dict[Any, Sums] | None] | None = None,
    ) -> None:
        self._loop = loop
        self._sides = sides
        self._look_ups = None if sides is None else sides.look_ups
        self._owner = owner
        self._one = one
        self._at_once = at_once
        self._merge = _merging(width, by_group)
        self._is_whole = True
        self._last: Sequence[Change] = ()
        self.by_group = by_group
        self.source = source
        self.sums: dict[Any, Any] = OldGenerationDict()
        self.step: Callable[..., Sequence[Change]] = (
            self._step if sides is None else self._step_pairs
        )
        self.touched = 0

    change_cost: ClassVar[float] = 2
    emits_changes: ClassVar[bool] = False
    has_plain_keys: ClassVar[bool] = True
    is_made: ClassVar[bool] = True
    is_empty: ClassVar[bool] = False

    def held_keys(self) -> Collection[Key]:
        """Return the join keys that have sums, as they are at any later time."""
        return self.sums

    def _step(self, delta: Sequence[Any]) -> Sequence[Change]:
        """Apply a delta of rows; return the changes of sums. Any exception becomes a `BailOut`."""
        self._last = ()
        self.touched += len(delta)
        try:
            if len(delta) == 1 and self._one is not None:
                return self._take_one(delta)
            changed = None if self._at_once is None else self._at_once(delta)
            if changed is None:
                changed = self._loop(delta)
            out = [change for change in changed.items() if change[1][0] or any(change[1])]
            self._take(out)
        except Exception as error:
            raise BailOut(self._owner, self) from error
        return out

    def in_line(self) -> InLine | None:
        """Return the code for a delta of one row; None if there is no loop for it."""
        if self._one is None:
            return None
        return InLine(_IN_LINE, _FINALIZE, {"own": self, "one": self._one, "sums": self.sums})

    def bail_out(self, error: Exception) -> None:
        """Raise `BailOut`: the loop for a single row raised, and changed nothing."""
        self._is_whole = True
        raise BailOut(self._owner, self) from error

    def _take_one(self, delta: Sequence[Any]) -> Sequence[Change]:
        """Add one row by its own loop; if that raises, the sums have not changed."""
        self._begin()
        assert self._one is not None
        try:
            out = self._one(self.sums, delta)
        except Exception:  # nothing has changed
            self._is_whole = True
            raise
        self._last, self._is_whole = out, True
        return out

    def _step_pairs(self, *deltas: Sequence[Any]) -> Sequence[Change]:
        """Apply the deltas of a join; return the changes of sums. Exceptions become `BailOut`."""
        self._last = ()
        self.touched += sum(map(len, deltas))
        try:
            assert self._look_ups is not None
            changed = self._loop(*self._look_ups(*deltas))
            out = [change for change in changed.items() if change[1][0] or any(change[1])]
            self._take(out)
        except Exception as error:
            raise BailOut(self._owner, self) from error
        return out

    def undo(self) -> None:
        if self._is_whole:  # otherwise the state is undefined, and the next step raises
            self._take(negate_changes(self._last))
        self._last = ()

    def commit(self) -> None:
        self._last = ()

    def _take(self, changes: Sequence[Change]) -> None:
        """Merge changes into the sums, and store them for `undo`."""
        self._begin()
        self._last = changes
        self._merge(self.sums, changes)
        self._is_whole = True

    def _begin(self) -> None:
        """Mark the state as undefined, until the change is applied."""
        if not self._is_whole:
            raise RuntimeError("interrupted while it took changes in")
        self._is_whole = False

    def contents(self) -> Sequence[Change]:
        if not self.by_group:
            return list(self.sums.items())
        return [((key, group), s) for key, of in self.sums.items() for group, s in of.items()]

    def state(self) -> State | None:
        """Return the sums by key; None while a sum is an object of another class."""
        changes = self.contents()
        keys, sums = (list(map(itemgetter(place), changes)) for place in (0, 1))
        is_plain = {*map(type, chain.from_iterable(sums))} <= SUMS
        has_unmatched = NO_MATCH in self.sums  # rows of an outer join
        return {"keys": keys, "sums": sums} if is_plain and not has_unmatched else None

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load the sums that another operator returned from `state`; the sides hold their rows."""
        self._merge(self.sums, list(zip(state["keys"], state["sums"], strict=True)))
        if self._sides is not None:
            self._sides.is_filled = True

    @property
    def held_rows(self) -> int:
        """The number of keys that have sums."""
        return len(self.sums)

    @property
    def is_detachable(self) -> bool:
        return self._is_whole

    def detach_state(self) -> DetachedState:
        """Empty the sums, in the same dictionary, to which loops refer."""
        kept, sides = dict(self.sums), self._sides
        is_filled = sides is not None and sides.is_filled

        def restore() -> None:
            self.sums.clear()
            self.sums.update(kept)
            self._last, self._is_whole = (), True
            if sides is not None:
                sides.is_filled = is_filled

        self.sums.clear()
        if sides is not None:
            sides.is_filled = False
        return DetachedState(restore)

    def find_before(
        self, changes: Sequence[Change], asked: Iterable[Any]
    ) -> Callable[[Any, Any], Any]:
        """Return a look-up of the keys `asked` in the sums as they were before `changes`."""
        keys = set(asked)
        if self.by_group:
            changes = [change for change in changes if change[0][0] in keys]
            touched = {key for (key, _), _ in changes}
        else:
            changes = [change for change in changes if change[0] in keys]
            touched = {key for key, _ in changes}
        if not changes:
            return self.sums.get
        had: dict[Any, Any] = {}
        for key in touched & self.sums.keys():
            now = self.sums[key]
            had[key] = dict(now) if self.by_group else now  # merging makes new tuples
        self._merge(had, negate_changes(changes))
        sums = self.sums
        return lambda key, default: (had if key in touched else sums).get(key, default)

    def negate(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes that undo `changes`."""
        return negate_changes(changes)

    def footprint(self) -> tuple[int, int]:
        """Return the number of stored sums, by group if there are groups, and their bytes."""
        size = sys.getsizeof(self.sums)
        rows = 0
        for kept in self.sums.values():
            of: Iterable[Sums] = kept.values() if self.by_group else (kept,)
            size += sys.getsizeof(kept) if self.by_group else 0
            for sums in of:
                rows += 1
                size += sys.getsizeof(sums) + sum(map(state_bytes, sums[1:]))
        return rows, size


_IN_LINE = """\
if len({given}) == 1 and own_{n}._is_whole:
    own_{n}.touched += 1
    own_{n}._is_whole = False
    try: {out} = one_{n}(sums_{n}, {given})
    except Exception as error: own_{n}.bail_out(error)
    own_{n}._last, own_{n}._is_whole = {out}, True
else: {out} = step_{n}({given})"""
_FINALIZE = "own_{n}._last = ()"


def negate_changes(changes: Sequence[Change]) -> list[Change]:
    """Return the changes that undo `changes`."""
    return [(key, tuple([scale_sum(part, -1) for part in sums])) for key, sums in changes]


@lru_cache(maxsize=64)
def _merging(width: int, by_group: bool) -> Callable[[dict[Any, Any], Sequence[Change]], None]:
    """Build the function that adds changes to sums of `width` values and deletes zero sums."""
    mine, more = (["count", *(f"{n}{i}" for i in range(width))] for n in ("sum", "add"))
    more[0] = "weight"
    lines = ["def merge(sums, changes):", "    get = sums.get"]
    if by_group:
        lines += [
            "    for (key, group), new in changes:",
            "        groups = get(key)",
            "        if groups is None: groups = sums[key] = {}",
            "        old = groups.get(group)",
        ]
    else:
        lines += ["    for key, new in changes:", "        old = get(key)"]
    slot, of = ("groups[group]", "groups") if by_group else ("sums[key]", "sums")
    lines += [
        "        if old is None:",
        f"            {slot} = new",
        "            continue",
        f"        {', '.join(mine)}, = old",
        f"        {', '.join(more)}, = new",
        "        count += weight",
    ]
    for a, b in zip(mine[1:], more[1:], strict=True):
        lines.append(f"        if {a}.__class__ is int and {b}.__class__ is int: {a} += {b}")
        lines.append(f"        else: {a} = plus(copied({a}), {b})")
    key = "group" if by_group else "key"
    lines += [
        f"        if {' or '.join(mine)}: {slot} = ({', '.join(mine)},)",
        "        else:",
        f"            del {of}[{key}]",
    ]
    lines += ["            if not groups: del sums[key]"] * by_group
    values = BoundValues()
    values.by_name |= {"plus": add_sums, "copied": copy_sum}
    return build("merge", "\n".join([*lines, ""]), values)


Evaluate = Callable[[Row], Any]


def written_key(key: Evaluate) -> Callable[[Row], Key]:
    """Return the key function as written; it returns `NO_MATCH` for a key unequal to itself.

    >>> written_key(len)("anna"), written_key(float)("nan")
    (4, NO_MATCH)
    """

    def of(row: Row) -> Key:
        return match_key(key(row))

    return of


def found_key(
    written: Evaluate | None, steps: Sequence[tuple[bool, Evaluate]]
) -> Callable[[Row], Key]:
    """Build a key from `steps` (test, or part of the key if True), after the written key.

    >>> key = found_key(None, [(True, len), (False, str.islower)])
    >>> key("anna"), key("Anna"), key(7)
    (4, FILTERED, ERROR_KEY)
    """
    parts = (written is not None) + sum(is_key for is_key, _ in steps)

    def of(row: Row) -> Key:
        own = () if written is None else match_key(written(row))
        try:
            found = _evaluate_steps(row, steps)
        except Exception as error:  # the error shows when the whole predicate is evaluated
            reraise_asynchronous(error)
            return ERROR_KEY
        if found is FILTERED or own is NO_MATCH:
            return found if found is FILTERED else own
        key = found if written is None else [own, *found]
        if written is None and any(part != part for part in found):
            return NO_MATCH
        return key[0] if parts == 1 else tuple(key)

    return of


def range_key(span: Span) -> SideTerm:
    """Build the key of an index of points or intervals.

    It raises if a value has no place in an order; the row is then an error row.
    """
    one, *ends = span.ends
    called = constant(interval if ends else point)
    call = Call(called, (one.body, *(end.body for end in ends)))
    return SideTerm(one.with_body(call), is_key=True)


def side_ranges(ranges: Ranges) -> tuple[Range, Range]:
    """Return the condition for the keys of the left index, and of the right one."""
    left, right, (starts, ends) = ranges.left, ranges.right, ranges.closed
    return (
        Range(_form(left), _seen_from(left, right), (starts, ends)),
        Range(_form(right), _seen_from(right, left), (ends, starts)),
    )


def _form(span: Span) -> Form:
    return "interval" if len(span.ends) == 2 else "point"


def _seen_from(own: Span, other: Span) -> Form:
    """Return the form of the other side's range, as compared with one end of the own range."""
    if own.low is None:
        return "low"
    return "high" if own.high is None else _form(other)


def of_classes(value: Any, classes: Collection[type]) -> None:
    """Raise if the class of `value` is not in `classes`: its row has no key."""
    if type(value) not in classes:
        raise TypeError(f"{type(value).__name__} is not what is compared here")


def _evaluate_steps(row: Row, steps: Sequence[tuple[bool, Evaluate]]) -> Any:
    """Return the parts of a key, or `FILTERED` if a test fails; unhashable parts raise."""
    found = []
    for is_key, evaluate in steps:
        value = evaluate(row)
        if is_key:
            hash(value)
            found.append(value)
        elif not value:
            return FILTERED
    return found


Ask = Callable[[Sequence[Pair]], Sequence[Pair]]
"""Returns the pairs whose rows pass the condition."""


class IndexLookup:
    """Emit the rows of an index that have one key, one of several keys, or a key in a range.

    `node.py` delivers candidate rows only; `ask` filters rows without a comparable key.

    >>> by_length = IndexBy(len)
    >>> four = IndexLookup(by_length, 4, list)
    >>> four.step(by_length.step([("anna", 1)])), list(four.contents())
    ([('anna', 1)], [('anna', 1)])
    """

    __slots__ = ("_ask", "_family", "_index", "_wanted", "touched")

    def __init__(self, index: IndexBy, wanted: Any, ask: Ask) -> None:
        self._index = index
        self._wanted = wanted
        self._ask = ask
        self._family: Any = None
        if isinstance(wanted, Between):
            self._family = family_of(wanted.high if wanted.low is None else wanted.low)
        self.touched = 0

    def step(self, delta: Sequence[KeyedPair]) -> list[Pair]:
        """Return the candidates that match; `ask` decides those without a comparable key."""
        self.touched += len(delta)
        if len(delta) == 1:  # as below, for one row
            ((key, pair),) = delta
            return list(self._ask([pair])) if self._is_to_ask(key) else [pair]
        to_ask = [pair for key, pair in delta if self._is_to_ask(key)]
        if not to_ask:
            return [pair for _, pair in delta]
        found = [pair for key, pair in delta if not self._is_to_ask(key)]
        return [*found, *self._ask(to_ask)]

    def contents(self) -> Iterable[Pair]:
        """Return all rows of the index that match; `ask` decides rows without a comparable key."""
        index, wanted = self._index.index, self._wanted
        if isinstance(wanted, Between):
            found, to_ask = index.between(wanted.low, wanted.high, wanted.closed)
        else:
            keys = wanted.values if isinstance(wanted, AnyOf) else (wanted,)
            found = [pair for key in keys for pair in index.pairs(key)]
            to_ask = index.pairs(ERROR_KEY)
        return [*found, *self._ask(to_ask)] if to_ask else found

    def _is_to_ask(self, key: Any) -> bool:
        """Return True if `ask` must decide a row: its key is a mark, or of another family."""
        if key.__class__ is Mark:
            return True
        return self._family is not None and family_of(key) != self._family


class KeyCandidates:
    """Candidates for a key on one side of a join.

    `since` is a delta that the side has already applied; the candidates are those before it.
    """

    def __init__(self, side: IndexBy, since: Sequence[KeyedPair] = ()) -> None:
        self._side = side
        self._since = since
        self._index: Any = side.index.earlier(since) if since else side.index

    def pairs(self, key: Key) -> list[Pair]:
        """Return the candidate rows with their weights."""
        if key is ERROR_KEY:
            return list(self._side.all_rows(self._since))
        index = self._index
        if key is FILTERED or key is NO_MATCH:
            return list(index.pairs(ERROR_KEY))
        return [*index.pairs(key), *index.pairs(ERROR_KEY)]


def make_product(left: IndexBy, right: IndexBy, pair: Callable[[Row, Row], Row]) -> Join:
    """Return the operator over two indexes made by `IndexBy(None)`.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> left, right = IndexBy(None), IndexBy(None)
    >>> both = make_product(left, right, lambda a, b: (a, b))
    >>> both.step(left.step([(1, 1)]), right.step([(2, 1), (3, 1)]))
    [((1, 2), 1), ((1, 3), 1)]
    """
    return Join(left, right, pair)
