"""JSON_TO_RECORD and JSON_TO_RECORDSET of Postgres in FROM, as queries with a column for each name.

jsonb_to_record(j) as x(a int)       (select cast(j ->> 'a' as int) as a) x
jsonb_to_recordset(j) as x(a int)    the same of each element e of j
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from reactive.languages.sql.terms.errors import take_all
from reactive.languages.sql.terms.scope import Scope

RECORDS = ("json_to_record", "jsonb_to_record")
SETS = {
    "json_to_recordset": "json_array_elements",
    "jsonb_to_recordset": "jsonb_array_elements",
}
"""The functions that give the elements of which rows are made."""
ELEMENT = "element"


def record_query(node: Any, scope: Scope, *, is_first: bool) -> Any:
    """Return the query that such a call in FROM stands for; other items of FROM unchanged.

    Raises
    ------
    PlanError: the call has no columns, or one whose type is no plain value.
    """
    call: Any = node.this
    name = call.name.lower() if isinstance(node, exp.Table | exp.Lateral) else ""
    if scope.dialect.name != "postgres" or name not in (*RECORDS, *SETS):
        return node
    alias = node.args.get("alias")
    columns = [] if alias is None else (alias.args.get("columns") or [])
    if not columns or not all(isinstance(c, exp.ColumnDef) and c.kind for c in columns):
        raise scope.error(call, f"{name}() needs columns with types", "as x(a int, b text)")
    if len(call.expressions) != 1:
        raise scope.error(call, f"{name}() takes one argument")
    of = exp.DataType.build("jsonb" if name.startswith("jsonb") else "json", dialect="postgres")
    document = exp.Cast(this=exp.Paren(this=call.expressions[0].copy()), to=of)
    source = document if name in RECORDS else exp.column(ELEMENT)
    query = exp.Select(expressions=[_column(each, source, scope) for each in columns])
    if name in SETS:
        elements = exp.Anonymous(this=SETS[name], expressions=[document])
        named = exp.TableAlias(this=exp.to_identifier(ELEMENT))
        query.set("from_", exp.From(this=exp.Table(this=elements, alias=named)))
    own = exp.TableAlias(this=alias.this.copy())
    take_all(node)
    made = exp.Subquery(this=query, alias=own)
    return made if is_first else exp.Lateral(this=exp.Subquery(this=query), alias=own)


def _column(column: Any, source: Any, scope: Scope) -> Any:
    """Return the item of SELECT for a column: a part of the document, cast to its type."""
    kind = column.kind
    if kind.this in (exp.DType.ARRAY, exp.DType.USERDEFINED, exp.DType.STRUCT):
        raise scope.error(column, f"a column of {kind.sql()} is not read from JSON", "json")
    key = exp.Literal.string(column.name)
    document = exp.Paren(this=source.copy())
    is_json = kind.this in (exp.DType.JSON, exp.DType.JSONB)
    part: Any = exp.JSONExtract if is_json else exp.JSONExtractScalar
    read = part(this=document, expression=key, only_json_types=True)
    return exp.alias_(exp.Cast(this=exp.Paren(this=read), to=kind.copy()), column.name, quoted=True)
