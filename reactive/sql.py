"""Public name of SQL: `connect` of Python's database interface, and the shell.

`python -m reactive.sql` is a live shell; `db.sql` and `db.execute` are methods of the database. The
other names are those that PEP 249 gives to the module of a database.
"""

from typing import TYPE_CHECKING

from optimizer.lazy import make_module_getattr

if TYPE_CHECKING:
    from reactive.engine.collections.jsonb import Jsonb
    from reactive.languages.sql.__main__ import main
    from reactive.languages.sql.dbapi.alchemy import create_engine
    from reactive.languages.sql.dbapi.names import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        DatabaseError,
        DataError,
        Date,
        DateFromTicks,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        Warning,
        apilevel,
        connect,
        paramstyle,
        threadsafety,
    )

__all__ = [
    "BINARY",
    "Binary",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Jsonb",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "ROWID",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "create_engine",
    "main",
    "paramstyle",
    "threadsafety",
]
__path__: list[str] = []  # so that earlier module names are found, see optimizer/earlier_names.py
_OWN = {"main": "__main__", "create_engine": "dbapi.alchemy"}
__getattr__ = make_module_getattr(
    __name__,
    {name: f"reactive.languages.sql.{_OWN.get(name, 'dbapi.names')}" for name in __all__}
    | {"Jsonb": "reactive.engine.collections.jsonb"},
)

if __name__ == "__main__":
    from reactive.languages.sql.__main__ import main

    raise SystemExit(main())
