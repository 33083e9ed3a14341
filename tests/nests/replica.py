"""Nested rows that are known from nothing but edits."""

from __future__ import annotations

from typing import Any

from reactive import Bag, Delta, Edit

NOTHING: Bag[Any] = Bag()


class Replica:
    """A copy of a view, which begins with no rows: `()` if they have an order."""

    def __init__(self, view: Any, rows: Any = NOTHING) -> None:
        self.rows: Any = rows
        self.subscription = view.subscribe(self.receive, snapshot=True)

    def receive(self, delta: Delta[Any]) -> None:
        now: dict[tuple[Any, ...], Any] = {}
        for edit in delta.edits:
            self.rows = edited(self.rows, edit.path, edit, now)


def edited(
    rows: Any,
    path: tuple[Any, ...],
    edit: Edit,
    now: dict[tuple[Any, ...], Any],
    above: tuple[Any, ...] = (),
) -> Any:
    """Return rows after an edit at a path below them.

    An edit of inner rows applies to all copies of the outer row, an edit of a field to one copy;
    `now` maps rows that identify themselves to their current form after earlier edits.
    """
    if path:
        key, name, *below = path
        above = (*above, key)
        own = now.get(above, key)
        found = [row for row in rows if itself(row) == own or has_key(row, key)]
        assert found, f"{edit} changes what is not there"
        made = change_in(found[0], name, tuple(below), edit, now, (*above, name))
        now[above] = itself(made)
        others = list(rows)
        if name in found[0]._fields and is_nested(found[0]):
            return type(rows)(made if row in found else row for row in rows)
        others[others.index(found[0])] = made
        return type(rows)(others)
    if isinstance(rows, tuple):
        made, at = list(rows), edit.position
        if edit.weight > 0:
            made.insert(at, edit.row)
        else:
            assert made.pop(at) == edit.row
        return tuple(made)
    counts = dict(rows.items())
    counts[edit.row] = counts.get(edit.row, 0) + edit.weight
    assert counts[edit.row] >= 0, edit
    return Bag({row: count for row, count in counts.items() if count})


def itself(row: Any) -> Any:
    """Return a row without its inner rows."""
    return row[0] if is_nested(row) else row


def is_nested(row: Any) -> bool:
    return hasattr(row, "roots")


def has_key(row: Any, key: Any) -> bool:
    """Return True if a key identifies a row: the row itself, or its id."""
    return key in (itself(row), getattr(itself(row), "id", itself(row)))


def change_in(row: Any, name: str, *where: Any) -> Any:
    """Return a row with an edited binding, or with an edited field of its first binding."""
    if name not in row._fields:
        return row._replace(**{row._fields[0]: change_in(row[0], name, *where)})
    return row._replace(**{name: edited(getattr(row, name), *where)})
