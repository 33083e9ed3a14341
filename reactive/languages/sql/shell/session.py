"""A shell: statements change tables, and each query is a view that is printed as it changes.

    > select town, sum(total) from orders group by town;      a view, printed
    > insert into orders values (3, 'Ulm', 4);                done: 1 row; the view, printed again

`from 'orders.csv'` reads a file as a table. Statements end with a semicolon.

Tables from files: CSV with a header, and Parquet.

id,town,total          orders(id: int, town: str, total: float | None)
1,Bonn,7.5
2,Ulm,
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from sqlglot import exp

from optimizer.errors import PlanError
from reactive.api import display
from reactive.api.internal_interface import engine_of
from reactive.errors import ReactiveError
from reactive.languages.sql.entry import dialect_of, query_relation
from reactive.languages.sql.entry import execute as executed
from reactive.languages.sql.statements.definitions import table_class
from reactive.languages.sql.terms.common_types import Dialect
from reactive.languages.sql.terms.types import ANY, TEXT, SqlType, hint_of, type_of_value
from reactive.languages.sql.terms.values import unique_field_names
from reactive.languages.sql.text.read import parse_statements, statements

HELP = """[bold]select ...;[/]       a view, printed whenever it changes
[bold]insert, update, delete, create, drop ...;[/]
[bold].load FILE [TABLE][/]  a table of a CSV or Parquet file
[bold].tables[/]  [bold].views[/]     what there is
[bold].explain QUERY;[/]   how a query is kept up to date
[bold].close N[/]          end view N
[bold].quit[/]"""


class Shell:
    """Runs statements on a database, and prints views after each that changes them."""

    def __init__(self, db: Any, console: Console) -> None:
        self._db = db
        self._console = console
        self._views: dict[int, tuple[str, Any]] = {}
        """The text and the view of each number."""
        self._shown: dict[int, list[Any]] = {}
        """The rows that were printed of each."""
        self._last = 0

    @property
    def dialect(self) -> Dialect:
        return dialect_of(engine_of(self._db))

    def run(self, text: str) -> bool:
        """Run statements and print their results; return True if all succeeded."""
        done = [self._one(each) for each in statements(text)]
        return all(done)

    def _one(self, text: str) -> bool:
        """Run one command or statement; print an error in red, and return False."""
        try:
            self._command(text) if text.startswith(".") else self._statement(text)
        except (ReactiveError, OSError, ArithmeticError, TypeError, ValueError) as error:
            self._console.print(f"[red]{escape(str(error))}[/]", highlight=False)
            return False
        return True

    def _statement(self, text: str) -> None:
        """Show a query as a view, or execute statements and show the changed views."""
        found = parse_statements(text, self.dialect)
        for tree in found:
            self._load_files(tree)
        if found and isinstance(found[0], exp.Query | exp.Values):
            self._view(text)
        elif found:
            returned = list[Any]()
            count = executed(self._db, text, {}, returned)
            for row in returned[1] if returned else ():
                self._console.print(escape(repr(row)), highlight=False)
            self._console.print(f"[dim]done: {count} row{'s' * (count != 1)}[/]")
            self._show_changed()

    def _load_files(self, tree: Any) -> None:
        """Make a table of each file that a query reads."""
        known = {table.name for table in self._db.tables()}
        for table in tree.find_all(exp.Table):
            if is_file(table.name) and table.name not in known:
                load_file(self._db, table.name, table.name)
                known.add(table.name)

    # Views.

    def _view(self, text: str) -> None:
        """Materialize a query as the view with the next number, and print it."""
        self._last += 1
        number = self._last
        view = query_relation(engine_of(self._db), text, {}).materialize(f"view {number}")
        self._views[number] = (text, view)
        self._show(number)

    def _show_changed(self) -> None:
        """Print the views whose rows are not the ones shown last."""
        for number, (_, view) in self._views.items():
            if list(view) != self._shown[number]:
                self._show(number)

    def _show(self, number: int) -> None:
        """Print a view with its query, its rows, and up to three errors; remember its rows."""
        text, view = self._views[number]
        self._shown[number] = list(view)
        shown = " ".join(text.split())
        self._console.print(f"[bold cyan]{number}[/] [dim]{escape(shown)}[/]", highlight=False)
        self._console.print(display.table(view))
        errors = list(view.errors)
        for error in errors[:3]:
            said = f"left out: {error.row}: {error.error}"
            self._console.print(f"[yellow]{escape(said)}[/]", highlight=False)

    # Commands.

    def _command(self, text: str) -> None:
        """Run a command, such as `.load` or `.explain`; refuse an unknown one."""
        name, _, rest = text[1:].strip().partition(" ")
        match name:
            case "load":
                path, _, table = rest.strip().partition(" ")
                self._console.print(load_file(self._db, path, table.strip() or None))
            case "tables":
                for each in self._db.tables():
                    self._console.print(escape(repr(each)), highlight=False)
            case "views":
                for number, (shown, view) in self._views.items():
                    count = f"{len(view)} row{'s' * (len(view) != 1)}"
                    line = f"{number}: {count}  {' '.join(shown.split())}"
                    self._console.print(escape(line), highlight=False)
            case "explain":
                told = query_relation(engine_of(self._db), rest, {}).explain()
                self._console.print(escape(told), highlight=False)
            case "close":
                self._close(rest.strip())
            case "help":
                self._console.print(HELP)
            case _:
                raise PlanError(f"there is no command .{name}\n  .help says what there is")

    def _close(self, number: str) -> None:
        """Close a view, and forget it; refuse a number that no view has."""
        if not number.isdigit() or int(number) not in self._views:
            raise PlanError(f"there is no view {number}\n  .views has them all")
        _, view = self._views.pop(int(number))
        view.close()


def lines_of(file: Any, console: Console) -> Iterator[str]:
    """Yield the statements that the user types."""
    waiting = ""
    while True:
        if file.isatty():
            console.print("[bold]> [/]" if not waiting else "[bold]. [/]", end="")
        line = file.readline()
        if not line or line.strip() == ".quit":
            if waiting.strip():
                yield waiting
            return
        waiting += line
        if line.rstrip().endswith(";") or waiting.startswith("."):
            yield waiting
            waiting = ""


KINDS = (".csv", ".parquet")


def is_file(name: str) -> bool:
    """Return True if a name is that of a file with rows."""
    return Path(name).suffix.lower() in KINDS


def load_file(db: Any, path: str | Path, name: str | None = None) -> Any:
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
    row_type = table_class(called, tuple(zip(unique_field_names(names), hints, strict=True)))
    table = db.table(row_type, name=called)
    table.add_all(map(row_type, *columns) if columns[0] else ())
    return table


def _type(column: Sequence[Any]) -> SqlType:
    """Return the type of a column: that of all its values, any if they differ, text of none."""
    kinds = {type_of_value(value) for value in column if value is not None}
    return kinds.pop() if len(kinds) == 1 else ANY if kinds else TEXT


def _csv(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the names of a CSV file's columns, and the converted cells of each column."""
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
    return names, [_convert_cells(column) for column in columns]


def _convert_cells(cells: list[str]) -> list[Any]:
    """Return the cells as values of the first type that all of them are of."""
    for read in (int, float, date.fromisoformat, datetime.fromisoformat, _bool):
        made = _convert_if_possible(read, cells)
        if made is not None:
            return made
    return [cell or None for cell in cells]


def _convert_if_possible(read: Callable[[str], Any], cells: list[str]) -> list[Any] | None:
    """Return cells converted by `read`, empty ones as None; None if one fails or all are empty."""
    try:
        return [read(cell) if cell else None for cell in cells] if any(cells) else None
    except ValueError:
        return None


def _bool(cell: str) -> bool:
    """Return the boolean of `true` or `false` in any case; raise `ValueError` for other texts."""
    found = {"true": True, "false": False}.get(cell.strip().lower())
    if found is None:
        raise ValueError(cell)
    return found


def _parquet(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the names of a Parquet file's columns, and their values; refuse without pyarrow."""
    try:
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise PlanError(f"{path.name} is read by pyarrow\n  pip install pyarrow") from None
    table = parquet.read_table(path)
    columns = [
        [_lists_to_tuples(value) for value in column.to_pylist()] for column in table.columns
    ]
    return list(table.column_names), columns


def _lists_to_tuples(value: Any) -> Any:
    """Return a value that can be in a row: lists are tuples."""
    if isinstance(value, list):
        return tuple(map(_lists_to_tuples, value))
    return tuple(map(_lists_to_tuples, value.values())) if isinstance(value, dict) else value
