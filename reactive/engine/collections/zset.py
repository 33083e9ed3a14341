"""Z-sets: rows with signed weights, as lists of pairs (deltas) and as dictionaries (state).

A delta is a list of `(row, weight)` pairs; a row may occur in it several times, and only the sum
counts. Linear operators forward such lists. `consolidate` adds weights and drops rows that cancel;
only state and subscribers need that, since it hashes every row.

Equality is Python's, with one addition: all NaNs are the same NaN. Python compares elements of
containers by identity first, so `(nan,)` equals `(nan,)` only if it is the same NaN object; a row
that is computed twice, once to insert it and once to delete it, would not be found again.
`canonical` replaces every NaN in a row by one object. A zoned datetime in an hour that a clock
change repeats, where Python's `==` ignores `fold`, gets a fixed offset (`instants.py`).

Source: [dbsp] section 2, Z-sets.

Families: sets of values that have a common order.

    number     1, 2.5, True, Decimal("1.5"), Fraction(1, 2)
    text       "a"
    tuples     (1, "a"), of the same families part by part
    ...

For two values of a family, `<` does not raise, runs no user code, and is total; equal values have
equal hashes. Nothing is known of values of two families: the expression itself must compare them.

NaN, None, and instances of user classes or of subclasses of the above have no family, since such a
class may define any comparison. The family of an aware time in a zone with transitions includes the
zone, since times of two such zones have no common order.

Declared fields: the classes of values that the annotations of a row's class promise.

Annotations are trusted, as checked by a type checker.
"""

from __future__ import annotations

import copy
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from itertools import repeat as repeat_value
from typing import Any, Final, overload
from weakref import WeakValueDictionary

from optimizer.expressions.knowledge import ComparedLike
from optimizer.kinds.fields import by_recent_class, compared_names
from optimizer.kinds.instants import instant
from optimizer.kinds.kind import Choice, Either, Items, Kind, Places, class_of, hints_of, kind_of
from reactive.engine.runtime.interrupts import reraise_asynchronous

Row = Any
Pair = tuple[Row, int]
Pairs = Sequence[Pair]

NAN = math.nan
DECIMAL_NAN = Decimal("NaN")
NESTED = 200
"""Most nested tuples in a row: far fewer than Python can compare, hash or print."""
EXACT: frozenset[type] = frozenset({int, str, bytes, bool, type(None)})
"""Classes whose equal instances are interchangeable."""


class UniformDelta(Sequence[Pair]):
    """A delta of rows that all have the same weight: it stores rows, not pairs.

    >>> UniformDelta(["a", "b"], 1)[1], list(UniformDelta(["a", "b"], -1))
    (('b', 1), [('a', -1), ('b', -1)])
    """

    __slots__ = ("differ", "fields", "rows", "weight")

    def __init__(self, rows: Sequence[Row], weight: int) -> None:
        self.rows = rows
        self.weight = weight
        self.fields: Mapping[Any, type] | None = None
        """Classes of fields, by name or place, that are the same in all rows; None if unknown, or
        if reading a field may run code."""
        self.differ = False
        """True if no object is known to occur twice."""

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> UniformDelta: ...
    def __getitem__(self, place: int | slice) -> Pair | UniformDelta:
        if isinstance(place, slice):
            return UniformDelta(self.rows[place], self.weight)
        return (self.rows[place], self.weight)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Pair]:
        return zip(self.rows, repeat_value(self.weight))


def consolidate(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the net delta: each row once, and no weight of zero. It may be `pairs` itself.

    >>> consolidate([("a", 1), ("b", 1), ("a", 1), ("b", -1)])
    [('a', 2)]
    """
    if type(pairs) is list and _is_consolidated(pairs):
        return pairs
    if type(pairs) is UniformDelta:
        return [(row, times * pairs.weight) for row, times in Counter(pairs.rows).items()]
    weights: dict[Row, int] = {}
    for row, weight in pairs:
        weights[row] = weights.get(row, 0) + weight
    return [pair for pair in weights.items() if pair[1]]


def net_by_identity(pairs: Sequence[Pair]) -> list[Pair]:
    """Consolidate rows that are identical if they are equal, without hashing a row.

    >>> word = "a"
    >>> net_by_identity([(word, 1), ("b", 1), (word, 1), ("b", -1)])
    [('a', 2)]
    """
    if len({id(row) for row, _ in pairs}) == len(pairs):
        return list(pairs)
    net: dict[int, Pair] = {}
    for row, weight in pairs:
        net[id(row)] = (row, net.get(id(row), (row, 0))[1] + weight)
    return [pair for pair in net.values() if pair[1]]


def by_group(delta: Pairs, key: Callable[[Row], Any]) -> dict[Any, list[Pair]]:
    """Group the net changes of a delta by a key of their rows.

    >>> by_group([("to", 1), ("be", 1), ("by", 2), ("to", -1)], lambda word: word[0])
    {'b': [('be', 1), ('by', 2)]}
    """
    groups: dict[Any, list[Pair]] = {}
    for row, weight in consolidate(delta):
        groups.setdefault(canonical(key(row)), []).append((row, weight))
    return groups


def _is_consolidated(pairs: list[Pair]) -> bool:
    """Return True if a short list is consolidated, without hashing; most commits are short."""
    if len(pairs) < 2:
        return True
    if len(pairs) > 2:
        return False
    one, other = pairs[0][0], pairs[1][0]
    try:
        return not (one is other or one == other)
    except Exception as error:  # for rows of equal hash, a loop over the pairs raises again
        return not have_one_hash(one, other, error)


def have_one_hash(one: Row, other: Row, error: Exception) -> bool:
    """Return True if rows have one hash, and their `==` has raised: a dictionary calls it again.

    Raises
    ------
    error: if it came from another thread, and not from the rows.
    """
    reraise_asynchronous(error)
    return hash(one) == hash(other)


def is_mixed(pairs: Pairs) -> bool:
    """Return True if rows are inserted and deleted, so that some may cancel."""
    if len(pairs) < 2 or pairs.__class__ is UniformDelta:
        return False
    return len({weight > 0 for _, weight in pairs}) == 2


def negate(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the delta with all weights negated."""
    return [(row, -weight) for row, weight in pairs]


def repeat_by_weight(pairs: Iterable[Pair]) -> Iterator[Row]:
    """Yield each row, repeated by its weight."""
    for row, weight in pairs:
        for _ in range(weight):
            yield row


def repeat_rows(weights: dict[Row, int], size: int) -> list[Row]:
    """Return the rows of a dictionary, each repeated by its weight; `size` is their number."""
    if size == len(weights):  # repeated rows have no negative weights
        return list(weights)
    return list(chain.from_iterable(map(repeat_value, weights, weights.values())))


def integrate(weights: dict[Row, int], pairs: Pairs) -> None:
    """Add a delta to a dictionary; all of it, or nothing if a row raises when compared."""
    if not weights and len(pairs) > 1 and fill_empty(weights, pairs):
        return
    done = 0
    try:
        for row, weight in pairs:  # as `_add_weight`, without the call
            total = weights.get(row, 0) + weight
            if total:
                weights[row] = total
            else:
                del weights[row]
            done += 1
    except BaseException:
        for row, weight in pairs[:done]:
            _add_weight(weights, row, -weight)
        raise


def fill_empty(weights: dict[Row, int], pairs: Pairs) -> bool:
    """Add a delta to an empty dictionary, if its rows differ and have positive weights.

    Otherwise return False, and leave the dictionary empty.
    """
    if type(pairs) is UniformDelta:
        if pairs.weight > 0:
            found = dict.fromkeys(pairs.rows, pairs.weight)
            if len(found) == len(pairs):
                weights.update(found)  # without hashing again
                return True
        return False
    try:
        weights.update(pairs)
    except BaseException:
        weights.clear()
        raise
    if len(weights) == len(pairs) and min(weights.values(), default=1) > 0:
        return True
    weights.clear()
    return False


def _add_weight(weights: dict[Row, int], row: Row, weight: int) -> None:
    """Add to the weight of a row; a weight of zero deletes it."""
    total = weights.get(row, 0) + weight
    if total:
        weights[row] = total
    else:
        del weights[row]


def canonical(value: Any) -> Any:
    """Return the value, or a copy in which every NaN is one object, and zoned datetimes that differ
    only in `fold` differ.

    Looks into tuples, frozen sets and records (`members.compared`), the parts of rows and keys.
    >>> canonical((1, float("nan"))) == canonical((1, float("nan")))
    True
    """
    kind: Any = type(value)
    if kind in EXACT:
        return value
    if kind is float:
        return value if value == value else NAN
    if kind is tuple:
        return _canonical_items(value, NESTED)
    if kind is frozenset:
        return _canonical_items(value, NESTED)
    names = nan_fields(kind)
    if names:
        return canonical_record(value, names)
    if isinstance(value, float):
        return value if value == value else NAN
    if isinstance(value, datetime):
        return value if value.tzinfo is None else instant(value)
    return DECIMAL_NAN if isinstance(value, Decimal) and value.is_nan() else value


def is_nan(value: Any) -> bool:
    """Return True if a canonical value is NaN."""
    return value is NAN or value is DECIMAL_NAN


HOLDERS = (tuple, frozenset, object)
"""Base classes of values that may contain others."""


def may_hold_nan(kind: Any) -> bool:
    """Return True if a row of this type may contain a NaN or a zoned datetime that `canonical`
    replaces."""
    if kind in EXACT:
        return False
    numbers = isinstance(kind, type) and issubclass(kind, float | Decimal | datetime)
    return numbers or not isinstance(kind, type) or kind in HOLDERS or bool(nan_fields(kind))


@by_recent_class(64)
def nan_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a record that may hold a NaN, by their annotations."""
    return tuple(name for name, hint in declared_kinds(kind).items() if not is_made_of(hint, EXACT))


def _canonical_items(value: Any, depth: int) -> Any:
    """Return a tuple or frozen set of canonical items; itself if none of them changes."""
    for place, item in enumerate(value):
        if type(item) not in EXACT and (new := _canonical_item(item, depth)) is not item:
            items = [*value]
            after = [_canonical_item(each, depth) for each in items[place + 1 :]]
            return type(value)([*items[:place], new, *after])
    return value


def _canonical_item(item: Any, depth: int) -> Any:
    """Return a canonical item; raises `RecursionError` if tuples are nested too deep."""
    if type(item) is not tuple and type(item) is not frozenset:
        return canonical(item)
    if not depth:
        raise RecursionError(f"tuples are nested more than {NESTED} deep")
    return _canonical_items(item, depth - 1)


def canonical_record(value: Any, names: Iterable[str]) -> Any:
    """Return a record with canonical fields; itself if none of them changes."""
    changed, is_odd = {}, False
    for name in names:
        old = getattr(value, name)
        new = canonical(old)
        if new is not old:
            changed[name] = new
        elif new.__class__ not in EXACT and new != new:
            is_odd = True
    if not changed:
        return value if not is_odd or value == value else _canonical_record_object(value)
    if isinstance(value, tuple):
        return value._replace(**changed)  # type: ignore[attr-defined]
    result = copy.copy(value)
    put = _field_setter(type(value))
    for name, new in changed.items():
        put(result, name, new)
    return result if result == copy.copy(result) else _canonical_record_object(result)


def _field_setter(kind: Any) -> Callable[[Any, str, Any], None]:
    """Return a function that sets a field of a record, even of a frozen one."""
    if hasattr(kind, "__struct_fields__"):
        structs: Any = sys.modules["msgspec"].structs
        write: Callable[[Any, str, Any], None] = structs.force_setattr
        return write
    return object.__setattr__


def _canonical_record_object(record: Any) -> Any:
    """Return the one object that represents all records of equal values.

    A class may compare its fields one by one, as attrs does, and dataclasses since Python 3.13.
    A record with a NaN then equals only itself, so that it must always be one object.
    """
    kind = type(record)
    fields = tuple(getattr(record, name) for name in compared_names(kind))
    try:
        return _ALIVE.setdefault((kind, fields), record)
    except TypeError:  # a slotted class without `weakref_slot=True`
        return _intern_record((kind, fields), record)


def _intern_record(key: Any, record: Any) -> Any:
    """Return the one object for a key, of a class without weak references.

    Records without other references are dropped whenever the number of records has doubled.
    """
    global _most_kept
    with _LOCK:
        if len(_KEPT) >= _most_kept:
            all_kept = [*_KEPT.items(), (None, object())]
            counts = [(old, sys.getrefcount(held)) for old, held in all_kept]
            _, alone = counts.pop()  # an object that only the list refers to
            for old, count in counts:
                if count <= alone + 1:
                    del _KEPT[old]
            _most_kept = max(FEWEST_KEPT, 2 * len(_KEPT))
        return _KEPT.setdefault(key, record)


_ALIVE: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_KEPT: dict[Any, Any] = {}
FEWEST_KEPT = 64
_LOCK = threading.Lock()
_most_kept = FEWEST_KEPT


Family = Hashable
FAMILIES: Final[dict[type, Family]] = {
    **dict.fromkeys((int, float, bool, Decimal, Fraction), "number"),
    **{kind: kind.__name__ for kind in (str, bytes, date, timedelta)},
}
"""Families of classes whose instances all belong to it."""
ZONE: Final = ("zoneinfo", "ZoneInfo")
"""Module and name of the class of time zones, which is not imported for this."""


class UnorderedError(TypeError):
    """Raised for a value without a family, or of another family."""


def family_of(value: Any) -> Family:
    """Return the family of a value; raise `UnorderedError` if it has none.

    >>> family_of(1) == family_of(2.5), family_of(1) == family_of("a")
    (True, False)
    >>> family_of((1, "a")) == family_of((2.5, "b"))
    True
    """
    kind = type(value)
    family = FAMILIES.get(kind)
    if family is None:
        family = _FOUND.get(kind, _raise_unordered)(value)
    elif value != value:
        raise UnorderedError(f"{value!r} has no place in an order")
    return family


def point(value: Any) -> Any:
    """Return the value; raise `UnorderedError` if it has no family."""
    family_of(value)
    return value


def interval(low: Any, high: Any) -> tuple[Any, Any]:
    """Return both ends; raise `UnorderedError` if they are not of one family.

    >>> interval(1, 2.5)
    (1, 2.5)
    """
    if family_of(low) != family_of(high):
        raise UnorderedError(f"{low!r} and {high!r} have no common order")
    return low, high


def may_have_family(annotation: Any) -> bool:
    """Return True if values of this annotation may have a family.

    >>> may_have_family(int), may_have_family(int | None), may_have_family(complex)
    (True, True, False)
    """
    if annotation is Any or not isinstance(annotation, type):
        return True
    try:
        return any(issubclass(kind, annotation) for kind in (*FAMILIES, *_FOUND))
    except TypeError:  # a protocol without `issubclass`
        return True


def _tuple_family(value: tuple[Any, ...]) -> Family:
    return ("tuple", *map(family_of, value))


def _datetime_family(value: datetime) -> Family:
    """Return the family of a datetime: with a time zone, it is that of all instants.

    Instants of different zones compare by their times in UTC, and those of one zone by their local
    times, which have the same order where an offset does not depend on `fold`. Others raise
    `UnorderedError`, as do those of other classes of zones.
    """
    zone = value.tzinfo
    if zone is None:
        return "datetime"
    kind = type(zone)
    is_known = kind is timezone or (kind.__module__, kind.__qualname__) == ZONE
    return (
        ("datetime", "aware") if is_known and instant(value) is value else _raise_unordered(value)
    )


def _time_family(value: time) -> Family:
    return "time" if value.tzinfo is None else _raise_unordered(value)


def _raise_unordered(value: Any) -> Family:
    """Raise `UnorderedError`, unless a value has a place in the order of others."""
    if isinstance(value, ComparedLike):
        return family_of(value.value)
    raise UnorderedError(f"{type(value).__name__} is of no family")


_FOUND: dict[type, Callable[[Any], Family]] = {
    tuple: _tuple_family,
    datetime: _datetime_family,
    time: _time_family,
}


def declared_kinds(kind: Any) -> dict[str, Kind]:
    """Return the kinds of the fields that the equality of a class compares.

    Works for dataclasses, named tuples, `msgspec.Struct`, attrs classes and pydantic models;
    returns nothing for other classes.

    >>> from typing import NamedTuple
    >>> list(declared_kinds(NamedTuple("Point", [("x", int), ("names", tuple[str, ...])])))
    ['x', 'names']
    """
    names = compared_names(kind) if isinstance(kind, type) else ()
    hints = hints_of(kind) if names else {}
    return {name: kind_of(hints[name]) for name in names}


def is_made_of(kind: Kind, classes: Set[type]) -> bool:
    """Return True if values have these classes, or are tuples or frozen sets of such values.

    >>> is_made_of(kind_of(tuple[str | None, ...]), {str, type(None)})
    True
    >>> is_made_of(kind_of(int | float), {int})
    False
    """
    match kind:
        case Either(inner) | Places(inner):
            return all(is_made_of(each, classes) for each in inner)
        case Items(item=item) if class_of(kind) in (tuple, frozenset):
            return is_made_of(item, classes)
        case Choice(values):
            return all(type(value) in classes for value in values)
        case _:
            return class_of(kind) in classes


def is_hashable(kind: Any) -> bool:
    """Return True if all rows of a class are hashable, by its annotations.

    >>> from typing import NamedTuple
    >>> is_hashable(NamedTuple("Point", [("x", int)])), is_hashable(tuple)
    (True, False)
    """
    if kind in _HASHABLE:
        return True
    fields = declared_kinds(kind)
    is_plain = getattr(kind, "__hash__", None) is getattr(tuple, "__hash__")  # noqa: B009
    return is_plain and fields != {} and all(is_made_of(f, _HASHABLE) for f in fields.values())


_HASHABLE: frozenset[type] = frozenset({int, float, str, bytes, bool, type(None)})


# Pairs with the keys of an index.

Keyed = tuple[Any, Pair]
"""A key and a pair."""


class KeyedBatch(Sequence[Keyed]):
    """Rows of one weight with their keys: two lists, not pairs.

    >>> list(KeyedBatch([4, 3], ["anna", "eva"], 1))
    [(4, ('anna', 1)), (3, ('eva', 1))]
    """

    __slots__ = ("are_new", "differ", "keys", "rows", "weight")

    def __init__(self, keys: Sequence[Any], rows: Sequence[Row], weight: int) -> None:
        self.keys = keys
        self.rows = rows
        self.weight = weight
        self.differ = False
        """True if no object is known to occur twice."""
        self.are_new = False
        """True if the index that the batch was added to had no row with one of its keys."""

    @overload
    def __getitem__(self, place: int) -> Keyed: ...
    @overload
    def __getitem__(self, place: slice) -> KeyedBatch: ...
    def __getitem__(self, place: int | slice) -> Keyed | KeyedBatch:
        if isinstance(place, slice):
            return KeyedBatch(self.keys[place], self.rows[place], self.weight)
        return (self.keys[place], (self.rows[place], self.weight))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Keyed]:
        return zip(self.keys, zip(self.rows, repeat_value(self.weight)), strict=False)


def as_batch(keyed: Sequence[Keyed], weight: int) -> KeyedBatch | None:
    """Return a delta as a batch of a weight; None if a row has another weight."""
    if type(keyed) is KeyedBatch:
        return keyed if keyed.weight == weight else None
    if any(pair[1] != weight for _, pair in keyed):
        return None
    return KeyedBatch([key for key, _ in keyed], [pair[0] for _, pair in keyed], weight)


def delta_keys(keyed: Sequence[Keyed]) -> Sequence[Any]:
    """Return the keys of a delta."""
    return keyed.keys if type(keyed) is KeyedBatch else [key for key, _ in keyed]


def has_both_signs(keyed: Sequence[Keyed]) -> bool:
    """Return True if a delta deletes and inserts rows."""
    if len(keyed) < 2 or type(keyed) is KeyedBatch:
        return False
    weights = [pair[1] for _, pair in keyed]
    return min(weights) < 0 < max(weights)
