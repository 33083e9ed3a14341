"""The tables that drawn queries ask: few rows with few values, many of them NULL, some twice."""

from __future__ import annotations

from random import Random

Columns = dict[str, str]

COMMON: dict[str, tuple[str, Columns]] = {
    "customer": (
        "id integer primary key, name text not null, region text, credit double",
        {"id": "int!", "name": "text!", "region": "text", "credit": "float"},
    ),
    "orders": (
        "id integer primary key, cid integer, amount integer not null, discount double,"
        " status text",
        {"id": "int!", "cid": "int", "amount": "int!", "discount": "float", "status": "text"},
    ),
    "item": (
        "oid integer not null, product text, quantity integer, price double not null",
        {"oid": "int!", "product": "text", "quantity": "int", "price": "float!"},
    ),
    "note": ("a integer, b integer, c text", {"a": "int", "b": "int", "c": "text"}),
}
"""Tables that both databases understand alike: definition, and columns; `!` is NOT NULL."""

TYPED: dict[str, tuple[str, Columns]] = {
    "event": (
        "id integer primary key, day date, moment timestamp, price decimal(8,2), fine boolean,"
        " kind varchar not null, many bigint",
        {
            "id": "int!",
            "day": "date",
            "moment": "timestamp",
            "price": "decimal",
            "fine": "bool",
            "kind": "text!",
            "many": "int",
        },
    ),
    "rate": (
        "kind varchar, share decimal(5,3) not null, since date not null, active boolean not null",
        {"kind": "text", "share": "decimal!", "since": "date!", "active": "bool!"},
    ),
}
"""Tables whose columns have types that SQLite does not have."""

TEXTS = ("red", "blue", "green", "Red", "a_b", "x%", "")


def statements(tables: dict[str, tuple[str, Columns]], random: Random) -> list[str]:
    """The statements that make the tables and fill them."""
    made = [f"create table {name} ({definition})" for name, (definition, _) in tables.items()]
    for name, (definition, columns) in tables.items():
        for number in range(random.randint(10, 18)):
            values = [_value(column, kind, number, random) for column, kind in columns.items()]
            made.append(f"insert into {name} values ({', '.join(values)})")
            if "primary key" not in definition and random.random() < 0.15:
                made.append(made[-1])
    return made


def _value(column: str, kind: str, number: int, random: Random) -> str:
    if column == "id":
        return str(number)
    if not kind.endswith("!") and random.random() < 0.2:
        return "null"
    if column in ("cid", "oid"):
        return str(random.randrange(12))
    return literal(kind.rstrip("!"), random)


def literal(kind: str, random: Random) -> str:
    """A value of a type, as SQL writes it."""
    match kind:
        case "int":
            return str(random.randint(-2, 9))
        case "float":
            return str(random.choice((0.5, 1.25, 2.0, 3.75, -1.5, 10.0)))
        case "text":
            return f"'{random.choice(TEXTS)}'"
        case "decimal":
            return str(random.choice(("1.25", "0.50", "12.30", "3.75", "-2.10")))
        case "bool":
            return random.choice(("true", "false"))
        case "date":
            return f"date '{_day(random)}'"
        case "timestamp":
            return (
                f"timestamp '{_day(random)} {random.randrange(24):02}:{random.randrange(60):02}:07'"
            )
        case _:
            raise ValueError(kind)


def _day(random: Random) -> str:
    return f"2024-{random.choice((1, 2, 3, 12)):02}-{random.choice((1, 15, 28)):02}"
