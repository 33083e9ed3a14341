"""Patch rows deeply: add values to bags inside rows, and remove values.

    customers.patch(1, ("orders", o7, "lines"), added=[tea], removed=[rum])

    customer 1         its `orders`: another row replaces o7
      o7               its `lines`, with tea and without rum

Patches of one row are collected first, by fields and by inner rows, so that each bag is changed
once, and each row is built once.

State:  none.
Cost:   O(changes log values) per bag on the path (`Bag.plus`), and building one row per level.
Source: [slender] deep updates.

`StatementGuard` refuses statements on a table whose rows are read from elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from optimizer.kinds.fields import members
from reactive.engine.collections import bag_folds
from reactive.engine.collections.bag import Bag, stored_value
from reactive.engine.collections.row_fields import copy_with_fields, with_field
from reactive.engine.collections.zset import Pair, Row, canonical
from reactive.engine.storage.rows import TRACKED_CLASSES, check_objects, checked_parts
from reactive.engine.transactions import refusals
from reactive.engine.transactions.row_gate import RowGate
from reactive.engine.transactions.statements import Statements
from reactive.errors import TableError


class Patch(NamedTuple):
    """A change of a bag inside of a row, for `Table.patch_all`.

    Parameters
    ----------
    key: of the row in a table with a key, else the row itself.
    path: the field that is a `Bag`; or a tuple, from outside to inside: a field, a row in its bag,
        a field of that row, and so on. The row is given as itself, or as a callable that is true of
        exactly one row.
    added, removed: values, or a mapping of values to counts.

    >>> Patch(1, "orders", added=["tea"])
    Patch(key=1, path='orders', added=['tea'], removed=())
    """

    key: Any
    path: Any
    added: Iterable[Any] = ()
    removed: Iterable[Any] = ()


class Patches:
    """Collects the patches of one row. `name` is the name of the table in errors."""

    __slots__ = ("_fields", "_name", "bags", "before")

    def __init__(self, name: str, row: Row) -> None:
        self._name = name
        self.before = row
        self.bags: list[Bag[Any]] = []
        """The patched bags: their new values were checked for tracked objects."""
        self._fields: dict[Any, _BagPatch] = {}

    def add(self, patch: Patch) -> None:
        """Add a patch; its path refers to the unpatched row."""
        path = _path(self._name, patch.path)
        at = self._bag(path[0], path[:1])
        for place in range(1, len(path), 2):
            at = at.inner(path[place], path[: place + 1])._bag(path[place + 1], path[: place + 2])
        at.change(patch.added, 1)
        at.change(patch.removed, -1)

    def row(self) -> Row:
        """Return the patched row; the same object if nothing changes."""
        made = self.before
        for field, each in self._fields.items():
            bag = each.bag()
            if bag is not each.before:
                self.bags.append(bag)
                made = with_field(made, field, bag)
        return made

    def _bag(self, field: Any, path: tuple[Any, ...]) -> _BagPatch:
        """Return the collected patch of the bag in a field."""
        found = self._fields.get(field)
        if found is None:
            bag = _read_bag(self._name, self.before, field, path)
            found = self._fields[field] = _BagPatch(self._name, bag, path)
        return found


class _BagPatch:
    """Collects the changes of one bag, and the patches of rows in it."""

    __slots__ = ("_changes", "_name", "_path", "_rows", "before")

    def __init__(self, name: str, before: Bag[Any], path: tuple[Any, ...]) -> None:
        self._name = name
        self.before = before
        self._path = path
        self._changes: dict[Any, int] = {}
        self._rows: dict[Row, Patches] = {}

    def inner(self, wanted: Any, path: tuple[Any, ...]) -> Patches:
        """Return the collected patches of a row in the bag."""
        row = self._find_row(wanted, path)
        return self._rows.setdefault(row, Patches(self._name, row))

    def change(self, values: Iterable[Any], sign: int) -> None:
        """Add values, or remove them."""
        if hasattr(values, "_fields") or not hasattr(values, "__iter__"):
            self._refuse(f"{values!r:.100} is one value", "give a list of values: added=[value]")
        for value, count in _value_counts(values):
            if type(count) is not int or count < 0:
                self._refuse(f"of {value!r:.100} are to be {count!r}", "a count is 0 or more")
            self._add(value, sign * count)

    def bag(self) -> Bag[Any]:
        """Return the patched bag; the same object if nothing changes."""
        for old, patches in self._rows.items():
            new = patches.row()
            if new is not old:
                self._add(old, -1)
                self._add(new, 1, [*patches.bags, *checked_parts(old)])
        changes = {value: weight for value, weight in self._changes.items() if weight}
        for value, weight in changes.items():
            held = self.before.count(value) if weight < 0 else 0
            if held + weight < 0 > weight:
                self._refuse(
                    f"{-weight} of {value!r:.100} are to go, and it has {held}",
                    "remove what is there; table[key] is the row as it is now",
                )
        return self.before.plus(changes) if changes else self.before

    def _add(self, value: Any, weight: int, known: Collection[Any] = ()) -> None:
        """Add `weight` to a value of the bag; raises `TableError` if it is not hashable.

        `known` are parts of the value that were checked for tracked objects before.
        """
        value = canonical(value)
        if weight > 0:
            check_objects(value, f"a bag in table {self._name!r}", known=known)
        try:
            self._changes[value] = self._changes.get(value, 0) + weight
        except TypeError:
            why = bag_folds.unhashable_reason(value)
            if why is None:
                raise
            self._refuse(
                f"{value!r:.100} cannot be in it: {why}",
                "values of a Bag are found by hash; use frozen dataclasses, tuples, frozensets",
            )

    def _find_row(self, wanted: Any, path: tuple[Any, ...]) -> Row:
        """Return the row that a path names: as the row itself, or as a test that one row passes."""
        if _is_in_bag(wanted, self.before):
            return stored_value(self.before, wanted)
        if not callable(wanted):
            self._refuse(
                f"{wanted!r:.100} is not in it",
                "a path names rows as they are now, or by a callable: lambda row: row.id == 7",
                path,
            )
        found = [row for row, _ in self.before.items() if wanted(row)]
        if len(found) != 1:
            self._refuse(
                f"{getattr(wanted, '__name__', wanted)} is true of {len(found)} rows in it",
                "a path names one row",
                path,
            )
        return found[0]

    def _refuse(self, what: str, remedy: str, path: tuple[Any, ...] = ()) -> NoReturn:
        """Raise `TableError`: the patch of this bag is refused because of `what`."""
        at = _path_text(path[:-1] or self._path)
        raise TableError(
            f"cannot patch {at} of a row of table {self._name!r}: {what}\n  {remedy}"
        ) from None


def _path(name: str, path: Any) -> tuple[Any, ...]:
    """Return the path as a tuple: fields at even positions, rows between. Refuses other paths."""
    found = path if isinstance(path, tuple) and not hasattr(path, "_fields") else (path,)
    if len(found) % 2 and all(isinstance(field, str | int) for field in found[::2]):
        return found
    raise TableError(
        f"{path!r:.100} is no path to a bag in a row of table {name!r}\n"
        '  a path is a field, or a field, a row in its bag, a field of it: ("orders", o, "lines")'
    )


def _read_bag(name: str, row: Row, field: Any, path: tuple[Any, ...]) -> Bag[Any]:
    """Return the bag in a field of a row; raises `TableError` if there is none."""
    fields = members(type(row))
    is_place = isinstance(field, int) and isinstance(row, tuple) and -len(row) <= field < len(row)
    if not is_place and field not in fields:
        there = f"its fields are {', '.join(fields)}" if fields else "it has no fields with names"
        if isinstance(row, tuple) and not fields:
            there = f"it has {len(row)} items, by their places from 0"
        raise TableError(
            f"cannot patch {_path_text(path)} of a row of table {name!r}: "
            f"{type(row).__name__} has no field {field!r}\n  {there}"
        )
    found = row[field] if is_place else getattr(row, field)
    if isinstance(found, Bag):
        return found
    kind = type(found).__name__
    raise TableError(
        f"cannot patch {_path_text(path)} of a row of table {name!r}: it is a {kind}, no Bag\n"
        f"  make it a Bag, as by Bag(values); or update(old, new) the row"
    )


def _is_in_bag(value: Any, bag: Bag[Any]) -> bool:
    """Return True if the value is in the bag; False for a value that is not hashable."""
    try:
        return value in bag
    except TypeError:  # it is not hashable
        return False


def _value_counts(values: Any) -> Iterable[tuple[Any, int]]:
    if isinstance(values, Mapping | Bag):
        return values.items()
    return [(value, 1) for value in values]


def _path_text(path: tuple[Any, ...]) -> str:
    """Return the fields of a path, joined by dots."""
    return ".".join(str(field) for field in path[::2])


def patch(do: Statements, given: Iterable[Patch], made: list[Row]) -> list[Pair]:
    """Run the statement that patches rows of a table, and return the delta.

    `given` has the patches. `made` is emptied, and receives the patched rows.
    """
    rows: dict[Any, Patches] = {}
    for each in given:
        found = rows.get(each.key)
        if found is None:
            found = rows[each.key] = Patches(do._table.name, _find_row_to_patch(do, each.key))
        found.add(each)
    changed = [(patches.before, patches.row(), patches.bags) for patches in rows.values()]
    made[:] = [new for _, new, _ in changed]
    return do.together(
        *(
            (lambda o=old, n=new, b=bags: do.update(o, n, b, is_held=True))
            for old, new, bags in changed
            if new is not old
        )
    )


def assign_fields(do: Statements, key: Any, fields: Mapping[str, Any]) -> Sequence[Pair]:
    """Run the statement that assigns fields of the row with a key."""
    old = do._table[key]
    check_fields(do._table.name, old, fields)
    new = copy_with_fields(old, fields)
    try:
        if TRACKED_CLASSES:
            return do.update(old, new, is_held=True)
        return (do.update_one or do.update)(old, new)
    except Exception as error:
        refusals.report_clash(do._table, new, (), do._engine.pending or (), error)
        raise


def check_fields(table: str, row: Row, fields: Iterable[str]) -> None:
    """Raise if a name is not a field of the row."""
    known = members(type(row))
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        there = f"its fields are {', '.join(known)}" if known else "update(old, new) the row"
        raise TableError(
            f"cannot update field {unknown!r} of {row!r:.200} in table {table!r}: "
            f"{type(row).__name__} has no such field\n  {there}"
        )


def _find_row_to_patch(do: Statements, key: Any) -> Row:
    """Return the row of a key; without keys, the row itself. Raises if it is not in the table."""
    table = do._table
    if table._keyed is not None:
        return table[key]
    do.check(key)
    if do.store.count(canonical(key)):
        return canonical(key)
    raise TableError(
        f"cannot patch {key!r:.200} of table {table.name!r}: it is not there\n"
        f"  {table._holds()}; without a key, a row is found by all that it has"
    )


# Statements of a table whose rows are read from elsewhere: they are refused.


class StatementGuard:
    """Replaces the statements of a table, and refuses each.

    Parameters
    ----------
    table: the table whose statements are refused from now on.
    why: the reason, for the message.
    remedy: how to change rows instead.
    """

    def __init__(self, table: Any, why: str, remedy: str) -> None:
        self.unguarded: Statements = table._do
        """The statements that follow changes elsewhere."""
        self._told = f"table {table.name!r} {why}\n  {remedy}"
        table._do = self

    @property
    def store(self) -> Any:
        return self.unguarded.store

    def move_to(self, store: Any) -> None:
        self.unguarded.move_to(store)

    @property
    def gate(self) -> RowGate:
        return self.unguarded.gate

    def note_removal(self) -> None:
        self.unguarded.note_removal()

    def check(self, row: object) -> None:
        self.unguarded.check(row)

    def __getattr__(self, name: str) -> NoReturn:
        raise TableError(self._told)
