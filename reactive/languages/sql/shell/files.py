"""Tables from files: CSV with a header, and Parquet.

id,town,total          orders(id: int, town: str, total: float | None)
1,Bonn,7.5
2,Ulm,
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from optimizer.errors import PlanError
from reactive.languages.sql.statements.table_rows import table_class
from reactive.languages.sql.terms.schema import field_names
from reactive.languages.sql.terms.types import ANY, TEXT, SqlType, hint_of, type_of_value

KINDS = (".csv", ".parquet")


def is_file(name: str) -> bool:
    """Whether a name is that of a file with rows."""
    return Path(name).suffix.lower() in KINDS


def load(db: Any, path: str | Path, name: str | None = None) -> Any:
    """Make a table of a file's rows; its name is that of the file, without the suffix.

    An empty cell of a CSV is NULL. A column is of the first of these types that all of its cells
    are of: int, float, date, timestamp, bool, text.

    Raises
    ------
    PlanError: it is neither CSV nor Parquet, or has no columns; or pyarrow is not installed.
    OSError: it cannot be read.
    """
    path = Path(path)
    read = {".csv": _csv, ".parquet": _parquet}.get(path.suffix.lower())
    if read is None:
        raise PlanError(f"{path.name} is neither .csv nor .parquet")
    names, columns = read(path)
    if not names:
        raise PlanError(f"{path.name} has no columns\n  the first line of a CSV names them")
    called = path.stem if name is None else name
    hints = [hint_of(_type(column), nullable=None in column) for column in columns]
    row_type = table_class(called, tuple(zip(field_names(names), hints, strict=True)))
    table = db.table(row_type, name=called)
    table.add_all(map(row_type, *columns) if columns[0] else ())
    return table


def _type(column: Sequence[Any]) -> SqlType:
    kinds = {type_of_value(value) for value in column if value is not None}
    return kinds.pop() if len(kinds) == 1 else ANY if kinds else TEXT


def _csv(path: Path) -> tuple[list[str], list[list[Any]]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        lines, begin = list[list[str]](), 1
        try:
            for line in reader:
                lines.append(line)
                begin = reader.line_num + 1
        except csv.Error as error:
            raise PlanError(
                f"cannot read {path.name}, line {begin}: {error}\n"
                "  close each quote that begins a cell, and write one within it twice"
            ) from error
    names, rows = (lines[0], lines[1:]) if lines else ([], [])
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise PlanError(f"{path.name}, row {number}: {len(row)} cells, not {len(names)}")
    columns = [[row[place] for row in rows] for place in range(len(names))]
    return names, [_converted(column) for column in columns]


def _converted(cells: list[str]) -> list[Any]:
    """The cells as values of the first type that all of them are of."""
    for read in (int, float, date.fromisoformat, datetime.fromisoformat, _bool):
        made = _all(read, cells)
        if made is not None:
            return made
    return [cell or None for cell in cells]


def _all(read: Callable[[str], Any], cells: list[str]) -> list[Any] | None:
    try:
        return [read(cell) if cell else None for cell in cells] if any(cells) else None
    except ValueError:
        return None


def _bool(cell: str) -> bool:
    found = {"true": True, "false": False}.get(cell.strip().lower())
    if found is None:
        raise ValueError(cell)
    return found


def _parquet(path: Path) -> tuple[list[str], list[list[Any]]]:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise PlanError(f"{path.name} is read by pyarrow\n  pip install pyarrow") from None
    table = parquet.read_table(path)
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return list(table.column_names), columns


def _plain(value: Any) -> Any:
    """A value that can be in a row: lists are tuples."""
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return tuple(map(_plain, value.values())) if isinstance(value, dict) else value
