"""A notebook: a real shell of IPython in this process, one per test."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

BEGIN = """\
from dataclasses import dataclass
from reactive import Count, Database
db = Database()

@dataclass(frozen=True, slots=True)
class Row:
    a: int

rows = db.table(Row, name="rows")
rows.add_all([Row(1), Row(5), Row(9)])"""


class Notebook:
    """Run cells, and report the objects that remain of them."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def run(self, text: str, cell: str | None = None) -> Any:
        """Return the value of the last expression of a cell.

        Parameters
        ----------
        cell: its id, if the front end passes one.
        """
        return self.tried(text, cell).result

    def tried(self, text: str, cell: str | None = None) -> Any:
        """Run a cell, which may fail."""
        return self.shell.run_cell(text, store_history=True, cell_id=cell)

    def error(self, text: str) -> str:
        """The message of the exception that a cell raises."""
        error = self.tried(text).error_in_exec
        assert error is not None, text
        return str(error)

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    def views(self) -> list[str | None]:
        """The names of all views that are computed."""
        return [view.name for view in self["db"].views()]


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A notebook whose first cell has made a table of three rows."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    hooks = sys.displayhook, sys.excepthook
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell: Any = InteractiveShell.instance(config=config)
    try:
        book = Notebook(shell)
        book.run(BEGIN)
        yield book
    finally:
        InteractiveShell.clear_instance()
        shell.restore_sys_module_state()
        atexit.unregister(shell.atexit_operations)
        sys.displayhook, sys.excepthook = hooks
