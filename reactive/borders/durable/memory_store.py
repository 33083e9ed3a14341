"""A store in memory: what the others have to do, in few lines; for tests, and as an example.

State:  everything that is stored, also between `close` and `open`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reactive.borders.durable.refusals import is_open_here
from reactive.borders.durable.store import Logged, Record, Rows, Schema, Values
from reactive.errors import DurabilityError


@dataclass
class MemoryStore:
    """A `Store` that lasts as long as it is held.

    >>> store = MemoryStore()
    >>> store.open(keep=0)
    >>> store.create(Schema("words", ()))
    >>> store.version(), [*store.tables()]
    (0, ['words'])
    """

    name: str = "a store in memory"
    _is_open: bool = False
    _keep: int = 0
    _version: int = 0
    _schemas: dict[str, Schema] = field(default_factory=dict)
    _rows: dict[str, dict[Values, int]] = field(default_factory=dict)
    _logged: list[Logged] = field(default_factory=list)

    def open(self, keep: int) -> None:
        """As `Store.open`."""
        if self._is_open:
            raise DurabilityError(is_open_here(self.name))
        self._is_open, self._keep = True, keep

    def version(self) -> int:
        """As `Store.version`."""
        return self._version

    def tables(self) -> Mapping[str, Schema]:
        """As `Store.tables`."""
        return dict(self._schemas)

    def rows(self, table: str) -> Rows:
        """As `Store.rows`."""
        return [([row], weight) for row, weight in self._rows[table].items()]

    def write(self, records: Sequence[Record]) -> None:
        """As `Store.write`."""
        for record in records:
            changes = {change.table: [*change.weights()] for change in record.changes}
            for table, pairs in changes.items():
                rows = self._rows[table]
                for row, weight in sorted(pairs, key=lambda pair: pair[1]):
                    rows[row] = rows.pop(row, 0) + weight
                    if not rows[row]:
                        del rows[row]
            self._version = record.version
            if not record.is_commit:
                continue
            self._logged = [*self._logged, Logged(record.version, record.time, changes)]
            self._logged = self._logged[-self._keep :] if self._keep else []

    def create(self, schema: Schema, rows: Rows = ()) -> None:
        """As `Store.create`."""
        found = {row: weight for batch, weight in rows for row in batch}
        self._schemas[schema.table], self._rows[schema.table] = schema, found
        if not schema.is_beside:
            self._logged = []

    def drop(self, table: str) -> None:
        """As `Store.drop`."""
        found = self._schemas.pop(table, None)
        self._rows.pop(table, None)
        if found is not None and not found.is_beside:
            self._logged = []

    def history(self, since: int) -> Sequence[Logged]:
        """As `Store.history`."""
        return [logged for logged in self._logged if logged.version > since]

    def after_fork(self) -> None:
        """As `Store.after_fork`."""

    def close(self) -> None:
        """As `Store.close`."""
        self._is_open = False
