"""Read words of the grammar as names of columns where the engine does: `select between from t`.

sqlglot parses such a word as the start of a construct. It can only be a column if an operand is
expected and the next token continues an expression, and only be an alias between an operand and a
comma or FROM. Words that the engine reserves are not changed, except behind a dot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

_POSTGRES = """
all analyse analyze and any array as asc asymmetric authorization binary both case cast check
collate collation column concurrently constraint create cross current_catalog current_date
current_role current_schema current_time current_timestamp current_user default deferrable desc
distinct do else end except false fetch for foreign freeze from full grant group having ilike in
initially inner intersect into is isnull join lateral leading left like limit localtime
localtimestamp natural not notnull null offset on only or order outer overlaps placing primary
references returning right select session_user similar some symmetric table tablesample then to
trailing true union unique user using variadic verbose when where window with
"""
_DUCKDB = """
all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by
case cast check collate collation column columns concurrently constraint create cross
current_catalog current_date current_role current_schema current_time current_timestamp
current_user default deferrable desc describe distinct do else end except false fetch for
foreign freeze from full generated glob group having ilike in initially inner intersect into is
isnull join lambda lateral leading left like limit localtime localtimestamp map natural not
notnull null offset on only or order outer overlaps pivot pivot_longer pivot_wider placing
positional primary qualify references returning right select semi session_user show similar some
struct summarize symmetric table tablesample then to trailing true try_cast tuple union unique
unpack unpivot user using variadic verbose when where window with
"""
_SQLITE = """
add all alter and as autoincrement between case cast check collate commit constraint create
current_date current_time current_timestamp current_user default deferrable delete distinct drop
else escape except exists false foreign from group having in index insert intersect into is
isnull join limit not nothing notnull null on or order primary raise references returning select
set table then to transaction true union unique update using values when where
"""


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED = {
    "postgres": _split_words(_POSTGRES),
    "duckdb": _split_words(_DUCKDB),
    "sqlite": _split_words(_SQLITE),
}
"""Words that are no columns without quotes, by dialect; of `current_date`, `true` and the like the
columns of the table decide, and they stay what they are elsewhere."""
_OPERATORS = frozenset(
    getattr(TokenType, name)
    for name in (
        *("PLUS", "DASH", "STAR", "SLASH", "DIV", "MOD", "CARET", "DSTAR", "DPIPE", "EQ", "NEQ"),
        *("LT", "LTE", "GT", "GTE", "AND", "OR", "AMP", "PIPE", "HASH", "LT_LT", "GT_GT"),
    )
    if hasattr(TokenType, name)
)
_BEFORE = _OPERATORS | {
    *(TokenType.SELECT, TokenType.WHERE, TokenType.HAVING, TokenType.ON, TokenType.NOT),
    *(TokenType.COMMA, TokenType.L_PAREN, TokenType.CASE, TokenType.WHEN, TokenType.THEN),
    *(TokenType.ELSE, TokenType.SET, TokenType.ORDER_BY, TokenType.GROUP_BY, TokenType.BETWEEN),
    *(TokenType.PARTITION_BY, TokenType.RETURNING, TokenType.DISTINCT),
}
"""Tokens behind which an operand is expected."""
_BEHIND = _OPERATORS | {
    *(TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.SEMICOLON, TokenType.ALIAS),
    *(TokenType.IS, TokenType.IN, TokenType.NOT, TokenType.BETWEEN, TokenType.LIKE),
    *(TokenType.ASC, TokenType.DESC, TokenType.WHEN, TokenType.THEN, TokenType.ELSE),
    *(TokenType.END, TokenType.WHERE, TokenType.ORDER_BY, TokenType.GROUP_BY, TokenType.LIMIT),
    *(TokenType.HAVING, TokenType.DCOLON),
}
"""Tokens that go on after an operand."""
_OPERANDS = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN}
)
_POSTFIX = frozenset({"isnull", "notnull", "null", "true", "false", "end", "asc", "desc"})
_FRAMES = frozenset({"rows", "range", "groups"})


class ColumnWords:
    """A parser that reads words of the grammar as columns where the engine does."""

    COLUMN_DIALECT: str

    def parse(self, raw_tokens: list[Any], sql: Any = None) -> Any:
        """Parse tokens, where some words are columns."""
        _rename(raw_tokens, RESERVED[self.COLUMN_DIALECT], self.COLUMN_DIALECT)
        return super().parse(raw_tokens, sql)  # type: ignore[misc]


def _rename(tokens: Sequence[Any], reserved: frozenset[str], dialect: str) -> None:
    """Make words that are columns, or aliases, names."""
    if not tokens or tokens[0].text.upper() == "MERGE":
        return
    lists = _select_lists(tokens)
    for place in range(1, len(tokens)):
        token, word = tokens[place], tokens[place].text.lower()
        if token.token_type in _OPERANDS or not word.isidentifier():
            continue
        before = tokens[place - 1].token_type
        behind = tokens[place + 1].token_type if place + 1 < len(tokens) else TokenType.SEMICOLON
        if before == TokenType.DOT:
            is_name = word not in reserved or dialect != "sqlite"
        elif before in _BEFORE:
            is_name = word not in reserved and behind in _BEHIND
            is_name = is_name and not _is_of_grammar(tokens, place, word)
        else:
            ends = (TokenType.COMMA, TokenType.FROM)
            is_alias = lists[place] and before in _OPERANDS and behind in ends
            may_be = dialect == "postgres" or word not in reserved
            is_name = is_alias and may_be and word not in _POSTFIX
        if is_name:
            token.token_type = TokenType.VAR


def _select_lists(tokens: Sequence[Any]) -> list[bool]:
    """Return for each token if it is in the list of a SELECT, before its FROM."""
    levels, made = [False], []
    for token in tokens:
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            levels.append(False)
        elif kind == TokenType.R_PAREN and len(levels) > 1:
            levels.pop()
        elif kind in (TokenType.SELECT, TokenType.FROM):
            levels[-1] = kind == TokenType.SELECT
        made.append(levels[-1])
    return made


def _is_of_grammar(tokens: Sequence[Any], place: int, word: str) -> bool:
    """Return True for the frame of a window, and of an operator behind NOT."""
    earlier = tokens[place - 2].token_type if place > 1 else None
    if tokens[place - 1].token_type == TokenType.NOT:
        return earlier not in _BEFORE  # as in IS NOT, and in `x not like -1`
    return word in _FRAMES and earlier in (TokenType.OVER, TokenType.ALIAS)
