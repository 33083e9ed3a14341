"""Rows that a stream elsewhere leaves out, as rows of a table beside its own."""

from __future__ import annotations

from dataclasses import dataclass

from reactive.api.row_errors import Raised


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row that a stream leaves out, since it does not fit the type of the rows.

    `row` is how it came, as JSON or as the line that it was; `key` that of its table, as JSON, and
    empty without one. A row whose removal came is there once less.
    """

    operator: str
    row: str
    error: Raised
    key: str
