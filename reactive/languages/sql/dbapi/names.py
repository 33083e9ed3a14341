"""The names that PEP 249 gives to the module of a database; `reactive.sql` has them."""

from __future__ import annotations

import builtins

from reactive.languages.sql.dbapi.connection import connect as connect
from reactive.languages.sql.dbapi.errors import (
    BINARY as BINARY,
)
from reactive.languages.sql.dbapi.errors import (
    DATETIME as DATETIME,
)
from reactive.languages.sql.dbapi.errors import (
    NUMBER as NUMBER,
)
from reactive.languages.sql.dbapi.errors import (
    ROWID as ROWID,
)
from reactive.languages.sql.dbapi.errors import (
    STRING as STRING,
)
from reactive.languages.sql.dbapi.errors import (
    DatabaseError as DatabaseError,
)
from reactive.languages.sql.dbapi.errors import (
    DataError as DataError,
)
from reactive.languages.sql.dbapi.errors import (
    Error as Error,
)
from reactive.languages.sql.dbapi.errors import (
    IntegrityError as IntegrityError,
)
from reactive.languages.sql.dbapi.errors import (
    InterfaceError as InterfaceError,
)
from reactive.languages.sql.dbapi.errors import (
    InternalError as InternalError,
)
from reactive.languages.sql.dbapi.errors import (
    NotSupportedError as NotSupportedError,
)
from reactive.languages.sql.dbapi.errors import (
    OperationalError as OperationalError,
)
from reactive.languages.sql.dbapi.errors import (
    ProgrammingError as ProgrammingError,
)
from reactive.languages.sql.dbapi.values import (
    Binary as Binary,
)
from reactive.languages.sql.dbapi.values import (
    Date as Date,
)
from reactive.languages.sql.dbapi.values import (
    DateFromTicks as DateFromTicks,
)
from reactive.languages.sql.dbapi.values import (
    Time as Time,
)
from reactive.languages.sql.dbapi.values import (
    TimeFromTicks as TimeFromTicks,
)
from reactive.languages.sql.dbapi.values import (
    Timestamp as Timestamp,
)
from reactive.languages.sql.dbapi.values import (
    TimestampFromTicks as TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not a connection."""
paramstyle = "named"
"""`:name`, in all dialects; `?` and others as well, see docs/sql.md."""
Warning = builtins.Warning
