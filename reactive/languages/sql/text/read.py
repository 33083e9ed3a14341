"""SQL text to trees, by sqlglot, which the extra `sql` installs."""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Iterator
from contextvars import ContextVar
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError, TokenError

from optimizer.errors import PlanError
from reactive.engine.runtime.large_stack import call_with_any_stack
from reactive.languages.sql.postgres.grammar import PostgresGrammar
from reactive.languages.sql.sqlite.grammar import SQLiteGrammar
from reactive.languages.sql.terms.common_types import Dialect
from reactive.languages.sql.terms.errors import error_at, nesting_error, peek, record_arguments
from reactive.languages.sql.text.grammar import DuckDBGrammar

TOO_MANY = re.compile(r"arguments \((\d+)\) is greater than the maximum number .* \((\d+)\)")
"""A call with more arguments than its function has, in the words of sqlglot."""
UNEXPECTED = "Invalid expression"

OF_SYSTEM = re.compile(r"pg_catalog|operator\s*\(|\"char\"|pragma_|duckdb_", re.IGNORECASE)
"""Words of texts that may read system tables by other names than those of tables."""
MISSING = re.compile(r"Required keyword: '\w+' missing for <class .*")
PARSES = ContextVar("PARSES", default=False)
"""True while this thread or task parses a text."""
logging.getLogger("sqlglot").addFilter(lambda record: not PARSES.get())


LEFT_ALONE = r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/"
"""Texts, names and remarks."""
NAMED = re.compile(LEFT_ALONE + r"|(?<![\w:]):(\w+)", re.DOTALL)
DOLLAR_QUOTED = re.compile(LEFT_ALONE + r"|(?<![\w$])\$((?:[^\W\d]\w*)?)\$(.*?)\$\1\$", re.DOTALL)
"""`$$...$$` and `$word$...$word$`. sqlglot would read `$a,$` in `values ($a,$b)` as one, too."""
IN_DOLLARS = re.compile(LEFT_ALONE + r"|`[^`]*`|\[[^\]]*\]|(?<![\w$])\$(\w+)", re.DOTALL)
"""`$name` in a text of SQLite, whose names may stand in brackets."""
OF_POSTGRES = re.compile(LEFT_ALONE + r"|(?<![\w$:])\$([^\W\d]\w*)", re.DOTALL)
"""`$name` in a text of Postgres, where brackets are those of arrays."""
SLICES = ("[", "]", ")", "'", '"')
"""Before a colon, these say that it belongs to a slice or a struct."""


def parse_statements(text: str, dialect: Dialect, parameters: Container[str] = ()) -> list[Any]:
    """Return the statements of a text. `:name` is one of the parameters.

    Raises
    ------
    PlanError: it is no SQL; with the line and column where that shows.
    """
    try:
        plain = _without_catalog(text) if OF_SYSTEM.search(text) else text
        text_read = _dollars(_without_dollar_quotes(plain, dialect), dialect, parameters)
        found = call_with_any_stack(lambda: _parse(text_read, _grammar(dialect)))
    except SqlglotError as error:
        raise _syntax_error(text, error) from None
    except RecursionError:
        raise nesting_error(text, None) from None
    except Exception as error:  # the parser stumbles over some texts
        raise PlanError(f"this is no SQL that can be read\n  {text.strip()[:60]}") from error
    trees = [each for each in found if each is not None]
    if OF_SYSTEM.search(text):
        trees = [_with_system_calls(each, dialect) for each in trees]
    return [_with_flat_names(each) for each in trees] if "." in text else trees


def _without_catalog(text: str) -> str:
    """Return a text without the schema of system tables and functions before names."""
    from reactive.languages.sql.text.system_words import without_catalog

    return without_catalog(text)


def _with_system_calls(tree: Any, dialect: Dialect) -> Any:
    """Return a statement in which calls of system functions in FROM are tables."""
    from reactive.languages.sql.text.system_words import with_calls

    return with_calls(tree, dialect.name)


def _with_flat_names(tree: Any) -> Any:
    """Return a statement in which a table of a schema has its name in the database."""
    if all(peek(node, "db") is None for node in tree.find_all(exp.Table)):
        return tree
    from reactive.languages.sql.text.schemas import with_flat_names

    return with_flat_names(tree)


def _grammar(dialect: Dialect) -> Any:
    own = {"postgres": PostgresGrammar, "sqlite": SQLiteGrammar, "duckdb": DuckDBGrammar}
    return own.get(dialect.name, dialect.name)


def _without_dollar_quotes(text: str, dialect: Dialect) -> str:
    """Write texts in dollars as texts in quotes, so that what follows keeps its place."""
    if dialect.name == "sqlite" or text.count("$") < 4:
        return text

    def quote(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        quoted = "'" + found[2].replace("'", "''") + "'"
        return quoted.ljust(len(found[0]))

    return DOLLAR_QUOTED.sub(quote, text)


def _dollars(text: str, dialect: Dialect, parameters: Container[str]) -> str:
    """Write `$name` for `:name`, which DuckDB's grammar does not allow everywhere.

    The other grammars have no `$name`: write `:name` for it.
    """
    if dialect.name != "duckdb":
        own = IN_DOLLARS if dialect.name == "sqlite" else OF_POSTGRES
        return own.sub(lambda found: f":{found[1]}" if found[1] else found[0], text)

    def dollar(found: re.Match[str]) -> str:
        name, before = found[1], text[found.start() - 1 : found.start()]
        if name is None or (name not in parameters and before in SLICES):
            return found[0]
        return f"${name}"

    return NAMED.sub(dollar, text)


def parse_statement(text: str, dialect: Dialect, parameters: Container[str] = ()) -> Any:
    """Return the only statement of a text; refuse none and several."""
    found = parse_statements(text, dialect, parameters)
    if len(found) != 1:
        what = "no statement" if not found else f"{len(found)} statements"
        raise PlanError(f"the text has {what}, not one\n  {text.strip()[:60]}")
    record_arguments(found[0])
    return found[0]


def depth_of(tree: exp.Expr) -> int:
    """Return the number of levels of a parsed text."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [inner for each in level for inner in each.iter_expressions()]
    return deepest


def _parse(text: str, grammar: Any) -> list[Any]:
    """Parse a text, and silence sqlglot, which logs unknown syntax; here that is an error.

    The level of its logger stays: other threads may parse, and a new level is told to all loggers.
    """
    before = PARSES.set(True)
    try:
        return sqlglot.parse(text, read=grammar)
    finally:
        PARSES.reset(before)


def _syntax_error(text: str, error: SqlglotError) -> PlanError:
    """Return the error of a text that is no SQL, at the place that sqlglot reports."""
    quote = _open_quote(text) if isinstance(error, TokenError) else None
    if quote is not None:
        return error_at(text, quote, f"this is no SQL: the quote {text[quote]} is not closed")
    details = (getattr(error, "errors", None) or [{}])[0]
    said = str(details.get("description") or error).partition("<Token")[0].strip().rstrip(".")
    said = MISSING.sub("something is missing", said.removesuffix("but got").strip())
    found = details.get("highlight")
    counted = TOO_MANY.search(said)
    if counted is not None:
        said = f"the function takes at most {counted[2]} arguments, and got {counted[1]}"
    elif found and said.startswith(UNEXPECTED):
        said, found = f"unexpected {found!r}", None
    message = f"this is no SQL: {said[:1].lower()}{said[1:]}"
    if found and said == "something is missing":
        message += f" beside {found!r}"
    elif found and counted is None:
        message += f", found {found!r}"
    return error_at(text, _token_offset(text, details), message)


def _open_quote(text: str) -> int | None:
    """Return the place of a quote that nothing closes; None if there is none."""
    opened = None
    for place, letter in enumerate(text):
        if opened is None:
            opened = place if letter in "'\"" else None
        elif letter == text[opened]:
            opened = None
    return opened


def _token_offset(text: str, details: dict[str, Any]) -> int | None:
    """Return the offset of the highlighted token, whose end sqlglot gives; None without a line."""
    if not details.get("line"):
        return None
    lines = text.split("\n")
    line = min(details["line"], len(lines))
    end = sum(len(each) + 1 for each in lines[: line - 1]) + (details.get("col") or 1)
    return max(end - len(details.get("highlight") or " "), 0)


# A text as the statements in it: each ends with a semicolon, a command that begins with a point
# with its line.

PARTS = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|;|^[ \t]*\.\w[^\n]*(?=\n|\Z)|.",
    re.DOTALL | re.MULTILINE,
)
"""Texts, names and comments, whose semicolons do not count; ends of statements; commands."""


def statements(text: str) -> Iterator[str]:
    """Yield the statements, without their semicolons.

    >>> list(statements("select ';'; -- one; two\\n.tables\\nselect 2"))
    ["select ';'", '.tables', 'select 2']
    """
    waiting: list[str] = []
    for part in PARTS.finditer(text):
        found = part[0]
        is_command = found.lstrip().startswith(".") and len(found) > 1 and not _has_text(waiting)
        if found == ";" or is_command:
            if _has_text(waiting):
                yield "".join(waiting).strip()
            waiting = []
            if is_command:
                yield found.strip().rstrip(";")
        elif not found.startswith(("--", "/*")) or _has_text(waiting):
            waiting.append(found)
    if _has_text(waiting):
        yield "".join(waiting).strip()


def _has_text(waiting: list[str]) -> bool:
    return any(part.strip() for part in waiting)
