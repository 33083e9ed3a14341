"""The grammar of SQLite: sqlglot's, changed so that types and calls stay as written.

A type is any words (`unsigned big int`), which determine the affinity; `+x` is a node, because it
has no affinity. Only the functions in `KEPT` become nodes; any other call is a name.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp, tokens
from sqlglot.dialects.sqlite import SQLite

from reactive.languages.sql.postgres.grammar import named_placeholder
from reactive.languages.sql.text.column_words import ColumnWords
from reactive.languages.sql.text.window_tables import WindowTables

KEPT = frozenset(
    [
        *("AVG", "COALESCE", "COUNT", "CUME_DIST", "DENSE_RANK", "FIRST_VALUE", "GROUP_CONCAT"),
        *("IFNULL", "IIF", "LAG", "LAST_VALUE", "LEAD", "MAX", "MIN", "NTH_VALUE", "NTILE"),
        *("PERCENT_RANK", "RANK", "ROW_NUMBER", "SUM", "EXISTS"),
    ]
)
"""Functions that are nodes: aggregates, windows, and functions with their own syntax."""
PARSED = frozenset({"CAST", "GROUP_CONCAT"})
"""Functions with a syntax of their own."""
PLUS, L_PAREN, COLON = (tokens.Tokenizer.SINGLE_TOKENS[sign] for sign in "+(:")
ARROWS = {tokens.Tokenizer.KEYWORDS[sign]: sign for sign in ("->", "->>")}
"""The operators of JSON."""
WORDS = frozenset(
    [
        *("CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE"),
        *("REFERENCES", "GENERATED", "AS", "ON", "AUTOINCREMENT", "PRIMARY KEY", "FOREIGN"),
    ]
)
"""Words that a declared type ends before."""


def _parse_unary_plus(parser: Any) -> exp.Expr:
    """Parse `+x`: the value of x, without its affinity."""
    return exp.Anonymous(this="+", expressions=[parser._parse_unary()])


def _make_arrow_reader(sign: str) -> Any:
    """Return the reader of an operator of JSON, a call of two arguments."""

    def build_call(parser: Any, this: exp.Expr, path: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this=sign, expressions=[this, path])

    return build_call


class SQLiteGrammar(SQLite):
    """The grammar of SQLite."""

    class Parser(ColumnWords, WindowTables, SQLite.Parser):  # type: ignore[valid-type, misc]
        """The parser of SQLite."""

        COLUMN_DIALECT = "sqlite"
        ALTER_DROP_REQUIRES_COLUMN = False
        FUNC_TOKENS = SQLite.Parser.FUNC_TOKENS | WindowTables.TOKENS
        FUNCTIONS = {name: made for name, made in SQLite.Parser.FUNCTIONS.items() if name in KEPT}
        FUNCTION_PARSERS = {
            name: made for name, made in SQLite.Parser.FUNCTION_PARSERS.items() if name in PARSED
        } | WindowTables.READERS
        UNARY_PARSERS = {**SQLite.Parser.UNARY_PARSERS, PLUS: _parse_unary_plus}
        COLUMN_OPERATORS = {
            **SQLite.Parser.COLUMN_OPERATORS,
            **{token: _make_arrow_reader(sign) for token, sign in ARROWS.items()},
        }
        LAMBDAS = {
            token: made for token, made in SQLite.Parser.LAMBDAS.items() if token not in ARROWS
        }
        PLACEHOLDER_PARSERS = {**SQLite.Parser.PLACEHOLDER_PARSERS, COLON: named_placeholder}

        def _parse_types(self, *args: Any, **options: Any) -> Any:
            """Return a declared type: words, and up to two numbers behind them."""
            if not (options.get("schema") or options.get("with_collation")):
                return super()._parse_types(*args, **options)
            words = []
            while self._curr and self._is_word():
                words.append(self._curr.text)
                self._advance()
            if not words:
                return None
            if self._match(L_PAREN):
                self._parse_csv(self._parse_unary)  # which mean nothing
                self._match_r_paren()
            return self.expression(exp.DataType(this=exp.DType.USERDEFINED, kind=" ".join(words)))

        def _parse_add_column(self) -> Any:
            """Parse a column of ALTER TABLE, which needs no type."""
            made = super()._parse_add_column()
            if made is None and self._prev.text.upper() in ("ADD", "COLUMN"):
                self._match_text_seq("COLUMN")
                name = self._parse_id_var()
                made = None if name is None else self.expression(exp.ColumnDef(this=name))
            return made

        def _is_word(self) -> bool:
            """Return True if the current token can be a word of a declared type."""
            text = self._curr.text.upper()
            if text in WORDS or text.partition(" ")[0] in WORDS:
                return False
            return bool(text.replace(" ", "").isidentifier())
