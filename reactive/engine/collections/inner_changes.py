"""Rows with others inside them, and what changed in a bag inside a row.

A row that differs from another only in a bag inside: what changed is in the bag.

    (old, -1), (new, +1)        old.town is new.town, old.orders = {a, b}, new.orders = {a, c}

    (~old, -1), (~new, +1)      ~old.orders = [b], ~new.orders = [c]

What goes over the bag of a row, and reads of the row nothing but some fields, does the same to `a`
of both rows, once for each sign. So it is given what stands for the rows: their fields, and of the
bag what the other bag does not have. So it goes on, to bags in what the bag has.

Fields have to be the same objects, or numbers and texts of one class: 1 and 1.0 are equal, and
something may tell them apart. So have values of bags, or else both are told.

Sound:  unnest is linear, and what comes of a value that both have cancels.
State:  none.
Cost:   O(|dL|), and for rows of one pair what `Bag.difference` costs.
Source: [slender] deep updates; [dbsp] linear operators.

Rows with others inside them: generated named tuples that read as the row that they begin with.

Row(row=Customer(7, "Ann"), orders=Bag(...))

row.orders                  the rows inside
row.name                    no binding: that of the customer

Each class is an attribute of this module, by a name that says its columns, so that other processes
find it there: `Row(1, row, orders)`.
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
"""An attribute or an item of a row: `attrgetter` or `itemgetter`, and its name or place; or one of
`VIEWS`, and the field that is a mapping."""


class InnerRow:
    """Stands for a row: it has some of its attributes, and of its items."""

    __slots__ = ("__dict__", "__items")

    def __init__(self, attributes: dict[str, Any], items: dict[Any, Any]) -> None:
        self.__dict__ = attributes
        self.__items = items

    def __getitem__(self, key: Any) -> Any:
        return self.__items[key]


class InsideMapping:
    """Stands for a mapping: it has some of its keys, values or items."""

    __slots__ = ("_inside",)

    def __init__(self, inside: list[Any]) -> None:
        self._inside = inside

    def keys(self) -> list[Any]:
        return self._inside

    values = items = keys


def _keys_of(field: Field) -> Callable[[Any], Any]:
    return _view_of(field, "keys")


def _values_of(field: Field) -> Callable[[Any], Any]:
    return _view_of(field, "values")


def _items_of(field: Field) -> Callable[[Any], Any]:
    return _view_of(field, "items")


def _view_of(field: Field, name: str) -> Callable[[Any], Any]:
    """What reads that of a mapping in a field; None, if it does not say how it differs."""
    read, key = field
    get = read(key)

    def view(row: Any) -> Any:
        found = get(row)
        return getattr(found, name)() if isinstance(found, Foldable) else None

    return view


VIEWS: dict[str, Any] = {"keys": _keys_of, "values": _values_of, "items": _items_of}


class InnerBag:
    """A bag of a row that is gone over, and what else is read of the row.

    Parameters
    ----------
    bag: the field that is the bag.
    fields: what else is read.
    within: the bags that are gone over in what the bag has.
    binding: where the row is among several.
    others: where others are that are read.
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
        """Of the fields, if all are attributes."""
        self._within = tuple(within)
        self._binding = binding
        self._others = tuple(others)

    def __call__(self, delta: Pairs) -> Pairs:
        """A delta, in which rows of one bag that changed have only what changed of it."""
        if len(delta) < 2 or delta.__class__ is UniformDelta:
            return delta
        try:
            if len(delta) == 2 and delta[0][1] < 0 < delta[1][1]:
                return self._of_two(delta)
            return self._paired(delta) if is_mixed(delta) else delta
        except Exception as error:  # whoever reads the rows one after the other raises it, or not
            reraise_asynchronous(error)
            return delta

    def keyed(self, delta: Sequence[tuple[Any, Pair]]) -> Sequence[tuple[Any, Pair]]:
        """The same of pairs beside keys."""
        if len(delta) < 2 or delta.__class__ is not list:
            return delta
        pairs = [pair for _, pair in delta]
        if not is_mixed(pairs):
            return delta
        try:
            found = self._found(pairs, [_items(key) for key, _ in delta])
        except Exception as error:  # as above
            reraise_asynchronous(error)
            return delta
        every = [(key, found.get(place, pair)) for place, (key, pair) in enumerate(delta)]
        return [(key, pair) for key, pair in every if pair is not None] if found else delta

    def _of_two(self, delta: Pairs) -> Pairs:
        """As `_paired`, of a row that goes and one that comes, which need not be found."""
        (old, gone), (new, came) = delta
        place, getters = self._binding, self._getters
        one, other = (old, new) if place is None else (old[place], new[place])
        before, after = [get(one) for get in getters], [get(other) for get in getters]
        bag = before[-1]
        if gone != -came or bag.__class__ is not after[-1].__class__:
            return delta
        if not isinstance(bag, Foldable) or not all(map(_are_one, before[:-1], after[:-1])):
            return delta
        for beside in self._others:
            if not _are_one(old[beside], new[beside]):
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

    def _paired(self, delta: Pairs) -> Pairs:
        found = self._found(delta, [()] * len(delta))
        if not found:
            return delta
        every = [found.get(place, pair) for place, pair in enumerate(delta)]
        return [pair for pair in every if pair is not None]

    def _found(self, delta: Pairs, keys: Sequence[Values]) -> dict[int, Pair | None]:
        """What stands for rows, by their places."""
        old, new = self._changed(delta, keys, -1), self._changed(delta, keys, 1)
        found: dict[int, Pair | None] = {}
        if len(old) > 1 or len(new) > 1:
            self._match(old, new, _likeness, found)
        if old and new:
            self._match(old, new, _marks, found)
        return found

    def _changed(self, delta: Pairs, keys: Sequence[Values], sign: int) -> dict[int, _Changed]:
        """By their places the rows that go, or come, and have a bag."""
        found: dict[int, _Changed] = {}
        for place, (row, weight) in enumerate(delta):
            if weight * sign > 0:
                own = row if self._binding is None else row[self._binding]
                values = [get(own) for get in self._getters]
                if isinstance(values[-1], Foldable):
                    read = (*keys[place], *[row[other] for other in self._others], *values)
                    found[place] = _Changed(row, weight, own, read)
        return found

    def _match(
        self,
        old: dict[int, _Changed],
        new: dict[int, _Changed],
        mark: Callable[[_Changed], Values],
        found: dict[int, Pair | None],
    ) -> None:
        """Find rows of the same marks, say what stands for both, and take them away."""
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
        old: _Changed,
        after: int,
        new: _Changed,
    ) -> None:
        """Say what stands for two rows: nothing, where their bags have nothing of their own."""
        changes: Pairs = new.read[-1]._changed_since(old.read[-1])
        for inner in self._within:
            changes = inner(changes)
        for place, each, sign in ((before, old, -1), (after, new, 1)):
            inside = [v for v, weight in changes for _ in range(weight * sign)]
            stands = self._standing(each.row, each.read, inside) if inside else None
            found[place] = (stands, each.weight) if inside else None

    def _standing(self, row: Row, values: Sequence[Any], inside: list[Any]) -> Any:
        """What stands for a row with that in its bag."""
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


class _Changed(NamedTuple):
    """A row of a delta: with the binding that has the bag, and what is read, last the bag; before
    that, of a row beside a key, the parts of this."""

    row: Row
    weight: int
    own: Row
    read: Values


def _marks(changed: _Changed) -> Values:
    """What rows have in common of which the same is read, without asking it; but the bag."""
    return tuple(map(mark, changed.read[:-1]))


def _likeness(changed: _Changed) -> Values:
    """What rows have in common that differ in bags alone: of several, those belong together."""
    fields = fields_of(changed.own)
    return (*_marks(changed), *[mark(v) for _, v in fields if not isinstance(v, Foldable)])


def fields_of(row: Any) -> list[tuple[Any, Any]]:
    """The fields of a row by their names, of a plain tuple by their places."""
    if isinstance(row, tuple):
        names = getattr(row, "_fields", None)
        return list(enumerate(row) if names is None else zip(names, row, strict=True))
    return [(name, getattr(row, name)) for name in _members(row.__class__)]


def _items(key: Any) -> Values:
    """The parts of a key."""
    return key if key.__class__ is tuple else (key,)


def mark(value: Any) -> Any:
    """What equal marks have that nothing can tell apart."""
    return value if value.__class__ in EXACT else id(value)


@by_class
def _members(kind: Any) -> list[str]:
    return members(kind)


def _are_alike(old: _Changed, new: _Changed) -> bool:
    """Whether as many go as come, with bags of one class, and the same is read of both beside."""
    if old.weight != -new.weight or old.read[-1].__class__ is not new.read[-1].__class__:
        return False
    return all(map(_are_one, old.read[:-1], new.read[:-1]))


def _are_one(old: Any, new: Any) -> bool:
    """Whether nothing can tell two values apart."""
    return old is new or (old.__class__ is new.__class__ and old.__class__ in EXACT and old == new)


_PREFIX = "Row("


@class_maker
def nested_class(roots: int, columns: tuple[str, ...]) -> Any:
    """The class of rows with these columns, the first of which are what names are looked up in.

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

    body = {"__slots__": (), "__getattr__": __getattr__, "__reduce__": _reduced, "roots": roots}
    made: Any = type("Row", (base,), body)
    made.__module__ = __name__
    made.__qualname__ = f"{_PREFIX}{', '.join((str(roots), *columns))})"
    made.__doc__ = f"A row of {', '.join(columns)}; other names are those of its beginning."
    return made


def nested_row(roots: int, columns: tuple[str, ...], values: Iterable[Any]) -> Any:
    """A row with these columns."""
    return nested_class(roots, columns)(*values)


def is_nested(value: Any) -> bool:
    """Whether a value is a row with others inside."""
    return is_nested_class(type(value))


def is_nested_class(kind: Any) -> bool:
    """Whether a class is one of rows with others inside."""
    return getattr(kind, "__reduce__", None) is _reduced


def __getattr__(name: str) -> Any:
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    roots, *columns = name[len(_PREFIX) : -1].split(", ")
    return nested_class(int(roots), tuple(columns))


def _reduced(row: Any) -> Any:
    return nested_row, (row.roots, row._fields, tuple(row))
