"""Which store a path or an address stands for.

"shop.db", Path("shop.db")      a file of SQLite
"postgresql://host/shop"        Postgres
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Literal, TypeAlias

from optimizer.errors import PlanError
from reactive.borders.durable.store import Store

Durability: TypeAlias = Literal["commit", "group", "exit"]
"""When a commit is in the store: before it is heard of, soon after it, or at the end."""
Synchronous: TypeAlias = Literal["normal", "full"]
"""Whether a commit waits for the disk."""
SCHEMES = {
    "postgres": ("reactive.borders.durable.postgres_store", "PostgresStore"),
    "postgresql": ("reactive.borders.durable.postgres_store", "PostgresStore"),
}
"""The module and the class of each kind of address: called with it, and `synchronous=`."""


def store_of(path: str | os.PathLike[str], synchronous: Synchronous) -> Store:
    """The store of a path or an address, which is not open.

    >>> import os.path
    >>> os.path.basename(store_of("shop.db", "normal").name)
    'shop.db'
    """
    if not isinstance(path, str | os.PathLike):
        raise PlanError(f"a database is at a path, not at {path!r:.100}\n  {_remedy(path)}")
    text = os.fspath(path)
    if isinstance(text, bytes) or not text or text.startswith((":", "file:")):
        raise PlanError(
            f"a database is at the path of a file, not at {text!r:.100}\n"
            "  without a path it is in memory: Database(); and a path is a str or a Path"
        )
    scheme, separator, rest = text.partition("://")
    if not separator:
        from reactive.borders.durable.sqlite_store import SqliteStore

        return SqliteStore(text, synchronous=synchronous)
    if scheme.startswith("sqlite"):
        raise PlanError(
            f"a file is given by its path, not by the address {text!r:.100}\n"
            f"  write Database({rest.removeprefix('/') or 'shop.db'!r})"
        )
    if scheme not in SCHEMES:
        raise PlanError(
            f"there is no store for addresses that begin with {scheme}://\n"
            f"  there is one for {', '.join(SCHEMES)}; another one is given as Database(store=...)"
        )
    module, name = SCHEMES[scheme]
    made: Any = getattr(import_module(module), name)
    found: Store = made(text, synchronous=synchronous)
    return found


def snapshot_of(path: Any) -> Any:
    """The store of a path that is read alone, which is not open."""
    from reactive.borders.durable.sqlite_snapshot import SqliteSnapshot
    from reactive.borders.durable.sqlite_store import SqliteStore

    found = store_of(path, "normal")
    if not isinstance(found, SqliteStore):
        raise PlanError(
            f"readonly=True is of a file, not of {found.name}\n"
            "  tables of Postgres are followed by db.ingest(PostgresSource(...))"
        )
    return SqliteSnapshot(found.name)


def _remedy(path: object) -> str:
    """What to write in the place of what is no path."""
    if type(path).__module__.partition(".")[0] in ("sqlalchemy", "sqlite3"):
        return (
            "write Database('shop.db'); tables of SQLAlchemy become live ones by "
            "mirror(Database(), engine, Order)"
        )
    return "write Database('shop.db')"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What `Database` is given of where its tables are, and how they get there."""

    path: str | os.PathLike[str] | None = None
    store: Store | None = None
    durability: Durability = "commit"
    synchronous: Synchronous = "normal"
    keep: int = 0
    readonly: bool = False

    def check(self) -> None:
        """Refuse what does not exist, and what means nothing beside the rest.

        Raises
        ------
        PlanError: it is so.
        """
        if self.durability not in ("commit", "group", "exit"):
            raise PlanError(
                f"durability={self.durability!r} is none\n  write 'commit', 'group' or 'exit'"
            )
        if self.synchronous not in ("normal", "full"):
            raise PlanError(f"synchronous={self.synchronous!r} is none\n  write 'normal' or 'full'")
        if type(self.keep) is not int or self.keep < 0:
            raise PlanError(
                f"keep={self.keep!r:.50} is no number of commits\n  write an integer from 0 on"
            )
        if self.path is not None and self.store is not None:
            raise PlanError("a database has a path or a store, not both\n  leave one of them out")
        if self.path is None and self.store is None:
            raise PlanError(
                f"a database in memory has no use for {self._others()}\n"
                "  give it a path: Database('shop.db', ...)"
            )
        if self.readonly and self._others() != "readonly=True":
            raise PlanError(
                f"a database that is read alone has no use for {self._others()}\n"
                "  write Database(path, readonly=True); the process that writes has the others"
            )
        if self.store is not None and self.synchronous != "normal":
            raise PlanError(
                f"synchronous={self.synchronous!r} is of a path, and this database has a store\n"
                "  leave it out; the store waits for its disk, or does not, as it was made"
            )

    def _others(self) -> str:
        """What was given beside a path."""
        pairs = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        pairs = (pair for pair in pairs if pair[0] != "path")
        return ", ".join(f"{name}={given!r}" for name, given, usual in pairs if given != usual)
