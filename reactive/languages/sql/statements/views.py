"""CREATE VIEW: a named query, or a materialized view that lives until it is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.api.relation import AnyRelation
from reactive.engine.runtime.sql_names import DialectName
from reactive.languages.sql.relation import make_relation
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import NamedPlan


@record
class ViewText:
    """The statement that has made a view, the values of its parameters, and its dialect."""

    text: str
    values: Any
    dialect: DialectName


def create_view(tree: Any, name: str, around: Scope, drop_replaced: Callable[[], None]) -> None:
    """Create a view: a materialized view of rows, or a plan that queries read by name."""
    catalog = around.environment.catalog
    found = read_view(tree, around)
    drop_replaced()
    set_view(name, found, around)
    text = ViewText(around.text, dict(around.constants), around.dialect.name)
    catalog.view_texts[name.casefold()] = text
    if catalog.stored is not None:
        catalog.stored.define_view(name, text)


def read_view(tree: Any, around: Scope) -> NamedPlan | AnyRelation:
    """Return the source that a CREATE VIEW names, or the relation of a materialized view."""
    query = around.query(tree.expression)
    names = around.replace_names(column_names(tree), query.names, tree.this)
    views = tuple(dict.fromkeys(around.environment.views))
    if _is_materialized(tree):
        node, schema = query.rows(names)
        made: AnyRelation = make_relation(around.environment.catalog.engine, node, schema, views)
        return made
    found: NamedPlan = query.as_source(names, views)
    return found


def set_view(name: str, found: NamedPlan | AnyRelation, around: Scope) -> None:
    """Give a view its name, in the place of the one that has it."""
    catalog, folded = around.environment.catalog, name.casefold()
    if isinstance(found, NamedPlan):
        catalog.views[folded] = found
        return
    earlier = catalog.kept.pop(folded, None)
    if earlier is not None:
        earlier.close()
    catalog.kept[folded] = found.materialize(name)


def drop_view(target: Any, around: Scope) -> None:
    """Drop a view that SQL made; refuse an unknown name."""
    catalog, folded = around.environment.catalog, target.name.casefold()
    catalog.view_texts.pop(folded, None)
    if catalog.stored is not None:
        catalog.stored.open("view", target.name)
        catalog.stored.forget(f"view {folded}")
    kept = catalog.kept.pop(folded, None)
    if kept is not None:
        kept.close()
    elif catalog.views.pop(folded, None) is None:
        raise around.error(target, f"there is no view {target.name!r} that SQL made")


def column_names(tree: Any) -> tuple[str, ...]:
    """Return the names of columns in parentheses behind that of a table or view; () without any."""
    if not isinstance(tree.this, exp.Schema):
        return ()
    return tuple(column.name for column in tree.this.expressions)


def _is_materialized(tree: Any) -> bool:
    properties = tree.args.get("properties")
    return properties is not None and properties.find(exp.MaterializedProperty) is not None
