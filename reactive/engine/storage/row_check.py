"""Checked rows and keyed stores: rows by their annotations, and one row for each key.

`RowCheck` checks the rows of one class against the annotations of its fields, by generated
functions.

    class Order:                    def is_unfit(row):
        id: int                         return row.id is None or row.town is None
        town: str                   None is allowed only if declared: note: str | None
        note: str | None
                                    strict:
                                        return row.id.__class__ not in Classes or ...

A field that admits everything costs nothing. If one loop proves all rows plain (`plain_rows.py`),
the allowed classes are part of that loop, and there is no other check.

Cost: 5 ns per field of a row; O(fields) to generate the functions, once per class.

`KeyedStore` holds the rows of a keyed table: one per key.

    key -> row

State:  every row; a dictionary entry for its key and a reference.
Cost:   O(1) per row.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import is_not
from types import MappingProxyType
from typing import Any, ClassVar

from optimizer.kinds.fields import by_class, is_record
from optimizer.kinds.kind import (
    Anything,
    Either,
    Items,
    Kind,
    Places,
    Scalar,
    Struct,
    admits,
    admits_none,
    classes_of,
    kind_of,
    with_none,
)
from optimizer.kinds.kind import name_of as kind_name
from optimizer.record import record
from optimizer.rewriting import columns
from reactive.engine.codegen.functions import BoundValues, build, build_at_first_call
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.storage import plain_rows
from reactive.engine.storage.rows import SURE
from reactive.engine.storage.store import Absent, Duplicate, shrink_dict

NOTHING: Mapping[str, Any] = MappingProxyType({})
FEW = 4
"""Maximum number of items of a named tuple tested for None in one expression.

That takes 22 ns and 18 per item; unpacking takes 54 ns and 10 per item.
"""
ALWAYS_STRICT = "__always_strict__"
"""Attribute of row classes whose values have the declared classes in every database."""


@record
class CheckedPart:
    """A part of a row that does not admit everything.

    place: the name of the field, or the index of an item; None for all items, or the row itself.
    text: its value in generated code.
    kind: its declared type.
    """

    place: Any
    text: str
    kind: Kind


class RowCheck:
    """The check of rows of one class.

    Parameters
    ----------
    kind: the class of the rows.
    row_type: the declaration of the table, with the types of tuple items.
    strict: True if values of other classes than declared are refused, besides None.

    >>> from typing import NamedTuple
    >>> Order = NamedTuple("Order", [("id", int), ("town", str), ("note", str | None)])
    >>> check = row_check(Order, Order, strict=False)
    >>> check.is_unfit(Order(1, "Bonn", None)), check.is_unfit(Order(1, None, None))
    (False, True)
    >>> print(check.refusal(Order(1, None, None)))
    field 'town' is None, and is declared str
      give a value, or declare `town: str | None`
    """

    def __init__(self, kind: Any, row_type: Any, *, strict: bool) -> None:
        self._strict = strict
        self._kind = kind
        self.parts: list[CheckedPart] = self._parts(kind, kind_of(row_type))
        self.has_plain_items = bool(self.parts) and not strict and _has_plain_items(kind)
        """True if `None in row` runs no user code, as long as the items are as declared."""

    def texts(self, values: BoundValues, *, at_once: bool = True) -> list[str]:
        """Return tests, one of them true if a row may not be as declared.

        at_once: True if one expression may test all items; `None in row` is many times faster than
                 reading the fields of a named tuple.
        """
        asked = [self._part_test(part, values) for part in self.parts]
        if not (at_once and self.has_plain_items):
            return asked
        is_all = len(self.parts) == len(self._kind._fields)
        return ["None in row" if is_all else f"None in row and ({' or '.join(asked)})"]

    @cached_property
    def is_unfit(self) -> Callable[[Row], bool] | None:
        """The function that is true if a row may not be as declared; None if every row is."""
        if not self.parts:
            return None
        values = BoundValues({"row", "rows"})
        line = f"return {' or '.join(self.texts(values))}"
        return _build_check("is_unfit", "row", [line], values.by_name)

    def allowed_classes(self, width: int, kind: Any) -> plain_rows.Shape:
        """Return the allowed plain classes of each compared field, or item; empty if all are."""
        if not self.parts:
            return ()
        names: Any = range(width) if kind is tuple else plain_rows.plain_fields(kind) or (None,)
        by_place = {part.place: self._classes(part.kind) for part in self.parts}
        everywhere = by_place.get(None, plain_rows.PLAIN)
        return tuple([by_place.get(name, everywhere) for name in names])

    def refusal(self, row: Row) -> str | None:
        """Return the reason and the remedy if a row is not as declared; None if it is."""
        found = (self._why(part, _part_value(row, part)) for part in self.parts)
        return next((why for why in found if why is not None), None)

    def refusal_of(self, place: Any, value: Any) -> str | None:
        """Return why a value is not as its field is declared, and the remedy; None if it is."""
        part = next((part for part in self.parts if part.place == place), None)
        return None if part is None else self._why(part, value)

    def _why(self, part: CheckedPart, value: Any) -> str | None:
        """Return why a value is unfit for a part of a row; None if it is fit."""
        if value is None and not admits_none(part.kind):
            return self._none(part)
        if not self._strict or value is _ABSENT or admits(part.kind, value):
            return None
        declared, kind = kind_name(part.kind), type(value).__name__
        is_inside = kind == declared.partition("[")[0]
        what = f"{value!r:.100}" if is_inside else f"the {kind} {value!r:.100}"
        return (
            f"{_part_name(part)} is {what}, and is declared {declared}\n"
            "  give a value of that type, or declare another one"
        )

    def _none(self, part: CheckedPart) -> str:
        """Return the message for a None in a part that is not declared to allow it."""
        kind = part.kind
        if isinstance(part.place, str):
            remedy = f"declare `{part.place}: {with_none(kind)}`"
        elif part.place is not None:
            remedy = f"declare item {part.place} as `{with_none(kind)}`"
        else:
            kind = kind.item if isinstance(kind, Items) else kind
            remedy = f"declare its items as `{with_none(kind)}`"
        what = f"{_part_name(part)} is None, and is declared {kind_name(kind)}"
        return f"{what}\n  give a value, or {remedy}"

    def _parts(self, kind: Any, declared: Kind) -> list[CheckedPart]:
        """Return the parts of a row that its declaration asks to check."""
        found: list[CheckedPart] = []
        which = _declared_as(kind, declared)
        match which:
            case Struct():
                fields = which.fields.items()
                found = [CheckedPart(name, f"row.{name}", of) for name, of in fields]
            case Places(items):
                found = [CheckedPart(place, f"row[{place}]", of) for place, of in enumerate(items)]
            case Items():
                return [CheckedPart(None, "row", which)] if self._is_asked(which.item) else []
            case None:
                pass
            case _ if self._strict:
                found = [CheckedPart(None, "row", which)]
        return [part for part in found if self._is_asked(part.kind)]

    def _is_asked(self, kind: Kind) -> bool:
        return not isinstance(kind, Anything) if self._strict else not admits_none(kind)

    def _part_test(self, part: CheckedPart, values: BoundValues) -> str:
        """Return the text of a test that is true of every unfit value, and perhaps of others."""
        if not self._strict:
            is_many = part.place is None
            return f"None in {part.text}" if is_many else f"{part.text} is None"
        classes = classes_of(part.kind)
        if classes is None:
            test = values.name(partial(admits, part.kind), "admits")
            return f"not {test}({part.text})"
        if len(classes) == 1:
            (kind,) = classes
            return f"{part.text}.__class__ is not {values.name(kind, kind.__name__)}"
        return f"{part.text}.__class__ not in {values.name(classes, 'Classes')}"

    def _classes(self, kind: Kind) -> frozenset[type]:
        """Return the plain classes all of whose instances are allowed."""
        kind = kind.item if isinstance(kind, Items) else kind
        if self._strict:
            return (classes_of(kind) or frozenset()) & plain_rows.PLAIN
        return plain_rows.PLAIN - ({type(None)} if not admits_none(kind) else set())


def row_check(kind: Any, row_type: Any, *, strict: bool) -> RowCheck:
    """Return the check of rows of a class in a table that declares rows of a type."""
    try:
        return _cached_check(kind, row_type, strict)
    except TypeError:  # an unhashable type, such as Annotated[int, []]
        return RowCheck(kind, row_type, strict=strict)


@by_class
def _cached_check(kind: Any, row_type: Any, strict: bool) -> RowCheck:
    return RowCheck(kind, row_type, strict=strict)


def row_test_text(kind: Any, nan: Sequence[str], check: RowCheck) -> plain_rows.RowText:
    """Return the source text of tests for a row of a class with sufficient annotations.

    nan: tests, one of them true if a row holds a NaN.

    If several items of a named tuple are tested, they are unpacked, which is faster than reading
    them by name. `None in row` is faster than both for few items, and slower for many.
    """
    values = BoundValues({"row", "rows"})
    values.by_name |= {"Kind": kind, "reraise_asynchronous": reraise_asynchronous}
    at_once = check.has_plain_items and len(kind._fields) <= FEW
    asked = check.texts(values, at_once=at_once)
    is_unpacked = bool(asked) and not at_once and _is_named_tuple_kind(kind)
    is_odd, lines = " or ".join([*nan, *asked]), list[str]()
    if is_unpacked:
        parts = {f"row.{name}": f"part_{place}" for place, name in enumerate(kind._fields)}
        is_odd = re.sub(r"row\.\w+", lambda name: parts[name[0]], is_odd)
        lines = ["".join(f"{part}, " for part in parts.values()) + "= row"]
    return plain_rows.RowText(lines, is_odd, "row", values.by_name, ())


def one_test(text: plain_rows.RowText) -> Callable[[Row], bool]:
    """Return a function that is true of a row of another class, and of an odd row.

    It is also true of a row whose fields cannot be read, or compared with None.
    """
    lines = ["if row.__class__ is not Kind:", "    return True", *text.unpacked]
    return _build_check("is_odd", "row", [*lines, f"return {text.is_odd or False}"], text.by_name)


def many_tests(kind: Any, text: plain_rows.RowText) -> Callable[[Sequence[Row]], bool]:
    """Return a function that is true of rows if one of them has another class or is odd."""
    if not text.is_odd:
        return lambda rows: set(map(type, rows)) != {kind}
    each = ["if row.__class__ is not Kind:", "    return True", *text.unpacked]
    each += [f"if {text.is_odd}:", "    return True"]
    lines = ["for row in rows:", *(f"    {line}" for line in each), "return False"]
    return build_at_first_call(lambda: _build_check("are_odd", "rows", lines, text.by_name))


def _is_named_tuple_kind(kind: Any) -> bool:
    """Return True for named tuples whose items Python reads without a call."""
    if not issubclass(kind, tuple) or not getattr(kind, "_fields", ()):
        return False
    its, plain = (kind.__iter__, kind.__contains__), (tuple.__iter__, tuple.__contains__)
    return bool(its == plain)


def _build_check(
    name: str, parameter: str, lines: Sequence[str], by_name: Mapping[str, Any]
) -> Callable[[Any], Any]:
    """Return a compiled test of a row, or of rows, that is True if evaluating it raises."""
    values = BoundValues({"row", "rows"})
    values.by_name |= by_name
    values.by_name["reraise_asynchronous"] = reraise_asynchronous
    return build(name, plain_rows.careful(name, parameter, lines, "True"), values)


_ABSENT = object()


def _part_value(row: Row, part: CheckedPart) -> Any:
    """Return the value of a part of a row; `_ABSENT` for a missing attribute."""
    if isinstance(part.place, str):
        return getattr(row, part.place, _ABSENT)
    if part.place is not None:
        return row[part.place]
    return None if isinstance(part.kind, Items) and _holds_none(row) else row


def _has_plain_items(kind: Any) -> bool:
    """Return True if all fields of a named tuple are declared with plain classes."""
    if not _is_named_tuple_kind(kind):
        return False
    fields = Struct(kind).fields
    some = [classes_of(fields.get(name, Anything())) for name in kind._fields]
    return all(each is not None and each <= plain_rows.PLAIN for each in some)


def _holds_none(row: Any) -> bool:
    return any(item is None for item in row)


def _part_name(part: CheckedPart) -> str:
    if part.place is None:
        return "an item" if isinstance(part.kind, Items) else "the row"
    return f"field {part.place!r}" if isinstance(part.place, str) else f"item {part.place}"


def _declared_as(kind: Any, declared: Kind) -> Kind | None:
    """Return the part of a declared type that describes rows of a class; None if there is none."""
    some = declared.kinds if isinstance(declared, Either) else (declared,)
    same = [each for each in some if getattr(each, "python", tuple) is kind]
    if len(same) == 1:
        return same[0]
    if is_record(kind):
        return Struct(kind)
    return declared if isinstance(declared, Scalar) else None


class KeyedStore:
    """At most one row per key."""

    interns: ClassVar[bool] = True
    wants_plain: ClassVar[bool] = True
    __slots__ = ("by_key", "call", "field", "key")

    def __init__(self, key: Callable[[Row], Any], call: Callable[[Row], Any] | None = None) -> None:
        self.key = key
        """Returns the key of a row, even before it is stored; raises if the key is not allowed."""
        self.call = key if call is None else call
        """The key without these checks."""
        self.by_key: dict[Any, Row] = {}
        """The rows by key; changed only by this class and generated functions (`one_row.py`)."""
        self.field: plain_rows.RowField | None = None
        """The key field, if a first load has shown the shape of rows."""

    @property
    def key_field(self) -> str | None:
        """The name of the key field; None if the key is not a field."""
        return columns.field_read(self.call)

    def add(self, row: Row, count: int) -> Pair:
        """Add one row and return its pair; raises `Duplicate` if its key is held."""
        hash(row)  # rows must be hashable, though only the key is hashed here
        key_of = self.key
        key = key_of(row)
        held = self.by_key.get(key)
        if held is not None or count != 1:
            raise Duplicate(row if held is None else held)
        self.by_key[key] = row
        return (row, 1)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add each row; return the objects stored for them."""
        try:
            deque(map(hash, rows), 0)  # rows must be hashable, though only keys are hashed here
        except Exception as error:  # raised again below, where the row is known
            reraise_asynchronous(error)
            return self._add_each(rows)
        return self._add_all(rows)

    def add_plain(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add rows as `add_rows` does; they are known to be hashable."""
        if not self.by_key:
            self.field = plain_rows.named_field(rows, self.key_field)
        return self._add_all(rows)

    def _add_all(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows if self._add_new(rows) else self._add_each(rows)

    def _add_each(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add rows one by one, and return them; if one is refused, none is added."""
        done: list[Pair] = []
        try:
            for row in rows:
                done.append(self.add(row, 1))
        except BaseException:
            self.revert(done)
            raise
        return rows

    def _add_new(self, rows: Sequence[Row]) -> bool:
        """Add all rows together if all their keys are new; otherwise return False."""
        try:
            new = dict(zip(self.keys_of(rows), rows, strict=True))
            is_new = len(new) == len(rows) and new.keys().isdisjoint(self.by_key.keys())
        except Exception as error:  # as above
            reraise_asynchronous(error)
            return False
        if not is_new:
            return False
        try:
            self.by_key.update(new)
        except BaseException:  # a late comparison that raises, or an interrupt
            for key, row in new.items():
                if self.by_key.get(key) is row:
                    del self.by_key[key]
            raise
        return True

    def keys_of(self, rows: Sequence[Row]) -> Iterable[Any]:
        """Return the keys of rows; keys that may be a NaN, or raise, are checked one by one."""
        try:
            keys = list(map(self.call, rows))
        except Exception as error:
            reraise_asynchronous(error)
            return map(self.key, rows)
        return keys if SURE.issuperset(map(type, keys)) else map(self.key, rows)

    def remove(self, row: Row, count: int) -> Pair:
        """Remove a row and return its pair; raises `Absent` if its key holds no equal row."""
        key_of = self.key
        key = key_of(row)
        held = self.by_key.get(key)
        if held is None or count != 1 or not (held is row or held == row):
            raise Absent
        del self.by_key[key]
        return (held, -1)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Remove each row; return the objects that were stored for them.

        Raises `Absent` if a row is not held; then none is removed.
        """
        done: list[Pair] = []
        try:
            for row in rows:
                done.append(self.remove(row, 1))
            return [row for row, _ in done]
        except BaseException:
            self.revert(done)
            raise

    def remove_held(self, rows: Sequence[Row]) -> Sequence[Row] | None:
        """Remove rows that are the held objects, and return them.

        Return None, with nothing changed, if a row must be looked at by itself.
        """
        held = self.by_key
        try:
            keys = list(map(self.call, rows))
            if not SURE.issuperset(map(type, keys)) or len({*keys}) < len(keys):
                return None
        except Exception as error:  # raised again for the row
            reraise_asynchronous(error)
            return None
        if any(map(is_not, map(held.get, keys), rows)):
            return None
        try:
            deque(map(held.pop, keys), 0)
        except BaseException:  # an interrupt
            held.update(zip(keys, rows, strict=True))
            raise
        return rows

    def replace_by_key(self, gone: Mapping[Any, Row], come: Mapping[Any, Row]) -> None:
        """Remove stored rows and add others, both by key; an interrupt changes nothing."""
        try:
            for key in gone:
                del self.by_key[key]
            self.by_key.update(come)
        except BaseException:
            for key in come.keys() - gone.keys():
                self.by_key.pop(key, None)
            self.by_key.update(gone)
            raise

    def revert(self, changes: Iterable[Pair]) -> None:
        """Undo changes; if an interrupt arrives, the store is left as before: undo again later."""
        net = consolidate(changes)
        came = {self.key(row): row for row, weight in net if weight > 0}
        gone = {self.key(row): row for row, weight in net if weight < 0}
        self.replace_by_key(came, gone)

    def take(self, count: int) -> list[Row]:
        """Remove `count` rows for another store; the last rows added are removed first."""
        count = min(count, len(self.by_key))
        taken = [self.by_key.popitem()[1] for _ in range(count)]
        self.by_key = shrink_dict(self.by_key)
        return taken

    def recount(self) -> None: ...

    def get(self, key: Any) -> Row | None:
        """Return the row of a key, or None; a row is never None, because it has a key."""
        return self.by_key.get(key)

    def held_row(self, row: Row) -> Row:
        """Return the stored object that equals a row; the row itself if there is none."""
        held = self.by_key.get(self.key(row))
        return held if held is not None and held == row else row

    def count(self, row: Row) -> int:
        held = self.by_key.get(self.key(row))
        return int(held is not None and (held is row or held == row))

    def pairs(self) -> Iterable[Pair]:
        return ((row, 1) for row in self.by_key.values())

    def distinct(self) -> list[Row]:
        """Return all rows."""
        return list(self.by_key.values())

    def keys(self) -> Iterator[Any]:
        return iter(self.by_key)

    def __len__(self) -> int:
        return len(self.by_key)

    def bytes(self) -> int:
        return sys.getsizeof(self.by_key)
