"""Readings of words that the grammars of sqlglot drop from a text."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from reactive.languages.sql.text.column_words import ColumnWords
from reactive.languages.sql.text.pivots import PivotStatements
from reactive.languages.sql.text.window_tables import WindowTables


def with_whole_text(parser: Any, read: Any) -> Any:
    """Read INTERVAL; of `'1 day 02:00'` sqlglot keeps the day alone.

    Parameters
    ----------
    read: how sqlglot's own parser reads it.
    """
    place = parser._index + (parser._curr is not None and parser._curr.text.upper() == "INTERVAL")
    token = parser._tokens[place] if place < len(parser._tokens) else None
    if token is not None and token.token_type in SIGNS and place > parser._index:
        return None  # a column is called so: `interval + 1`
    found = read()
    if token is None or token.token_type != TokenType.STRING:
        return found
    first = found.this if isinstance(found, exp.Add) else found
    if found is first and isinstance(found, exp.Interval) and found.text("unit") in OF_FRAMES:
        found.set("unit", None)
        parser._retreat(parser._index - 1)
        return found
    if isinstance(first, exp.Interval) and isinstance(first.this, exp.Literal):
        unit = first.args.get("unit")
        written = token.text.strip().lower()
        is_cut = unit is not None and written != first.this.name.lower()
        kept = "" if unit is None else f"{first.this.name}{unit.name}".lower()
        if is_cut and written.replace(" ", "") != kept:
            first.set("this", exp.Literal.string(token.text))
            first.set("unit", None)
    return found


SIGNS = frozenset({TokenType.PLUS, TokenType.DASH})
OF_FRAMES = frozenset({"PRECEDING", "FOLLOWING"})
"""Words behind an interval without a unit, which sqlglot would parse as its unit."""


class ArrayKeyword:
    """A parser in which only the word ARRAY makes an array.

    `t.array[1]`, `"array"[1]` and `list[1]` are elements of columns.
    """

    _OF_WORD: ClassVar[dict[str, Any]] = {"ARRAY": exp.Array}
    ARRAY_CONSTRUCTORS: dict[str, Any] = _OF_WORD

    def _parse_bracket(self, this: Any = None) -> Any:
        """Parse brackets; a quoted name before them makes no array."""
        name = this.this if isinstance(this, exp.Column) and not this.table else this
        is_word = not isinstance(name, exp.Identifier) or not name.quoted
        is_word = is_word and isinstance(name, exp.Identifier | exp.Var | None)
        around = self.ARRAY_CONSTRUCTORS
        self.ARRAY_CONSTRUCTORS = self._OF_WORD if is_word else {}
        try:
            return super()._parse_bracket(this)  # type: ignore[misc]
        finally:
            self.ARRAY_CONSTRUCTORS = around


class ConditionKeys:
    """A parser of conditions where sqlglot expects values only.

    `group by cube (a > 1)`, `grouping sets ((a, b is null))`, and rows of VALUES behind IN.
    """

    def _parse_grouping_set(self) -> Any:
        """Parse one of GROUPING SETS, which may be a condition."""
        parser: Any = self
        found = parser._parse_grouping_sets() or parser._parse_cube_or_rollup()
        return found or parser._parse_disjunction()

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        """Parse CUBE or ROLLUP, whose keys may be conditions."""
        parser: Any = self
        kinds = {TokenType.CUBE: exp.Cube, TokenType.ROLLUP: exp.Rollup}
        kind = next((kind for token, kind in kinds.items() if parser._match(token)), None)
        if kind is None:
            return None
        keys = [] if with_prefix else parser._parse_wrapped_csv(parser._parse_disjunction)
        return parser.expression(kind(expressions=keys))

    def _parse_in(self, *args: Any, **options: Any) -> Any:
        """Parse IN; VALUES in its list is a query."""
        found = super()._parse_in(*args, **options)  # type: ignore[misc]
        listed = found.expressions if isinstance(found, exp.In) else []
        if len(listed) == 1 and isinstance(listed[0], exp.Values):
            rows = listed[0]
            rows.set("alias", exp.TableAlias(this=exp.to_identifier("rows")))
            query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=rows))
            found.set("expressions", None)
            found.set("query", exp.Subquery(this=query))
        return found


class DuckDBGrammar(DuckDB):
    """The grammar of DuckDB; positions in arrays as written, and Snowflake's MATCH_CONDITION."""

    INDEX_OFFSET = 0

    def to_json_path(self, path: Any) -> Any:
        """Return a path of JSON as it is written."""
        return path

    class Tokenizer(DuckDB.Tokenizer):
        """The tokenizer of DuckDB; `read.py` has replaced texts in dollars."""

        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
        KEYWORDS = {**DuckDB.Tokenizer.KEYWORDS, "MATCH_CONDITION": TokenType.MATCH_CONDITION}

    class Parser(
        ColumnWords,
        ArrayKeyword,
        ConditionKeys,
        PivotStatements,
        WindowTables,
        DuckDB.Parser,  # type: ignore[valid-type, misc]
    ):
        """The parser of DuckDB."""

        COLUMN_DIALECT = "duckdb"
        ALTER_DROP_REQUIRES_COLUMN = False
        FUNC_TOKENS = DuckDB.Parser.FUNC_TOKENS | WindowTables.TOKENS
        FUNCTION_PARSERS = {**DuckDB.Parser.FUNCTION_PARSERS, **WindowTables.READERS}
        TABLE_ALIAS_TOKENS = DuckDB.Parser.TABLE_ALIAS_TOKENS - {TokenType.MATCH_CONDITION}

        def _parse_primary(self) -> Any:
            """Parse a primary; `.5` keeps its text, whose type differs from that of `0.5`."""
            first = self._curr
            found = super()._parse_primary()
            is_short = first is not None and first.token_type == TokenType.DOT
            if is_short and isinstance(found, exp.Literal) and found.this.startswith("0."):
                found.set("this", found.this[1:])  # as `.5` is DECIMAL(1,1), and 0.5 is not
            return found

        def _parse_types(self, *args: Any, **options: Any) -> Any:
            """Parse a type; `row(1, 2) < row(1, 3)` begins with a call, and not with a type."""
            is_value = bool(args[0] if args else options.get("check_func"))
            if is_value and self._curr is not None and self._curr.text.upper() == "ROW":
                return None
            return super()._parse_types(*args, **options)

        def _parse_map(self) -> Any:
            """Parse a map; brackets behind `map {...}` read a key of the map."""
            found = super()._parse_map()
            innermost = found.this if isinstance(found, exp.ToMap) else None
            while isinstance(innermost, exp.Bracket) and isinstance(innermost.this, exp.Bracket):
                innermost = innermost.this
            if not isinstance(innermost, exp.Bracket):
                return found
            whole = found.this
            innermost.set("this", exp.ToMap(this=innermost.this))
            return whole

        def _parse_interval(self, *args: Any, **options: Any) -> Any:
            read = super()._parse_interval
            return with_whole_text(self, lambda: read(*args, **options))
