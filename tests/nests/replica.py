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
        for edit in delta.edits:
            self.rows = edited(self.rows, edit.path, edit)


def edited(rows: Any, path: tuple[Any, ...], edit: Edit) -> Any:
    """Rows after an edit at a path below them. Those with its key change, all copies of them."""
    if path:
        key, name, *below = path
        found = [row for row in rows if key in (itself(row), itself(row).id)]
        assert found, f"{edit} changes what is not there"
        kind = type(rows)
        return kind(change_in(row, name, below, edit) if row in found else row for row in rows)
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
    """A row without what is inside."""
    return getattr(row, "row", row)


def change_in(row: Any, name: str, path: Any, edit: Edit) -> Any:
    """A row of which a binding changes, or a field of the row that it begins with."""
    if name not in row._fields:
        return row._replace(row=change_in(row.row, name, path, edit))
    return row._replace(**{name: edited(getattr(row, name), tuple(path), edit)})
