"""PIVOT and UNPIVOT in the grammar of DuckDB: a statement is a SELECT of all columns of the clause.

pivot s on m in ('a', 'b') using sum(x) group by g
select * from s pivot (sum(x) for m in ('a', 'b') group by g)
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]


class PivotStatements:
    """A parser that reads all of a PIVOT: expressions, aliases, ORDER BY and LIMIT."""

    def _parse_simplified_pivot(self: Any, is_unpivot: bool | None = None) -> Any:
        """Parse a statement behind its first word."""
        table = self._parse_table(joins=True)
        read = self._parse_unpivot_entry if is_unpivot else self._parse_pivot_entry
        on = self._parse_csv(read) if self._match(TokenType.ON) else []
        into = self._parse_unpivot_columns()
        using = self._parse_csv(self._parse_expression) if self._match(TokenType.USING) else []
        pivot = exp.Pivot(
            expressions=on if is_unpivot else using,
            fields=[] if is_unpivot else on,
            into=into,
            group=self._parse_group(),
            unpivot=bool(is_unpivot),
        )
        if table is None or (is_unpivot and not on) or not (on or using):
            self.raise_error("Expected ON")
        table.append("pivots", pivot)
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
        return self._parse_set_operations(self._parse_query_modifiers(select))

    def _parse_pivot_entry(self: Any) -> Any:
        """Parse `column IN (value, ...)`."""
        this = self._parse_bitwise()
        if not self._match(TokenType.IN):
            return this
        if not self._match(TokenType.L_PAREN):
            return self.expression(exp.In(this=this, field=self._parse_id_var()))
        values = self._parse_csv(self._parse_pivot_value)
        self._match_r_paren()
        return self.expression(exp.In(this=this, expressions=values))

    def _parse_pivot_value(self: Any) -> Any:
        """Parse a value in IN, with its alias."""
        this = self._parse_select_or_expression()
        return self._parse_alias(this)

    def _parse_unpivot_entry(self: Any) -> Any:
        """Parse a column, a star, several in parentheses, or an expression, with its alias."""
        return self._parse_alias(self._parse_assignment() or self._parse_star())

    def _parse_pivot_aggregation(self: Any) -> Any:
        """Parse an aggregate of PIVOT in FROM, or an expression of one."""
        return self._parse_alias(self._parse_bitwise())
