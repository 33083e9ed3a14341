"""Rows with inner bags, and changes inside a bag of a row.

Inner changes: two rows that differ only in a bag are replaced by the difference of the bags.

    (old, -1), (new, +1)        old.town is new.town, old.orders = {a, b}, new.orders = {a, c}

    (~old, -1), (~new, +1)      ~old.orders = [b], ~new.orders = [c]

An expression that iterates over the bag, and reads only some fields of the row besides, computes
the same from `a` of both rows, once with each sign. So it receives stand-ins for the rows, with
these fields, and only those values of the bag that the other bag lacks. The same applies to bags
inside the values of the bag.

Fields must be the same objects, or equal numbers or texts of one class: 1 and 1.0 are equal, but
can be told apart. This also holds for values of bags; otherwise both values are included.

Sound:  unnest is linear, and the results of a value that both bags contain cancel.
State:  none.
Cost:   O(|dL|), and the cost of `Bag.difference` for each pair of rows.
Source: [slender] deep updates; [dbsp] linear operators.

Nested rows: generated named tuples of a row and inner bags; attributes are also looked up in the
row.

Row(row=Customer(7, "Ann"), orders=Bag(...))

row.orders                  the inner rows
row.name                    not a column: an attribute of the customer

Each class is an attribute of this module, under a name that lists its columns, so that other
processes can load it: `Row(1, row, orders)`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from optimizer.expressions.knowledge import Foldable
from optimizer.kinds.fields import by_class, class_maker, members
from reactive.engine.collections.zset import EXACT, Pair, Pairs, Row, UniformDelta, is_mixed
from reactive.engine.runtime.interrupts import reraise_asynchronous

Values = tuple[Any, ...]
Field = tuple[Any, Any]
"""An attribute or item of a row: `attrgetter` or `itemgetter`, and its name or place; or one of
`VIEWS`, and the field that is a mapping."""


class InnerRow:
    """Stand-in for a row: it has some attributes and items of the row."""

    __slots__ = ("__dict__", "__items")

    def __init__(self, attributes: dict[str, Any], items: dict[Any, Any]) -> None:
        self.__dict__ = attributes
        self.__items = items

    def __getitem__(self, key: Any) -> Any:
        return self.__items[key]


class InsideMapping:
    """Stand-in for a mapping: it has some keys, values or items of the mapping."""

    __slots__ = ("_inside",)

    def __init__(self, inside: list[Any]) -> None:
        self._inside = inside

    def keys(self) -> list[Any]:
        return self._inside

    values = items = keys


def _keys_getter(field: Field) -> Callable[[Any], Any]:
    return _view_of(field, "keys")


def _values_getter(field: Field) -> Callable[[Any], Any]:
    return _view_of(field, "values")


def _items_getter(field: Field) -> Callable[[Any], Any]:
    return _view_of(field, "items")


def _view_of(field: Field, name: str) -> Callable[[Any], Any]:
    """Return the function from a row to the keys, values or items (`name`) of a mapping in a field.

    The function returns None if the mapping is no `Foldable`.
    """
    read, key = field
    get = read(key)

    def view(row: Any) -> Any:
        found = get(row)
        return getattr(found, name)() if isinstance(found, Foldable) else None

    return view


VIEWS: dict[str, Any] = {"keys": _keys_getter, "values": _values_getter, "items": _items_getter}


class InnerBag:
    """A bag of a row that an expression iterates over, and the other fields that it reads.

    Parameters
    ----------
    bag: the field with the bag.
    fields: the other fields.
    within: bags that are iterated over in the values of the bag.
    binding: the place of the row among several bindings.
    others: the places of other bindings that are read.
    """

    __slots__ = ("_binding", "_fields", "_getters", "_names", "_others", "_within")

    def __init__(
        self,
        bag: Field,
        fields: Sequence[Field],
        within: Sequence[InnerBag],
        *,
        binding: int | None = None,
        others: Sequence[int] = (),
    ) -> None:
        self._fields = (*fields, bag)
        self._getters = [read(key) for read, key in self._fields]
        self._names = [key for read, key in self._fields if read is attrgetter]
        """Names of the fields that are attributes."""
        self._within = tuple(within)
        self._binding = binding
        self._others = tuple(others)

    def __call__(self, delta: Pairs) -> Pairs:
        """Return the delta, with stand-ins for rows that differ only in the bag."""
        if len(delta) < 2 or delta.__class__ is UniformDelta:
            return delta
        try:
            if len(delta) == 2 and delta[0][1] < 0 < delta[1][1]:
                return self._of_two(delta)
            return self._substitute(delta) if is_mixed(delta) else delta
        except Exception as error:  # the operator that reads the rows raises it, or not
            reraise_asynchronous(error)
            return delta

    def substitute_keyed(self, delta: Sequence[tuple[Any, Pair]]) -> Sequence[tuple[Any, Pair]]:
        """Return pairs with keys, with stand-ins for rows of a key that differ only in the bag."""
        if len(delta) < 2 or delta.__class__ is not list:
            return delta
        pairs = [pair for _, pair in delta]
        if not is_mixed(pairs):
            return delta
        try:
            found = self._find_stand_ins(pairs, [_key_items(key) for key, _ in delta])
        except Exception as error:  # as above
            reraise_asynchronous(error)
            return delta
        every = [(key, found.get(place, pair)) for place, (key, pair) in enumerate(delta)]
        return [(key, pair) for key, pair in every if pair is not None] if found else delta

    def _of_two(self, delta: Pairs) -> Pairs:
        """Return a deletion and an insertion, as stand-ins if they differ only in the bag."""
        (old, gone), (new, came) = delta
        place, getters = self._binding, self._getters
        one, other = (old, new) if place is None else (old[place], new[place])
        before, after = [get(one) for get in getters], [get(other) for get in getters]
        bag = before[-1]
        if gone != -came or bag.__class__ is not after[-1].__class__:
            return delta
        if not isinstance(bag, Foldable) or not all(map(_are_identical, before[:-1], after[:-1])):
            return delta
        for beside in self._others:
            if not _are_identical(old[beside], new[beside]):
                return delta
        changes: Pairs = after[-1]._changed_since(bag)
        for inner in self._within:
            changes = inner(changes)
        found = []
        for row, values, sign, weight in ((old, before, -1, gone), (new, after, 1, came)):
            inside = [v for v, times in changes for _ in range(times * sign)]
            if inside:
                found.append((self._standing(row, values, inside), weight))
        return found

    def _substitute(self, delta: Pairs) -> Pairs:
        """Return the delta with stand-ins in place of rows that differ only in their bag."""
        found = self._find_stand_ins(delta, [()] * len(delta))
        if not found:
            return delta
        every = [found.get(place, pair) for place, pair in enumerate(delta)]
        return [pair for pair in every if pair is not None]

    def _find_stand_ins(self, delta: Pairs, keys: Sequence[Values]) -> dict[int, Pair | None]:
        """Return stand-ins for rows, by their places; None for a row that is to be left out."""
        old, new = self._find_changed_rows(delta, keys, -1), self._find_changed_rows(delta, keys, 1)
        found: dict[int, Pair | None] = {}
        if len(old) > 1 or len(new) > 1:
            self._match(old, new, _likeness, found)
        if old and new:
            self._match(old, new, _read_marks, found)
        return found

    def _find_changed_rows(
        self, delta: Pairs, keys: Sequence[Values], sign: int
    ) -> dict[int, _ChangedRow]:
        """Return the inserted or deleted rows that have a bag, by their places."""
        found: dict[int, _ChangedRow] = {}
        for place, (row, weight) in enumerate(delta):
            if weight * sign > 0:
                own = row if self._binding is None else row[self._binding]
                values = [get(own) for get in self._getters]
                if isinstance(values[-1], Foldable):
                    read = (*keys[place], *[row[other] for other in self._others], *values)
                    found[place] = _ChangedRow(row, weight, own, read)
        return found

    def _match(
        self,
        old: dict[int, _ChangedRow],
        new: dict[int, _ChangedRow],
        mark: Callable[[_ChangedRow], Values],
        found: dict[int, Pair | None],
    ) -> None:
        """Match rows with equal marks, add their stand-ins to `found`, and remove them from
        both."""
        by_mark: dict[Values, list[int]] = {}
        for place, each in reversed(old.items()):
            by_mark.setdefault(mark(each), []).append(place)
        for place, each in list(new.items()):
            places = by_mark.get(mark(each))
            if places and _are_alike(old[places[-1]], each):
                before = places.pop()
                self._put(found, before, old.pop(before), place, new.pop(place))

    def _put(
        self,
        found: dict[int, Pair | None],
        before: int,
        old: _ChangedRow,
        after: int,
        new: _ChangedRow,
    ) -> None:
        """Add the stand-ins of two rows to `found`; None for a row without values of its own."""
        changes: Pairs = new.read[-1]._changed_since(old.read[-1])
        for inner in self._within:
            changes = inner(changes)
        for place, each, sign in ((before, old, -1), (after, new, 1)):
            inside = [v for v, weight in changes for _ in range(weight * sign)]
            stands = self._standing(each.row, each.read, inside) if inside else None
            found[place] = (stands, each.weight) if inside else None

    def _standing(self, row: Row, values: Sequence[Any], inside: list[Any]) -> Any:
        """Return the stand-in for a row whose bag has the values `inside`."""
        given = [*values[-len(self._fields) : -1], inside]
        if self._binding is None and len(self._names) == len(given):
            return InnerRow(dict(zip(self._names, given, strict=True)), {})
        kept: dict[Any, dict[Any, Any]] = {attrgetter: {}, itemgetter: {}}
        for (read, key), value in zip(self._fields, given, strict=True):
            if read in kept:
                kept[read][key] = value
            else:
                inner, name = key
                kept[inner][name] = InsideMapping(value)
        stands = InnerRow(kept[attrgetter], kept[itemgetter])
        place = self._binding
        return stands if place is None else (*row[:place], stands, *row[place + 1 :])


class _ChangedRow(NamedTuple):
    """A row of a delta with its weight, the binding with the bag, and the values that are read.

    `read` has the parts of the key (if there is one), the other bindings, the fields, and the bag
    last.
    """

    row: Row
    weight: int
    own: Row
    read: Values


def _read_marks(changed: _ChangedRow) -> Values:
    """Return marks of all values that are read except the bag, without comparing them."""
    return tuple(map(value_mark, changed.read[:-1]))


def _likeness(changed: _ChangedRow) -> Values:
    """Return marks that rows share if they differ only in bags; they match before others."""
    fields = named_fields(changed.own)
    return (
        *_read_marks(changed),
        *[value_mark(v) for _, v in fields if not isinstance(v, Foldable)],
    )


def named_fields(row: Any) -> list[tuple[Any, Any]]:
    """Return the fields of a row by name, or by place for a plain tuple."""
    if isinstance(row, tuple):
        names = getattr(row, "_fields", None)
        return list(enumerate(row) if names is None else zip(names, row, strict=True))
    return [(name, getattr(row, name)) for name in _members(row.__class__)]


def _key_items(key: Any) -> Values:
    """Return the parts of a key."""
    return key if key.__class__ is tuple else (key,)


def value_mark(value: Any) -> Any:
    """Return a value that is equal only for values that cannot be told apart."""
    return value if value.__class__ in EXACT else id(value)


@by_class
def _members(kind: Any) -> list[str]:
    return members(kind)


def _are_alike(old: _ChangedRow, new: _ChangedRow) -> bool:
    """Return True if weights are opposite, bags of one class, and other values identical."""
    if old.weight != -new.weight or old.read[-1].__class__ is not new.read[-1].__class__:
        return False
    return all(map(_are_identical, old.read[:-1], new.read[:-1]))


def _are_identical(old: Any, new: Any) -> bool:
    """Return True if two values cannot be told apart."""
    return old is new or (old.__class__ is new.__class__ and old.__class__ in EXACT and old == new)


_PREFIX = "Row("


@class_maker
def nested_class(roots: int, columns: tuple[str, ...]) -> Any:
    """Return the class of rows with these columns; names are also looked up in the first `roots`.

    >>> import pickle
    >>> Row = nested_class(1, ("row", "parts"))
    >>> row = Row(3 + 4j, ())
    >>> row, row.imag, row == (3 + 4j, ()), pickle.loads(pickle.dumps(row)) == row
    (Row(row=(3+4j), parts=()), 4.0, True, True)
    >>> pickle.loads(pickle.dumps(Row)) is Row
    True
    """
    make: Any = namedtuple
    base = make("Row", columns, module=__name__)

    def __getattr__(row: Any, name: str) -> Any:
        for root in row[:roots] if not name.startswith("__") else ():
            try:
                return getattr(root, name)
            except AttributeError:
                continue
        raise AttributeError(
            f"a row of {', '.join(columns)} has no {name!r}, nor has what it begins with",
            name=name,
            obj=row,
        )

    body = {"__slots__": (), "__getattr__": __getattr__, "__reduce__": _reduce_row, "roots": roots}
    made: Any = type("Row", (base,), body)
    made.__module__ = __name__
    made.__qualname__ = f"{_PREFIX}{', '.join((str(roots), *columns))})"
    made.__doc__ = f"A row of {', '.join(columns)}; other names are those of its beginning."
    return made


def nested_row(roots: int, columns: tuple[str, ...], values: Iterable[Any]) -> Any:
    """Return a row with the given columns."""
    return nested_class(roots, columns)(*values)


def is_nested(value: Any) -> bool:
    """Return True if a value is a nested row."""
    return is_nested_class(type(value))


def is_nested_class(kind: Any) -> bool:
    """Return True if a class is one of nested rows."""
    return getattr(kind, "__reduce__", None) is _reduce_row


def __getattr__(name: str) -> Any:
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    roots, *columns = name[len(_PREFIX) : -1].split(", ")
    return nested_class(int(roots), tuple(columns))


def _reduce_row(row: Any) -> Any:
    return nested_row, (row.roots, row._fields, tuple(row))
