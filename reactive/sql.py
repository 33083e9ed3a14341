"""Public name of SQL: `connect` of Python's database interface, and the shell.

`python -m reactive.sql` is a live shell; `db.sql` and `db.execute` are methods of the database. The
names are those that PEP 249 gives to the module of a database.
"""

from typing import TYPE_CHECKING

from optimizer.lazy import make_module_getattr

if TYPE_CHECKING:
    from reactive.languages.sql.__main__ import main
    from reactive.languages.sql.dbapi.alchemy import create_engine
    from reactive.languages.sql.dbapi.connection import connect
    from reactive.languages.sql.dbapi.errors import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        DatabaseError,
        DataError,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
    )
    from reactive.languages.sql.dbapi.values import (
        Binary,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
    )

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not a connection."""
paramstyle = "named"
"""`:name`, in all dialects; `?` and others as well, see docs/sql.md."""
Warning = Warning

_ERRORS = (
    *("BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "DataError", "DatabaseError", "Error"),
    *("IntegrityError", "InterfaceError", "InternalError", "NotSupportedError"),
    *("OperationalError", "ProgrammingError"),
)
_VALUES = (
    *("Binary", "Date", "DateFromTicks", "Time", "TimeFromTicks", "Timestamp"),
    *("TimestampFromTicks",),
)
_HOME = "reactive.languages.sql"
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
__getattr__ = make_module_getattr(
    __name__,
    {
        "main": f"{_HOME}.__main__",
        "connect": f"{_HOME}.dbapi.connection",
        "create_engine": f"{_HOME}.dbapi.alchemy",
        **dict.fromkeys(_ERRORS, f"{_HOME}.dbapi.errors"),
        **dict.fromkeys(_VALUES, f"{_HOME}.dbapi.values"),
    },
)

if __name__ == "__main__":
    from reactive.languages.sql.__main__ import main

    raise SystemExit(main())
