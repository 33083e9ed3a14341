"""Rows that raise, as rows: what was left out, by which operator or source, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as a value: its class by name, and what it said.

    >>> str(Raised("ValueError", "no number: 'x'"))
    "ValueError: no number: 'x'"
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


@dataclass(frozen=True, slots=True)
class RowError:
    """A row that an operator leaves out of a view, or a source of its tables.

    >>> from reactive import Batch, Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> numbers = words.select(lambda w: int(w)).materialize()
    >>> reading = db.ingest(None, words, name="lines", on_error="drop")
    >>> reading.take(Batch(["1", "one"]))
    >>> [(error.operator, error.row, error.error.kind) for error in reading.errors]
    [('source lines into words', 'one', 'ValueError')]
    """

    operator: str
    row: Any
    error: Raised
