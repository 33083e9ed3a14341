"""Many stored rows are read without a check of each, unless a value is stored as bytes.

The rows are unchanged, and the table accepts and refuses the same rows as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from reactive import Database, TableError
from reactive.borders.durable.rows.declared import StoredKinds

NAN = float("nan")


class Struct(msgspec.Struct, frozen=True):
    id: int
    value: Any


class Named(NamedTuple):
    id: int
    value: Any


@dataclass(frozen=True)
class Data:
    id: int
    value: Any


@dataclass(frozen=True)
class Doubled:
    """A class whose constructor does not restore the stored value."""

    id: int
    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", (self.value or 0) * 2)


@dataclass(frozen=True)
class Part:
    """Equal by a part of it."""

    id: int
    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


CASES: list[tuple[list[Any], bool]] = [
    ([1, 2], True),
    ([1.5, None, "ö", -0.0, float("inf")], True),
    ([1, NAN], False),
    ([True, 2], False),
    ([b"x", 1], False),
    ([(1, 2), 1], False),
    ([2**70, 1], False),
]


@pytest.mark.long
@pytest.mark.parametrize("kind", [Struct, Named, Data, Doubled, Part])
@pytest.mark.parametrize(("values", "is_plain"), CASES)
@pytest.mark.parametrize("key", [None, "id"])
def test_rows_that_are_read_together(
    tmp_path: Path,
    kind: Any,
    values: list[Any],
    is_plain: bool,
    key: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []
    test_of = StoredKinds.test_of

    def noted(self: StoredKinds, rows: Any) -> Any:
        found = test_of(self, rows)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(StoredKinds, "test_of", noted)
    if kind is Doubled:
        values = [v for v in values if type(v) in (int, float)]
        is_plain = is_plain or values in ([1], [2])
    rows = [kind(n, values[n % len(values)]) for n in range(300)]
    with Database(tmp_path / "rows.db") as db:
        db.table(kind, key=key, name="rows").add_all(rows)
    with Database(tmp_path / "rows.db") as db:
        table = db.table(kind, key=key, name="rows")
        assert seen == [is_plain and kind is not Part]
        assert sorted(map(repr, table)) == sorted(map(repr, rows))
        twin = Database().table(kind, key=key, name="rows")
        twin.add_all(rows)
        for row in (rows[7], kind(3000, NAN), kind(3001, 1), kind(3002, b"x")):
            results = [outcome(each, row) for each in (table, twin)]
            assert results[0] == results[1]
        assert len(table) == len(twin)
        table.remove(kind(3000, float("nan")))
        table.remove(rows[8])
        with pytest.raises(TableError, match="rows"):
            table.remove(kind(5000, 1))


def outcome(table: Any, row: Any) -> str:
    try:
        table.add(row)
    except Exception as error:
        return f"{type(error)} {error}"
    return repr(row in table)
