"""A schema as text, for stores that keep it so."""

from __future__ import annotations

import json
from dataclasses import astuple

from reactive.borders.durable.store import Column, Schema


def text_of_schema(schema: Schema) -> str:
    """All of a schema but its name.

    >>> text_of_schema(Schema("words", (Column("value", "str", "plain"),)))
    '{"columns": [["value", "str", "plain"]], "key": null, "about": ""}'
    """
    columns = [astuple(column) for column in schema.columns]
    return json.dumps({"columns": columns, "key": schema.key, "about": schema.about})


def schema_of_text(table: str, text: str) -> Schema:
    """The schema of a table.

    >>> schema_of_text("words", '{"columns": [], "key": null, "about": ""}')
    Schema(table='words', columns=(), key=None, about='')
    """
    found = json.loads(text)
    columns = tuple(Column(*column) for column in found["columns"])
    return Schema(table, columns, found["key"], found["about"])
