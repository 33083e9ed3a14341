"""Settings: SET, RESET, SHOW and PRAGMA, as clients send them at connection.

    set application_name = 'shop'     kept, and shown; it changes nothing
    set timezone = 'UTC'              accepted if it is the zone of the database, else refused
    show server_version               the value that holds
    pragma table_info('orders')       a query of `information_schema`

A setting that would change what a query means is fixed: it can be set to the value that it has. An
unknown one is an error; a PRAGMA of SQLite too, which SQLite itself would ignore.

State:  the values that were set, by the session: that of a connection, or of the database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from optimizer.errors import PlanError
from reactive.languages.sql.system.relations import named_place, tables_shown
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope

UTC = frozenset({"utc", "etc/utc", "gmt", "default", "local", "+00:00", "0"})
FIXED: Mapping[str, Mapping[str, str]] = {
    "postgres": {
        "server_version": "15.0 (reactive-collections)",
        "server_version_num": "150000",
        "client_encoding": "UTF8",
        "server_encoding": "UTF8",
        "standard_conforming_strings": "on",
        "datestyle": "ISO, MDY",
        "intervalstyle": "postgres",
        "integer_datetimes": "on",
        "search_path": '"$user", public',
        "transaction_isolation": "serializable",
        "default_transaction_isolation": "serializable",
        "transaction_read_only": "off",
        "bytea_output": "hex",
        "max_identifier_length": "63",
        "lc_collate": "C",
        "lc_ctype": "C",
        "is_superuser": "on",
        "session_authorization": "postgres",
        "role": "none",
    },
    "duckdb": {
        "search_path": "main",
        "schema": "main",
        "default_order": "ASC",
        "default_null_order": "NULLS_LAST",
        "integer_division": "false",
        "access_mode": "automatic",
    },
    "sqlite": {
        "foreign_keys": "1",
        "encoding": "UTF-8",
        "case_sensitive_like": "0",
        "recursive_triggers": "0",
        "read_uncommitted": "0",
        "ignore_check_constraints": "0",
    },
}
"""Settings that decide what a text means, with the values that hold, by dialect."""
FREE: Mapping[str, Mapping[str, str]] = {
    "postgres": {
        **dict.fromkeys(("statement_timeout", "lock_timeout"), "0"),
        **dict.fromkeys(("idle_in_transaction_session_timeout", "idle_session_timeout"), "0"),
        "application_name": "",
        "client_min_messages": "notice",
        "extra_float_digits": "1",
        "work_mem": "4MB",
        "maintenance_work_mem": "64MB",
        "jit": "off",
        "row_security": "on",
        "synchronous_commit": "on",
        "log_statement": "none",
        "track_activities": "on",
        "check_function_bodies": "on",
        "default_tablespace": "",
        "default_table_access_method": "heap",
        "xmloption": "content",
        **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "on"),
        **dict.fromkeys(("enable_nestloop", "enable_indexscan", "enable_hashagg"), "on"),
    },
    "duckdb": {
        "threads": "1",
        "worker_threads": "1",
        "external_threads": "1",
        "memory_limit": "",
        "max_memory": "",
        "temp_directory": "",
        "home_directory": "",
        **dict.fromkeys(("enable_progress_bar", "enable_progress_bar_print"), "false"),
        "preserve_insertion_order": "true",
        "progress_bar_time": "2000",
        "enable_object_cache": "true",
        "checkpoint_threshold": "",
        "wal_autocheckpoint": "",
        "enable_profiling": "",
        "explain_output": "physical_only",
        "max_expression_depth": "",
        **dict.fromkeys(("enable_external_access", "autoinstall_known_extensions"), "false"),
        "autoload_known_extensions": "false",
    },
    "sqlite": {
        "journal_mode": "memory",
        "synchronous": "2",
        "cache_size": "-2000",
        "temp_store": "0",
        "mmap_size": "0",
        "busy_timeout": "0",
        "page_size": "4096",
        "user_version": "0",
        "application_id": "0",
        "secure_delete": "0",
        "automatic_index": "1",
        "analysis_limit": "0",
        "locking_mode": "normal",
        "auto_vacuum": "0",
        "wal_autocheckpoint": "1000",
        "cell_size_check": "0",
        "trusted_schema": "1",
        "query_only": "0",
        "foreign_key_check": "",
        "optimize": "",
    },
}
"""Settings that change no result, with their values in the beginning, by dialect."""
TRUE, FALSE = frozenset({"1", "on", "true", "yes"}), frozenset({"0", "off", "false", "no"})
ASSIGNED = re.compile(
    r"(?:(?:session|local|global)\s+)?(?!time\s+zone\b)([\w.]+)\s*(?:=|\bto\b)\s*(.+)\Z",
    re.I | re.DOTALL,
)
WORDED = (
    (re.compile(r"(?:(?:session|local)\s+)?time\s+zone\s+(.+)\Z", re.I | re.DOTALL), "timezone"),
    (re.compile(r"names\s+(.+)\Z", re.I | re.DOTALL), "client_encoding"),
    (re.compile(r"schema\s+(?:=\s*|to\s+)?(.+)\Z", re.I | re.DOTALL), "schema"),
)
ISOLATION = re.compile(
    r"(?:session\s+characteristics\s+as\s+)?transaction\s+(?:isolation\s+level\s+"
    r"(?:serializable|repeatable\s+read|read\s+(?:un)?committed)|read\s+write)\b.*\Z",
    re.I | re.DOTALL,
)
"""Commits come one after the other, so that each level holds."""
CALLED = re.compile(r"([\w.]+)\s*\(\s*(.*?)\s*\)\Z", re.DOTALL)
OF_NAMES = frozenset(
    {
        *("table_info", "table_xinfo", "index_list", "index_info", "index_xinfo"),
        "foreign_key_list",
    }
)
"""Pragmas of SQLite that show what is known of a table or index; of others nothing."""
NONE = "select '' as value where 1 = 0"
"""A query without rows, the answer to a PRAGMA that sets something."""


def set_value(rest: str, around: Scope) -> None:
    """Run SET; refuse an unknown setting, and another value for one that is fixed."""
    if around.dialect.name == "postgres" and ISOLATION.match(rest):
        return
    for pattern, name in WORDED:
        found = pattern.match(rest)
        if found is not None:
            _assign(name, found[1], around)
            return
    found = ASSIGNED.match(rest)
    if found is None or around.dialect.name == "sqlite":
        raise PlanError(f"SET {rest[:40]} is not supported\n  set name = value")
    _assign(found[1], found[2], around)


def _assign(name: str, written: str, around: Scope) -> None:
    """Set a setting to a value as it is written."""
    dialect, folded = around.dialect.name, name.casefold()
    value = _plain(written)
    known = around.environment.session.settings
    if folded in ("search_path", "schema") and dialect != "sqlite":
        _set_path(value, around)
        return
    if _is_free(folded, dialect):
        if value.casefold() == "default":
            known.pop(folded, None)
        else:
            known[folded] = value
        return
    holds = value_of(folded, around)
    if folded == "timezone":
        same = value.casefold() == holds.casefold() or {value.casefold(), holds.casefold()} <= UTC
        remedy = "the zone is of the database: Database(timezone=...)"
    else:
        same = _is_same(value, holds)
        remedy = "leave it out"
    if not same:
        raise PlanError(f"{name} is {holds!r} here, and cannot be {value!r}\n  {remedy}")


def assign(name: str, value: str, around: Scope) -> None:
    """Set a setting to a value, as `set_config` does; refuse what SET refuses."""
    _assign(name, f"'{value}'" if name.casefold() != "search_path" else value, around)


def _set_path(value: str, around: Scope) -> None:
    """Set the schemas in which tables are looked for."""
    environment = around.environment
    names = [_plain(part) for part in value.split(",")]
    if [name.casefold() for name in names] == ["default"]:
        names = []
    _path().set_path(names, around.dialect, environment.catalog, environment.session)
    if names:
        joined = ", " if around.dialect.name == "postgres" else ","
        environment.session.settings["search_path"] = joined.join(names)
    else:
        environment.session.settings.pop("search_path", None)


def _path() -> Any:
    """Return the module of the path, which few programs need."""
    from reactive.languages.sql.system import search_path

    return search_path


def _plain(written: str) -> str:
    """Return a value without its quotes."""
    text = written.strip().rstrip(";").strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted and text[0] not in text[1:-1] else text


def _is_same(value: str, holds: str) -> bool:
    """Return True if a value is written for the one that holds."""
    one, other = value.casefold(), holds.casefold()
    plain = {each.replace("-", "").replace("_", " ") for each in (one, other, "default")}
    if one == "default" or len(plain - {"default"}) == 1:
        return True
    return any({one, other} <= alike for alike in (TRUE, FALSE)) or other.startswith(f"{one},")


def _is_free(folded: str, dialect: str) -> bool:
    return folded in FREE[dialect] or (dialect == "postgres" and "." in folded)


def value_of(name: str, around: Scope) -> str:
    """Return the value of a setting; refuse an unknown one."""
    dialect, folded = around.dialect, name.casefold()
    environment = around.environment
    if folded == "schema" and dialect.name == "duckdb":
        return str(_path().current_schemas(dialect, environment.catalog, environment.session)[0])
    given = environment.session.settings.get(folded)
    if given is not None:
        return str(given)
    if folded == "timezone" and dialect.name != "sqlite":
        return dialect.timezone
    every = {**FIXED[dialect.name], **FREE[dialect.name]}
    if folded not in every:
        raise PlanError(f"there is no setting {name!r}{nearest(folded, [*every, 'timezone'])}")
    return every[folded]


def every(around: Scope) -> dict[str, str]:
    """Return the values of all settings of the dialect, by their names."""
    names = {**FIXED[around.dialect.name], **FREE[around.dialect.name]}
    zone = () if around.dialect.name == "sqlite" else ("timezone",)
    given = around.environment.session.settings
    return {name: value_of(name, around) for name in sorted({*names, *zone, *given})}


def reset(rest: str, around: Scope) -> None:
    """Run RESET of one setting, or of all."""
    session, name = around.environment.session, rest.casefold()
    if name == "all":
        session.settings.clear()
        session.path = ()
        return
    value_of(name, around)
    if name in ("search_path", "schema"):
        name, session.path = "search_path", ()
    session.settings.pop(name, None)


def shown(name: str, around: Scope) -> tuple[str, dict[str, Any]]:
    """Return the query that SHOW of a setting, or PRAGMA of its name, stands for."""
    words = " ".join(name.casefold().split())
    asked = {"time zone": "timezone", "transaction isolation level": "transaction_isolation"}
    found = asked.get(words, words)
    value = value_of(found, around)
    if around.dialect.name == "sqlite" and re.fullmatch(r"-?\d+", value):
        return f'select {value} as "{found}"', {}
    return f'select cast(:setting as text) as "{found}"', {"setting": value}


def pragma(rest: str, around: Scope) -> tuple[str, dict[str, Any]]:
    """Return the query that a PRAGMA stands for, or set what it sets."""
    name, equals, value = rest.partition("=")
    name = name.strip()
    call = CALLED.match(rest)
    if equals and call is None:
        _assign(name, value, around)
        return NONE, {}
    schema, _, word = (call[1] if call else rest).casefold().rpartition(".")
    if schema not in ("", "main", "temp"):
        raise PlanError(f"there is no schema {schema!r}\n  pragma {word}")
    if word == "table_info" and call is not None and around.dialect.name != "sqlite":
        return table_info(_plain(call[2]), around)
    if word in OF_NAMES and call is not None and around.dialect.name == "sqlite":
        named = "" if schema == "temp" else _plain(call[2]).removeprefix("main.")
        return f"select * from pragma_{word}(:described) order by 1, 2", {"described": named}
    if word == "table_list" and around.dialect.name == "sqlite":
        return "select * from pragma_table_list()", {}
    if word in ("integrity_check", "quick_check"):
        return f"select 'ok' as {word}", {}
    if word in ("show_tables", "table_list") and call is None:
        return tables_shown(around)
    if word == "database_list":
        own = "main" if around.dialect.name == "sqlite" else "memory"
        return f"select 0 as seq, '{own}' as name, '' as file", {}
    if call is not None and word in FREE[around.dialect.name]:
        _assign(word, call[2], around)
        return NONE, {}
    return shown(word, around)


def table_info(name: str, around: Scope) -> tuple[str, dict[str, Any]]:
    """Return the query of the columns of a table or view, as PRAGMA table_info shows them."""
    schema, inside = named_place(name, around)
    text = "select * from pragma_table_info(:described) order by cid"
    return text, {"described": f"{schema}.{inside}"}
