"""The scalar functions of SQL, by sqlglot's class of a call, or by name.

A function is one line of a table: the Python function, the result type, the argument types.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from reactive.languages.sql.functions import (
    arrays,
    encodings,
    lambdas,
    lists,
    maps,
    structs,
    texts,
    times,
)
from reactive.languages.sql.json import of_duckdb
from reactive.languages.sql.terms.calls import Maker as Maker
from reactive.languages.sql.terms.calls import function_name as function_name

TABLE: dict[str | type[exp.Expr], Maker] = {
    **texts.TEXT_FUNCTIONS,
    **times.NUMBER_FUNCTIONS,
    **times.TIME_FUNCTIONS,
    **arrays.TABLE,
    **lists.TABLE,
    **maps.TABLE,
    **structs.TABLE,
    **encodings.TABLE,
    **lambdas.TABLE,
    **texts.CHOICE_FUNCTIONS,
    **of_duckdb.TABLE,
}
NAMES: tuple[str, ...] = tuple(
    sorted(
        name.lower()
        for key in TABLE
        for name in (
            [key]
            if isinstance(key, str)
            else key.sql_names()
            if issubclass(key, exp.Func)
            else [key.key]
        )
    )
)
"""The names of the functions, for messages."""

_WORDS = """
array_cosine_similarity array_slice array_value
bar current_setting decode encode
getvariable greatest_common_divisor hash
jaro_similarity jaro_winkler_similarity
least_common_multiple list_aggregate list_histogram
make_timestamp_ns random
sha1 sha256
timezone_hour timezone_minute try_strptime txid_current unbin union_value url_decode
uuid version
"""
NOT_SUPPORTED = frozenset(_WORDS.split())
"""Functions of DuckDB that are not there, for messages."""


def maker_of(node: Any) -> Maker | None:
    """Return the function that makes the value of a call; None if the function is not known."""
    key = str(node.this).lower() if isinstance(node, exp.Anonymous) else type(node)
    return TABLE.get(key)
