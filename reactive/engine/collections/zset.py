"""Z-sets: rows with signed weights, as lists of pairs in motion and as dictionaries at rest.

A delta is a list of `(row, weight)` pairs; a row may occur in it several times, and what counts
is the sum. Linear operators hand such lists on as they are. `consolidate` adds up and drops what
cancels; only state and subscribers need that, since it hashes every row.

Equality is Python's, with one addition: a NaN computed anew is the same NaN. Python compares
containers by the identity of their elements first, so `(nan,)` equals `(nan,)` only if it is the
same NaN object; a row that is computed twice, once to add it and once to remove it, would not
be found again. `canonical` replaces every NaN in a row by one object. A zoned datetime in an hour
that a clock change repeats, where Python's `==` ignores `fold`, gets a fixed offset
(`instants.py`).

Source: [dbsp] section 2, Z-sets.

Which values can be put in one order: those of one family.

    number     1, 2.5, True, Decimal("1.5"), Fraction(1, 2)
    text       "a"
    tuples     (1, "a"), of the same families part by part
    ...

Of two values of a family, `<` raises nothing, runs no code of the user's and is total; equal values
have equal hashes. Of values of two families nothing is known: the expression has to be asked.

A value without a family is NaN or None, of a class of the user's, or of a subclass of one of these:
such a class may compare as it likes. An aware time of a zone with transitions has that zone in its
family, since times of two such zones have no common order.

What the annotations of a row's class say about the values that its rows hold.

They are trusted, as a type checker makes sure of them.
"""

from __future__ import annotations

import copy
import math
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice
from itertools import repeat as repeat_value
from typing import Any, Final, overload
from weakref import WeakValueDictionary

from optimizer.kinds.fields import by_recent_class, compared
from optimizer.kinds.instants import instant
from optimizer.kinds.kind import Choice, Either, Items, Kind, Places, class_of, hints_of, kind_of
from reactive.engine.runtime.interrupts import reraise_asynchronous

Row = Any
Pair = tuple[Row, int]
Pairs = Sequence[Pair]

NAN = math.nan
DECIMAL_NAN = Decimal("NaN")
NESTED = 200
"""Tuples within each other, in a row: far fewer than Python can compare, hash or write out."""
EXACT: frozenset[type] = frozenset({int, str, bytes, bool, type(None)})
"""Classes of which equal values are one in all that they do."""


class UniformDelta(Sequence[Pair]):
    """A delta of rows that all have the same weight: it holds rows, and no pairs.

    >>> UniformDelta(["a", "b"], 1)[1], list(UniformDelta(["a", "b"], -1))
    (('b', 1), [('a', -1), ('b', -1)])
    """

    __slots__ = ("differ", "fields", "rows", "weight")

    def __init__(self, rows: Sequence[Row], weight: int) -> None:
        self.rows = rows
        self.weight = weight
        self.fields: Mapping[Any, type] | None = None
        """The fields of all rows, by name or place, that have one class in all of them; if that is
        known, and reading one runs no code."""
        self.differ = False
        """Whether it is known that no object is in it twice."""

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
    """The same delta with each row once and no weight of zero.

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
    """As `consolidate`, of rows that are one object if they are equal: no row is hashed.

    >>> word = "a"
    >>> net_by_identity([(word, 1), ("b", 1), (word, 1), ("b", -1)])
    [('a', 2)]
    """
    net: dict[int, Pair] = {}
    for row, weight in pairs:
        net[id(row)] = (row, net.get(id(row), (row, 0))[1] + weight)
    return [pair for pair in net.values() if pair[1]]


def by_group(delta: Pairs, key: Callable[[Row], Any]) -> dict[Any, list[Pair]]:
    """The net changes of a delta by a key of their rows.

    >>> by_group([("to", 1), ("be", 1), ("by", 2), ("to", -1)], lambda word: word[0])
    {'b': [('be', 1), ('by', 2)]}
    """
    groups: dict[Any, list[Pair]] = {}
    for row, weight in consolidate(delta):
        groups.setdefault(canonical(key(row)), []).append((row, weight))
    return groups


def _is_consolidated(pairs: list[Pair]) -> bool:
    """Whether a short list is, as one sees without hashing; most commits change a row or two."""
    if len(pairs) < 2:
        return True
    if len(pairs) > 2:
        return False
    one, other = pairs[0][0], pairs[1][0]
    try:
        return not (one is other or one == other)
    except Exception as error:  # of rows of one hash a loop over the pairs raises it again
        return not have_one_hash(one, other, error)


def have_one_hash(one: Row, other: Row, error: Exception) -> bool:
    """Return True for rows of one hash, whose `==` has raised an error: a dictionary asks it again.

    Raises
    ------
    error: if it came from another thread, and not from the rows.
    """
    reraise_asynchronous(error)
    return hash(one) == hash(other)


def is_mixed(pairs: Pairs) -> bool:
    """Whether rows come and go, so that some may cancel."""
    if len(pairs) < 2 or pairs.__class__ is UniformDelta:
        return False
    return len({weight > 0 for _, weight in pairs}) == 2


def negate(pairs: Iterable[Pair]) -> list[Pair]:
    """The delta that takes this one back."""
    return [(row, -weight) for row, weight in pairs]


def repeat(pairs: Iterable[Pair]) -> Iterator[Row]:
    """Each row, repeated by its weight."""
    for row, weight in pairs:
        for _ in range(weight):
            yield row


def repeated(weights: dict[Row, int], size: int) -> list[Row]:
    """The rows of a Z-set at rest, each repeated by its weight; `size` is how many."""
    if size == len(weights):  # no weight is negative where rows are repeated
        return list(weights)
    return list(chain.from_iterable(map(repeat_value, weights, weights.values())))


def integrate(weights: dict[Row, int], pairs: Pairs) -> None:
    """Add a delta to a Z-set at rest; all of it, or none where a row cannot be compared."""
    if not weights and len(pairs) > 1 and _fill(weights, pairs):
        return
    done = 0
    try:
        for row, weight in pairs:
            _add(weights, row, weight)
            done += 1
    except BaseException:
        for row, weight in pairs[:done]:
            _add(weights, row, -weight)
        raise


def insert_new(weights: dict[Row, int], pairs: Pairs) -> bool:
    """Add a delta, if it has only rows that are not there yet, each once, with positive weights.

    Then it needs no consolidation, and each row is hashed once. Otherwise nothing is done.
    """
    if not weights:
        return _fill(weights, pairs)
    before = size = len(weights)
    add, are_new = weights.setdefault, False
    try:
        if type(pairs) is UniformDelta:
            if pairs.weight > 0 and not (pairs.rows and pairs.rows[0] in weights):
                deque(map(add, pairs.rows, repeat_value(pairs.weight)), 0)
                are_new = len(weights) == before + len(pairs)
            return are_new
        for row, weight in pairs:
            if weight <= 0:
                break
            add(row, weight)
            if len(weights) == size:
                break
            size += 1
        else:
            are_new = True
    finally:
        while not are_new and len(weights) > before:
            weights.popitem()  # what came last; no row is hashed, as one may raise
    return are_new


def _fill(weights: dict[Row, int], pairs: Pairs) -> bool:
    """The same where nothing is held yet."""
    if type(pairs) is UniformDelta:
        if pairs.weight > 0:
            found = dict.fromkeys(pairs.rows, pairs.weight)
            if len(found) == len(pairs):
                weights.update(found)  # without a hash
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


def delete_held(weights: dict[Row, int], pairs: Pairs) -> bool:
    """Add a delta, if it has only rows that go, each as often as it is there.

    As `insert_new`.
    """
    if type(pairs) is UniformDelta:
        return _delete_batch(weights, pairs)
    done, odd, pop = 0, 0, weights.pop
    try:
        for row, weight in pairs:
            if weight >= 0:
                break
            held = pop(row, 0)
            if held + weight:
                odd = held
                break
            done += 1
    finally:
        if done < len(pairs):
            _put_back(weights, [(row, -weight) for row, weight in islice(pairs, done)])
            if odd:
                _put_back(weights, [(row, odd)])
    return done == len(pairs)


def _delete_batch(weights: dict[Row, int], batch: UniformDelta) -> bool:
    """The same of rows of one weight."""
    if batch.weight >= 0:
        return not len(batch)
    held: list[int] = []
    are_held = False
    try:
        held.extend(map(weights.pop, batch.rows, repeat_value(0)))
        are_held = held.count(-batch.weight) == len(batch)
    finally:
        if not are_held:
            _put_back(weights, [pair for pair in zip(batch.rows, held, strict=False) if pair[1]])
    return are_held


def _put_back(weights: dict[Row, int], pairs: Pairs) -> None:
    """Hold rows again that were held before; one whose hash has raised is asked once more."""
    for row, weight in pairs:
        try:
            weights[row] = weight
        except Exception:
            weights[row] = weight


def _add(weights: dict[Row, int], row: Row, weight: int) -> None:
    total = weights.get(row, 0) + weight
    if total:
        weights[row] = total
    else:
        del weights[row]


def canonical(value: Any) -> Any:
    """The value itself, or a copy of it in which every NaN is the same object, and every zoned
    datetime is told apart by its instant.

    Looks into tuples, frozen sets and records (`members.compared`), of which rows and keys are
    made.

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
        return _canonical_record(value, names)
    if isinstance(value, float):
        return value if value == value else NAN
    if isinstance(value, datetime):
        return value if value.tzinfo is None else instant(value)
    return DECIMAL_NAN if isinstance(value, Decimal) and value.is_nan() else value


def is_nan(value: Any) -> bool:
    """Whether a canonical value is NaN."""
    return value is NAN or value is DECIMAL_NAN


HOLDERS = (tuple, frozenset, object)
"""Classes of values that may have others inside."""


def may_hold_nan(kind: Any) -> bool:
    """Return True if a row of this type can have a NaN, or a zoned datetime, where `canonical`
    finds it."""
    if kind in EXACT:
        return False
    numbers = isinstance(kind, type) and issubclass(kind, float | Decimal | datetime)
    return numbers or not isinstance(kind, type) or kind in HOLDERS or bool(nan_fields(kind))


@by_recent_class(64)
def nan_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a record that may hold a NaN, by their annotations."""
    return tuple(name for name, hint in declared(kind).items() if not is_made_of(hint, EXACT))


def _canonical_items(value: Any, depth: int) -> Any:
    for place, item in enumerate(value):
        if type(item) not in EXACT and (new := _canonical_item(item, depth)) is not item:
            items = [*value]
            after = [_canonical_item(each, depth) for each in items[place + 1 :]]
            return type(value)([*items[:place], new, *after])
    return value


def _canonical_item(item: Any, depth: int) -> Any:
    if type(item) is not tuple and type(item) is not frozenset:
        return canonical(item)
    if not depth:
        raise RecursionError(f"tuples are nested more than {NESTED} deep")
    return _canonical_items(item, depth - 1)


def _canonical_record(value: Any, names: tuple[str, ...]) -> Any:
    changed, is_odd = {}, False
    for name in names:
        old = getattr(value, name)
        new = canonical(old)
        if new is not old:
            changed[name] = new
        elif new.__class__ not in EXACT and new != new:
            is_odd = True
    if not changed:
        return value if not is_odd or value == value else _one_of(value)
    if isinstance(value, tuple):
        return value._replace(**changed)  # type: ignore[attr-defined]
    result = copy.copy(value)
    put = _writer(type(value))
    for name, new in changed.items():
        put(result, name, new)
    return result if result == copy.copy(result) else _one_of(result)


def _writer(kind: Any) -> Callable[[Any, str, Any], None]:
    """What sets a field of a record, a frozen one too."""
    if hasattr(kind, "__struct_fields__"):
        structs: Any = sys.modules["msgspec"].structs
        write: Callable[[Any, str, Any], None] = structs.force_setattr
        return write
    return object.__setattr__


def _one_of(record: Any) -> Any:
    """The one object for all records of the same values.

    A class may compare its fields one by one, as attrs does, and dataclasses from Python 3.13 on.
    A record with a NaN then equals nothing but itself, and must be one object whenever it is made.
    """
    kind = type(record)
    fields = tuple(getattr(record, name) for name in compared(kind))
    try:
        return _ALIVE.setdefault((kind, fields), record)
    except TypeError:  # a slotted class without `weakref_slot=True`
        return _kept((kind, fields), record)


def _kept(key: Any, record: Any) -> Any:
    """Return the one object for a key, of a class without weak references.

    Records that nobody else refers to are dropped whenever there are twice as many.
    """
    global _most_kept
    with _LOCK:
        if len(_KEPT) >= _most_kept:
            all_kept = [*_KEPT.items(), (None, object())]
            counts = [(old, sys.getrefcount(held)) for old, held in all_kept]
            _, alone = counts.pop()  # of an object that is in the list alone
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
"""The families of values of which the class tells it all."""
ZONE: Final = ("zoneinfo", "ZoneInfo")
"""The class of time zones by module and name: it is not imported for this."""


class UnorderedError(TypeError):
    """A value has no family."""


def family_of(value: Any) -> Family:
    """The family of a value; raises if it has none.

    >>> family_of(1) == family_of(2.5), family_of(1) == family_of("a")
    (True, False)
    >>> family_of((1, "a")) == family_of((2.5, "b"))
    True
    """
    kind = type(value)
    family = FAMILIES.get(kind)
    if family is None:
        family = _FOUND.get(kind, _none)(value)
    elif value != value:
        raise UnorderedError(f"{value!r} has no place in an order")
    return family


def point(value: Any) -> Any:
    """The value itself, if it has a family."""
    family_of(value)
    return value


def interval(low: Any, high: Any) -> tuple[Any, Any]:
    """Both ends, if they are of one family.

    >>> interval(1, 2.5)
    (1, 2.5)
    """
    if family_of(low) != family_of(high):
        raise UnorderedError(f"{low!r} and {high!r} have no common order")
    return low, high


def may_have_family(annotation: Any) -> bool:
    """Whether values so annotated may have one: all but those of a class of which none has.

    >>> may_have_family(int), may_have_family(int | None), may_have_family(complex)
    (True, True, False)
    """
    if annotation is Any or not isinstance(annotation, type):
        return True
    try:
        return any(issubclass(kind, annotation) for kind in (*FAMILIES, *_FOUND))
    except TypeError:  # a protocol that cannot be asked
        return True


def _of_tuple(value: tuple[Any, ...]) -> Family:
    return ("tuple", *map(family_of, value))


def _of_datetime(value: datetime) -> Family:
    zone = value.tzinfo
    if zone is None:
        return "datetime"
    if type(zone) is timezone:
        return "datetime", "aware"
    if (type(zone).__module__, type(zone).__qualname__) == ZONE:
        return "datetime", id(zone)
    return _none(value)


def _of_time(value: time) -> Family:
    return "time" if value.tzinfo is None else _none(value)


def _none(value: Any) -> Family:
    raise UnorderedError(f"{type(value).__name__} is of no family")


_FOUND: dict[type, Callable[[Any], Family]] = {
    tuple: _of_tuple,
    datetime: _of_datetime,
    time: _of_time,
}


def declared(kind: Any) -> dict[str, Kind]:
    """The kinds of the fields by which rows of a class are equal.

    Of dataclasses, named tuples, `msgspec.Struct`, attrs classes and pydantic models; nothing for
    other classes.

    >>> from typing import NamedTuple
    >>> list(declared(NamedTuple("Point", [("x", int), ("names", tuple[str, ...])])))
    ['x', 'names']
    """
    names = compared(kind) if isinstance(kind, type) else ()
    hints = hints_of(kind) if names else {}
    return {name: kind_of(hints[name]) for name in names}


def is_made_of(kind: Kind, classes: Set[type]) -> bool:
    """Return True if values are of these classes, or tuples or frozen sets of such.

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
    """Whether all rows of a class have a hash, which then need not be tried.

    >>> from typing import NamedTuple
    >>> is_hashable(NamedTuple("Point", [("x", int)])), is_hashable(tuple)
    (True, False)
    """
    if kind in _HASHABLE:
        return True
    fields = declared(kind)
    is_plain = getattr(kind, "__hash__", None) is getattr(tuple, "__hash__")  # noqa: B009
    return is_plain and fields != {} and all(is_made_of(f, _HASHABLE) for f in fields.values())


_HASHABLE: frozenset[type] = frozenset({int, float, str, bytes, bool, type(None)})
