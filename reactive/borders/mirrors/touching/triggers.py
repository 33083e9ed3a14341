"""What triggers of the SQL database write to, by their text: nobody else tells that they ran.

    create trigger t after insert on orders begin update customers set ...; end

touches `customers`, as a whole, with each statement on `orders`. A trigger that changes only the
row that is written touches nothing more: that row is read again in any case.

Cost: one query when a mirror is made. SQLite and Postgres are asked; others are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Table, text

from reactive.borders.mirrors.touching.texts import tables_written

ASKED = {
    "sqlite": "select tbl_name, sql from sqlite_master where type = 'trigger'",
    "postgresql": (
        "select c.relname, p.prosrc from pg_trigger t join pg_class c on c.oid = t.tgrelid "
        "join pg_proc p on p.oid = t.tgfoid where not t.tgisinternal"
    ),
}


def written_by_triggers(connection: Connection, tables: Sequence[Table]) -> dict[Table, set[Table]]:
    """The tables that statements on a table write to by its triggers."""
    asked = ASKED.get(connection.dialect.name)
    found: dict[Table, set[Table]] = {}
    for name, body in connection.execute(text(asked)) if asked else ():
        inside = str(body).lower().partition("begin")[2] or str(body)
        for table in tables:
            if table.name.lower() == str(name).lower():
                found.setdefault(table, set()).update(tables_written(inside, tables) or ())
    return {table: written for table, written in found.items() if written}
