"""Read TUMBLE, HOP and SESSION: calls that take a table, and the name of a column, as arguments.

tumble(table clicks, descriptor(at), interval '1' minute)        the SQL standard, Flink
tumble(data => table clicks, timecol => descriptor(at), size => ...)
tumble(clicks, at, interval '1 minute')                          RisingWave
session(table clicks partition by user, descriptor(at), ...)     PARTITION BY is a named argument
table(tumble(...))                                               in FROM: the call alone
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

NAMES = ("tumble", "hop", "session")
PARTITION = "partition"
"""The name of the argument that PARTITION BY behind a table is."""


def is_window_call(node: Any) -> bool:
    """Return True if a node is a call of TUMBLE, HOP or SESSION."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in NAMES


def _call_reader(name: str) -> Callable[[Any], exp.Expr]:
    """Return the reader of the arguments of one of the calls."""

    def read(parser: Any) -> exp.Expr:
        found: list[Any] = []
        if parser._curr.token_type != TokenType.R_PAREN:
            _read_argument(parser, found)
            while parser._match(TokenType.COMMA):
                _read_argument(parser, found)
        return parser.expression(exp.Anonymous(this=name, expressions=found))  # type: ignore[no-any-return]

    return read


def _read_argument(parser: Any, found: list[Any]) -> None:
    """Append an argument, and the PARTITION BY behind it; one key, or several in brackets."""
    name = None
    if parser._next.token_type == TokenType.FARROW:
        name = exp.var(parser._curr.text)
        parser._advance(2)
    is_table = parser._match(TokenType.TABLE)
    value = parser._parse_table() if is_table else parser._parse_disjunction()
    if value is None:
        parser.raise_error("Expected an argument")
    found.append(value if name is None else exp.Kwarg(this=name, expression=value))
    if parser._match(TokenType.PARTITION_BY):
        found.append(exp.Kwarg(this=exp.var(PARTITION), expression=parser._parse_disjunction()))


class WindowTables:
    """A parser that reads TUMBLE, HOP and SESSION."""

    TOKENS = frozenset({TokenType.SESSION})
    """Tokens of these names, which may stand before a bracket."""
    READERS: ClassVar[dict[str, Any]] = {name.upper(): _call_reader(name) for name in NAMES}

    def _parse_table_part(self, schema: bool = False) -> Any:
        """Parse a part of a table's name, or a call; its first argument is a table, too."""
        found = super()._parse_table_part(schema)  # type: ignore[misc]
        if isinstance(found, exp.Anonymous) and str(found.this).lower() == "table":
            inner = found.expressions
            found = inner[0] if len(inner) == 1 and is_window_call(inner[0]) else found
        if is_window_call(found):
            for argument in found.expressions[:1]:
                if isinstance(argument, exp.Column) and not argument.args.get("catalog"):
                    table = exp.Table(this=argument.this, db=argument.args.get("table"))
                    argument.replace(table.update_positions(argument.this))
        return found
