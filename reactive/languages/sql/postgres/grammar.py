"""The grammar of Postgres: sqlglot's, changed so that calls keep their names and arguments.

sqlglot gives functions of several databases one node: `instr` and `strpos`, `to_char` with its
format translated. Here only the names in `KEPT` become nodes; any other call is a name, to be found
in `functions.TABLE`. Positions in arrays stay as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from reactive.languages.sql.text.column_words import ColumnWords
from reactive.languages.sql.text.grammar import ArrayKeyword, ConditionKeys, with_whole_text
from reactive.languages.sql.text.window_tables import WindowTables

PREFIX_PLUS = "prefix plus"
"""Notes of brackets that stand for a + before their content."""
OF_BOOLEANS = "of booleans"
"""Notes of IS UNKNOWN, which is IS NULL of conditions."""
KEPT = frozenset(
    [
        "ANY_VALUE",
        "ARRAY",
        "ARRAY_AGG",
        "AVG",
        "BIT_AND",
        "BIT_OR",
        "BIT_XOR",
        "BOOL_AND",
        "BOOL_OR",
        "COALESCE",
        "CORR",
        "COUNT",
        "COVAR_POP",
        "COVAR_SAMP",
        "CUME_DIST",
        "DATE_TRUNC",
        "DENSE_RANK",
        "EXISTS",
        "FIRST_VALUE",
        "GREATEST",
        "GROUPING",
        "LAG",
        "LAST_VALUE",
        "LEAD",
        "LEAST",
        "LOGICAL_AND",
        "LOGICAL_OR",
        "MAX",
        "MIN",
        "MODE",
        "NTH_VALUE",
        "NTILE",
        "NULLIF",
        "PERCENTILE_CONT",
        "PERCENTILE_DISC",
        "PERCENT_RANK",
        "RANK",
        "REGR_AVGX",
        "REGR_AVGY",
        "REGR_COUNT",
        "REGR_INTERCEPT",
        "REGR_R2",
        "REGR_SLOPE",
        "REGR_SXX",
        "REGR_SXY",
        "REGR_SYY",
        "ROW_NUMBER",
        "STDDEV",
        "STDDEV_POP",
        "STDDEV_SAMP",
        "STRING_AGG",
        "SUM",
        "UNNEST",
        "VARIANCE",
        "VAR_POP",
        "VAR_SAMP",
    ]
)
"""Functions that are nodes: aggregates, windows, and functions with their own syntax."""
PARSED = frozenset({"CAST", "EXTRACT", "NORMALIZE", "OVERLAY", "POSITION", "STRING_AGG"}) | {
    "SUBSTRING",
    "TRIM",
}
"""Functions with a syntax of their own."""


def _parse_to_timestamp(args: list[Any]) -> exp.Expr:
    """Parse TO_TIMESTAMP of seconds, or of a text and its format, which stays as it is."""
    if len(args) == 1:
        return exp.UnixToTime(this=args[0])
    return exp.Anonymous(this="to_timestamp", expressions=args)


def named_placeholder(parser: Any) -> Any:
    """Read the name behind a colon, which may be any word: sqlglot takes no keywords.

    Return None, and read nothing, if the next word is no name.
    """
    word = parser._curr
    if word is None or not word.text.isidentifier():
        return None
    parser._advance()
    return parser.expression(exp.Placeholder(this=word.text))


def _prefix(symbol: str) -> Callable[[Any], exp.Expr]:
    """Read a prefix operator other than - and +, which binds less than these."""
    return lambda parser: exp.Anonymous(this=symbol, expressions=[parser._parse_term()])


def _complement(parser: Any) -> exp.Expr:
    """Read a prefix ~ as `_prefix` does."""
    return exp.BitwiseNot(this=parser._parse_term())


def _parse_prefix_plus(parser: Any) -> exp.Expr | None:
    """Read the operand of a prefix + (None without one); keep the + for all but a number."""
    operand: exp.Expr | None = parser._parse_unary()
    if operand is None or (isinstance(operand, exp.Literal) and not operand.is_string):
        return operand
    made = exp.Paren(this=operand)
    made.meta[PREFIX_PLUS] = True
    return made


def _binary(kind: type[exp.Expr]) -> Callable[[Any, exp.Expr, exp.Expr], exp.Expr]:
    """Read an operator that binds as `||` does; paths stay as they are written."""
    return lambda parser, left, right: parser.expression(kind(this=left, expression=right))


OPERATORS: dict[TokenType, Callable[..., exp.Expr]] = {
    TokenType.ARROW: _binary(exp.JSONExtract),
    TokenType.DARROW: _binary(exp.JSONExtractScalar),
    TokenType.HASH_ARROW: _binary(exp.JSONBExtract),
    TokenType.DHASH_ARROW: _binary(exp.JSONBExtractScalar),
    TokenType.PLACEHOLDER: _binary(exp.JSONBContainsTopKey),
    TokenType.QMARK_AMP: _binary(exp.JSONBContainsAllTopKeys),
    TokenType.QMARK_PIPE: _binary(exp.JSONBContainsAnyTopKeys),
    TokenType.HASH_DASH: _binary(exp.JSONBDeleteAtPath),
    TokenType.AT_QMARK: _binary(exp.JSONBPathExists),
    TokenType.AT_GT: _binary(exp.ArrayContainsAll),
    TokenType.DAT: lambda parser, left, right: parser.expression(
        exp.MatchAgainst(this=right, expressions=[left])
    ),
}
"""Operators of JSON and arrays."""


class PostgresGrammar(Postgres):
    """The grammar of Postgres, in which other calls are `Anonymous`."""

    INDEX_OFFSET = 0

    class Tokenizer(Postgres.Tokenizer):
        """The tokenizer of Postgres; `read.py` has replaced texts in dollars."""

        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            **Postgres.Tokenizer.SINGLE_TOKENS,
            "$": TokenType.PARAMETER,
        }

    class Parser(
        ColumnWords,
        ArrayKeyword,
        ConditionKeys,
        WindowTables,
        Postgres.Parser,  # type: ignore[valid-type, misc]
    ):
        """The parser of Postgres."""

        COLUMN_DIALECT = "postgres"
        ALTER_DROP_REQUIRES_COLUMN = False
        FUNC_TOKENS = Postgres.Parser.FUNC_TOKENS | WindowTables.TOKENS
        FUNCTIONS = {
            name: made for name, made in Postgres.Parser.FUNCTIONS.items() if name in KEPT
        } | {"TO_TIMESTAMP": _parse_to_timestamp}
        FUNCTION_PARSERS = {
            name: made for name, made in Postgres.Parser.FUNCTION_PARSERS.items() if name in PARSED
        } | WindowTables.READERS
        JSON_OPERATORS = OPERATORS
        LAMBDAS = {
            token: read
            for token, read in Postgres.Parser.LAMBDAS.items()
            if token != TokenType.ARROW
        }
        RANGE_PARSERS = {
            token: read
            for token, read in Postgres.Parser.RANGE_PARSERS.items()
            if token not in OPERATORS
        }
        PLACEHOLDER_PARSERS = {
            **Postgres.Parser.PLACEHOLDER_PARSERS,
            TokenType.COLON: named_placeholder,
        }

        UNARY_PARSERS = {
            **Postgres.Parser.UNARY_PARSERS,
            TokenType.PLUS: _parse_prefix_plus,
            TokenType.RLIKE: _complement,  # the token of ~
            TokenType.PIPE_SLASH: _prefix("|/"),
            TokenType.DPIPE_SLASH: _prefix("||/"),
            TokenType.PARAMETER: _prefix("@"),
        }

        def _parse_is(self, this: Any) -> Any:
            """Parse IS; mark IS UNKNOWN, whose operand has to be a boolean."""
            made = super()._parse_is(this)
            if made is not None and self._prev.text.upper() == "UNKNOWN":
                (made.this if isinstance(made, exp.Not) else made).meta[OF_BOOLEANS] = True
            return made

        def _parse_interval(self, *args: Any, **options: Any) -> Any:
            read = super()._parse_interval
            return with_whole_text(self, lambda: read(*args, **options))
