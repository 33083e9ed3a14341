"""Which store a path or an address stands for.

"shop.db", Path("shop.db")      a file of SQLite
"postgresql://host/shop"        Postgres
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Literal, TypeAlias

from optimizer.errors import PlanError
from reactive.durable.store import Store

Durability: TypeAlias = Literal["commit", "group", "exit"]
"""When a commit is in the store: before it is heard of, soon after it, or at the end."""
Synchronous: TypeAlias = Literal["normal", "full"]
"""Whether a commit waits for the disk."""
SCHEMES = {
    "postgres": ("reactive.durable.postgres_store", "PostgresStore"),
    "postgresql": ("reactive.durable.postgres_store", "PostgresStore"),
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
        from reactive.durable.sqlite_store import SqliteStore

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


def _remedy(path: object) -> str:
    """What to write in the place of what is no path."""
    if type(path).__module__.partition(".")[0] in ("sqlalchemy", "sqlite3"):
        return (
            "write Database('shop.db'); tables of SQLAlchemy become live ones by "
            "mirror(Database(), engine, Order)"
        )
    return "write Database('shop.db')"


def check_chosen(durability: str, synchronous: str) -> None:
    """Refuse levels that there are not."""
    if durability not in ("commit", "group", "exit"):
        raise PlanError(f"durability={durability!r} is none\n  write 'commit', 'group' or 'exit'")
    if synchronous not in ("normal", "full"):
        raise PlanError(f"synchronous={synchronous!r} is none\n  write 'normal' or 'full'")
