"""Columns that the database fills: GENERATED ALWAYS AS (...), AS IDENTITY, and SERIAL.

    b int generated always as (a * 2)     computed when a statement writes the row; a CHECK holds
                                          rows of Python to it
    id serial, ... as identity            numbered where no value is given: the greatest and one

State:  none beside the row.
Cost:   of the expression, for each row that is written.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.languages.sql.statements.constraints import Constraint
from reactive.languages.sql.terms.errors import peek, put, take
from reactive.languages.sql.terms.scope import Scope

SERIALS = {
    exp.DType.SMALLSERIAL: exp.DType.SMALLINT,
    exp.DType.SERIAL: exp.DType.INT,
    exp.DType.BIGSERIAL: exp.DType.BIGINT,
}
COMPUTED, IDENTITY = exp.ComputedColumnConstraint, exp.GeneratedAsIdentityColumnConstraint


@record
class Filled:
    """The columns of a table that the database fills."""

    computed: dict[str, Any]
    """Expressions by the folded names of columns."""
    numbered: str | None = None
    is_always: bool = False
    """True if a statement cannot give the number."""

    def constraints(self) -> list[Constraint]:
        """Return the constraints that hold rows to the expressions."""
        found = []
        for name, node in self.computed.items():
            own = exp.Column(this=exp.to_identifier(name, quoted=True))
            same = exp.NullSafeEQ(this=own, expression=exp.Paren(this=node.copy()))
            found.append(Constraint(exp.CheckColumnConstraint(this=same), ()))
        return found


def take_filled(tree: Any, around: Scope) -> Filled:
    """Take GENERATED, IDENTITY and SERIAL out of a CREATE TABLE."""
    computed, numbered, is_always = dict[str, Any](), list[str](), False
    if not isinstance(tree.this, exp.Schema):
        return Filled(computed)
    for node in tree.this.expressions:
        if not isinstance(node, exp.ColumnDef):
            continue
        folded, kept, kind = node.name.casefold(), [], peek(node, "kind")
        if around.dialect.name == "postgres" and kind is not None and kind.this in SERIALS:
            put(node, "kind", exp.DataType(this=SERIALS[kind.this]))
            numbered.append(folded)
        for each in peek(node, "constraints") or ():
            made = peek(each, "kind")
            if isinstance(made, COMPUTED) or (isinstance(made, IDENTITY) and made.expression):
                _ = made.args.get("persisted"), made.args.get("not_null")
                computed[folded] = made.this if isinstance(made, COMPUTED) else made.expression
            elif isinstance(made, IDENTITY):
                is_always = bool(made.this)
                take(made)
                if made.args.get("start") or made.args.get("increment"):
                    raise around.error(made, "START and INCREMENT of IDENTITY are not supported")
                numbered.append(folded)
            else:
                kept.append(each)
        if folded in numbered:
            kept.append(exp.ColumnConstraint(kind=exp.NotNullColumnConstraint()))
        if peek(node, "constraints") or kept:
            put(node, "constraints", kept)
    if len(numbered) > 1:
        raise around.error(tree, "a table has one column that is numbered")
    for node in computed.values():
        for column in node.find_all(exp.Column):
            if column.name.casefold() in computed:
                raise around.error(node, f"{column.name!r} is computed itself")
    return Filled(computed, next(iter(numbered), None), is_always)
