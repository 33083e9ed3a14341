"""What dialects of SQL disagree about."""

from __future__ import annotations

from typing import Literal

from optimizer.record import record
from reactive.engine.runtime.sql_names import DialectName


@record
class Dialect:
    """`name` is what sqlglot calls it."""

    name: DialectName
    integer_division: bool
    """Whether `7 / 2` is 3."""
    zero_division: Literal["infinity", "null", "error"]
    """What the `/` of a number and zero is."""
    exact_literals: bool
    """Whether `1.5` is a decimal and not a float."""
    total_rows: bool
    """Whether a row with a NULL is compared as one value, in which NULL is the last."""
    numeric_booleans: bool
    """Whether TRUE is written as 1."""
    timezone: str = "UTC"
    """The zone of the database, in which instants are shown, and texts without a zone are read."""

    @property
    def dotted_fields(self) -> bool:
        """True if `home.city` may be the field of a column; else it is written `(home).city`."""
        return self.name == "duckdb"


DUCKDB = Dialect("duckdb", False, "infinity", True, True, False)
POSTGRES = Dialect("postgres", True, "error", True, False, False)
SQLITE = Dialect("sqlite", True, "null", False, False, True)
DIALECTS = {each.name: each for each in (DUCKDB, POSTGRES, SQLITE)}
