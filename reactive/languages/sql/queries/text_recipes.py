"""Queries that are read again: their plans are copied, and only their values differ.

    db.sql("select id from orders where customer = :k", k=1)       read twice: once to note it
    db.sql("select id from orders where customer = :k", k=2)       and once with a slot for :k
    db.sql("select id from orders where customer = :k", k=3)       a copy with 3 in the slot

The names in the text must be those of tables, which are the same. If the translation looks at a
value, or fails, each query of this text is translated.

State:  recipes of `kept.MOST` texts for each database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from optimizer import plan
from optimizer.expr import SlotValue
from optimizer.plans.check_reads import check_every_read
from optimizer.plans.substitution import Recipe, UnknownPlace
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.languages.sql.statements import kept
from reactive.languages.sql.terms.scope import OpenValues
from reactive.languages.sql.terms.values import BindingSchema, Catalog, Environment

Translated = tuple[plan.Node, BindingSchema]
Names = tuple[tuple[str, plan.Table, BindingSchema | None], ...]
"""The names of a text, each with the table, and the declared columns of the table."""
Translate = Callable[
    [str, Mapping[str, Any], OpenValues], tuple[plan.Node, BindingSchema, Environment]
]
"""Translates a text; returns its plan, its columns and the names that it has read."""


@dataclass(slots=True)
class _NotedText:
    """A text that was read, and the recipe of its query, if there is one."""

    recipe: Recipe | None = None
    names: Names = ()
    is_hopeless: bool = False


class TextRecipes:
    """The recipes of the queries of a database."""

    def __init__(self, catalog: Catalog, translate: Translate) -> None:
        self._catalog = catalog
        self._translate = translate
        self._noted: dict[Any, _NotedText] = {}

    def find(self, text: str, parameters: Mapping[str, Any]) -> Translated | None:
        """Return the query of a text, by its recipe; None if the text has to be translated."""
        if (
            not parameters
            or len(text) > kept.LONGEST
            or not all(map(_is_open, parameters.values()))
        ):
            return None
        key = (text, *[(name, type(value)) for name, value in parameters.items()])
        noted = self._noted.get(key)
        if noted is None:
            if len(self._noted) >= kept.MOST:
                self._noted.pop(next(iter(self._noted)), None)
            self._noted[key] = _NotedText()
            return None
        if noted.is_hopeless:
            return None
        if noted.recipe is None or not self._is_current(noted):
            self._learn(noted, text, parameters)
        recipe = noted.recipe
        return None if recipe is None else recipe.copy(tuple(parameters.values()))

    def _is_current(self, noted: _NotedText) -> bool:
        """Return True if the names of a text still mean the same tables."""
        catalog = self._catalog
        for name, table, schema in noted.names:
            found = catalog.table(name)
            if found is None or found.plan is not table or name.casefold() in catalog.views:
                return False
            if catalog.schemas.get(found.plan.number) is not schema:
                return False
        return True

    def _learn(self, noted: _NotedText, text: str, parameters: Mapping[str, Any]) -> None:
        """Translate a text with slots for its values; note that it is hopeless if one is read."""
        noted.recipe, noted.is_hopeless = None, True
        opened = OpenValues()
        opened.held |= {name: SlotValue(value) for name, value in parameters.items()}
        held = [opened.held[name] for name in parameters]
        try:
            node, schema, environment = self._translate(text, parameters, opened)
            noted.names = self._tables_of(environment)
            check_every_read(node)
            if opened.found != parameters.keys() or any(e.is_asked or e.computed for e in held):
                return
            recipe = Recipe(node, schema, held)
            plain = self._translate(text, parameters, OpenValues())
            if recipe.copy(tuple(parameters.values())) == plain[:2]:
                noted.recipe, noted.is_hopeless = recipe, False
        except UnknownPlace:
            return
        except Exception as error:  # raised again by the translation without slots
            reraise_asynchronous(error)

    def _tables_of(self, environment: Environment) -> Names:
        """Return the names of a text with their tables; raise `UnknownPlace` for other names."""
        catalog, found = self._catalog, []
        for name in environment.from_catalog:
            table = catalog.table(name)
            if table is None or name.casefold() in catalog.views:
                raise UnknownPlace(name)
            found.append((name, table.plan, catalog.schemas.get(table.plan.number)))
        return tuple(found)


def _is_open(value: Any) -> bool:
    """Return True if a slot may stand for a value."""
    if type(value) is datetime and (value.tzinfo is not None or value.fold):
        return False
    return type(value) in kept.OPEN
