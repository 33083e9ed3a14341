"""A shell: statements change tables, and each query is a view that is printed as it changes.

    > select town, sum(total) from orders group by town;      a view, printed
    > insert into orders values (3, 'Ulm', 4);                done: 1 row; the view, printed again

`from 'orders.csv'` reads a file as a table. Statements end with a semicolon.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from sqlglot import exp

from optimizer.errors import PlanError
from reactive.api import display
from reactive.errors import ReactiveError
from reactive.languages.sql.entry import dialect_of, sql
from reactive.languages.sql.entry import execute as executed
from reactive.languages.sql.shell.files import is_file, load
from reactive.languages.sql.terms.dialects import Dialect
from reactive.languages.sql.text.read import parsed
from reactive.languages.sql.text.split import statements

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
        """Of each number the text, and the view."""
        self._shown: dict[int, list[Any]] = {}
        """The rows that were printed of each."""
        self._last = 0

    @property
    def dialect(self) -> Dialect:
        return dialect_of(self._db._engine)

    def run(self, text: str) -> bool:
        """Run what is written, and print what comes of it; whether all of it could be done."""
        done = [self._one(each) for each in statements(text)]
        return all(done)

    def _one(self, text: str) -> bool:
        try:
            self._command(text) if text.startswith(".") else self._statement(text)
        except (ReactiveError, OSError, ArithmeticError, TypeError, ValueError) as error:
            self._console.print(f"[red]{escape(str(error))}[/]", highlight=False)
            return False
        return True

    def _statement(self, text: str) -> None:
        found = parsed(text, self.dialect)
        for tree in found:
            self._load_files(tree)
        if found and isinstance(found[0], exp.Query | exp.Values):
            self._view(text)
        elif found:
            count = executed(self._db, text, {})
            self._console.print(f"[dim]done: {count} row{'s' * (count != 1)}[/]")
            self._show_changed()

    def _load_files(self, tree: Any) -> None:
        """Make a table of each file that a query reads."""
        known = {table.name for table in self._db.tables()}
        for table in tree.find_all(exp.Table):
            if is_file(table.name) and table.name not in known:
                load(self._db, table.name, table.name)
                known.add(table.name)

    # Views.

    def _view(self, text: str) -> None:
        self._last += 1
        number = self._last
        view = sql(self._db._engine, text, {}).materialize(f"view {number}")
        self._views[number] = (text, view)
        self._show(number)

    def _show_changed(self) -> None:
        for number, (_, view) in self._views.items():
            if list(view) != self._shown[number]:
                self._show(number)

    def _show(self, number: int) -> None:
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
        name, _, rest = text[1:].strip().partition(" ")
        match name:
            case "load":
                path, _, table = rest.strip().partition(" ")
                self._console.print(load(self._db, path, table.strip() or None))
            case "tables":
                for each in self._db.tables():
                    self._console.print(escape(repr(each)), highlight=False)
            case "views":
                for number, (shown, view) in self._views.items():
                    count = f"{len(view)} row{'s' * (len(view) != 1)}"
                    line = f"{number}: {count}  {' '.join(shown.split())}"
                    self._console.print(escape(line), highlight=False)
            case "explain":
                told = sql(self._db._engine, rest, {}).explain()
                self._console.print(escape(told), highlight=False)
            case "close":
                self._close(rest.strip())
            case "help":
                self._console.print(HELP)
            case _:
                raise PlanError(f"there is no command .{name}\n  .help says what there is")

    def _close(self, number: str) -> None:
        if not number.isdigit() or int(number) not in self._views:
            raise PlanError(f"there is no view {number}\n  .views has them all")
        _, view = self._views.pop(int(number))
        view.close()


def lines_of(file: Any, console: Console) -> Iterator[str]:
    """What somebody types, statement by statement."""
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
