"""Types beside one another in every place, as an engine has them: the values, or a refusal.

    play("case", INTEGER, VARCHAR)      None, or a line with the difference

Tables `t_<type>` (column `a`) and `u_<type>` (column `b`) have rows with the values of a type. A
text of a place runs in the engine and in the library. If the engine raises for some rows, each
pair of rows runs by itself, and the library must show the rows that did not raise, and errors.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reactive import Database, PlanError

VALUES: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "smallint": ["3", "-7"],
    "integer": ["3", "0", "16777217"],
    "bigint": ["3", "1", "9007199254740993"],
    "decimal(5,2)": ["3.00", "-1.25"],
    "decimal(18,3)": ["1.250", "900719925474099.125"],
    "real": ["1.5", "3"],
    "double precision": ["2.5e0", "3e0", "9007199254740992e0"],
    "varchar": ["'3'", "'z'", "'true'", "'2024-01-31'"],
    "date": ["date '2024-01-31'", "date '1999-12-01'"],
    "time": ["time '10:20:30'"],
    "timestamp": ["timestamp '2024-01-31 00:00:00'", "timestamp '2024-01-31 10:20:30'"],
    "timestamptz": ["timestamptz '2024-01-31 00:00:00+00'"],
    "interval": ["interval '1 day'"],
    "uuid": [f"'{each * 32}'::uuid" for each in "0f"],
    "blob": ["'z'::blob", "'q'::blob"],
    "integer[]": ["array[3, null]", "array[4]"],
    "varchar[]": ["array['3']", "array['z', null]"],
}
LITERALS = ["'3'", "'z'", "'true'", "'2024-01-31'", "3", "2.5", "null", "true"]
"""Constants in the place of the second column; of texts an engine may take another type."""
_PAIR = "from {t} t, {u} u"
PLACES: dict[str, str] = {
    "union all": "select {a} from {t} t union all select {b} from {u} u",
    "union": "select {a} from {t} t union select {b} from {u} u",
    "intersect": "select {a} from {t} t intersect select {b} from {u} u",
    "except": "select {a} from {t} t except select {b} from {u} u",
    "case": f"select case when t.id = u.id then {{a}} else {{b}} end {_PAIR}",
    "coalesce": f"select coalesce({{a}}, {{b}}) {_PAIR}",
    "least": f"select least({{a}}, {{b}}) {_PAIR}",
    "greatest": f"select greatest({{b}}, {{a}}) {_PAIR}",
    "values": "select v from {t} t, {u} u, lateral (values ({a}), ({b})) w(v)",
    "array": f"select array[{{a}}, {{b}}] {_PAIR}",
    "joined arrays": f"select array[{{a}}] || array[{{b}}] {_PAIR}",
    "nullif": f"select nullif({{a}}, {{b}}) {_PAIR}",
    "=": f"select {{a}} = {{b}} {_PAIR}",
    "<>": "select t.id from {t} t, {u} u where {a} <> {b}",
    "<": f"select {{a}} < {{b}} {_PAIR}",
    "join": "select t.id from {t} t join {u} u on {a} = {b}",
    "between": f"select {{a}} between {{b}} and {{b}} {_PAIR}",
    "is distinct": f"select {{a}} is distinct from {{b}} {_PAIR}",
    "in list": f"select {{a}} in ({{b}}, {{b}}) {_PAIR}",
    "not in list": f"select t.id {_PAIR} where {{a}} not in ({{b}})",
    "in query": "select t.id from {t} t where {a} in (select {b} from {u} u)",
    "< any query": "select t.id from {t} t where {a} < any (select {b} from {u} u)",
    "simple case": f"select case {{a}} when {{b}} then 1 else 0 end {_PAIR}",
    "using": "select x from (select {a} as x from {t} t) l join (select {b} as x from {u} u) r "
    "using (x)",
    "full using": "select x from (select {a} as x from {t} t) l "
    "full join (select {b} as x from {u} u) r using (x)",
    "recursion": "with recursive r(x, n) as (select {a}, 1 from {t} t union all "
    "select {b}, n + 1 from {u} u, r where n < 2) select x, n from r",
}
PAIRED = frozenset(place for place, text in PLACES.items() if "{t} t, {u} u" in text) - {
    "<>",
    "not in list",
    "values",
}
"""Places with a row for each pair of rows."""
Run = Callable[[str], list[tuple[Any, ...]]]


class Refused(Exception):
    """An engine does not take a text."""


class Failed(Exception):
    """An engine raises for a value."""


@dataclass
class Side:
    """An operand: a column of a table, or a constant in its place."""

    kind: str
    text: str


def table_name(letter: str, kind: str) -> str:
    """Name the table of a type."""
    return letter + "_" + "".join(c if c.isalnum() else "_" for c in kind)


def sides(letter: str, column: str) -> list[Side]:
    """Return an operand for each type."""
    return [Side(kind, f"{letter}.{column}") for kind in VALUES]


def constants() -> list[Side]:
    """Return operands that are constants; their rows are those of integers."""
    return [Side("integer", text) for text in LITERALS]


def statements() -> list[str]:
    """Return the statements that make the tables."""
    made = []
    for kind, values in VALUES.items():
        for letter, column in (("t", "a"), ("u", "b")):
            name = table_name(letter, kind)
            made.append(f"create table {name} (id integer, {column} {kind})")
            rows = [*values, "null"] if letter == "t" else ["null", *reversed(values)]
            cells = ", ".join(f"({n}, {value})" for n, value in enumerate(rows))
            made.append(f"insert into {name} values {cells}")
    return made


def text_of(place: str, left: Side, right: Side, *ids: int) -> str:
    """Write a place with two operands, of all rows or of a pair of them."""
    tables = [table_name("t", left.kind), table_name("u", right.kind)]
    if ids:
        tables = [
            f"(select * from {name} where id = {n})" for name, n in zip(tables, ids, strict=True)
        ]
    return PLACES[place].format(a=left.text, b=right.text, t=tables[0], u=tables[1])


def plain(value: Any) -> Any:
    """Return a value with its class, as both sides have it; of a REAL psycopg2 has 7 digits."""
    if isinstance(value, list | tuple):
        return ("array", *map(plain, value))
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC)
    return type(value).__name__, f"{value:.7g}" if isinstance(value, float) else value


def counted(rows: Sequence[Any]) -> Counter[Any]:
    return Counter(tuple(map(plain, row)) for row in rows)


class Player:
    """Play places in the library, and in an engine."""

    def __init__(
        self,
        db: Database,
        run: Run,
        named: Callable[[str], str],
        refuses: Sequence[Callable[[Side, Side], bool]],
        passed_over: Sequence[Callable[[Side, Side], bool]] = (),
    ) -> None:
        self._db, self._run, self._refuses = db, run, refuses
        self._passed_over = passed_over
        self.made = [named(text) for text in statements()]
        for text in self.made:
            db.execute(text)
        self.asked = self.refused = 0

    def play(self, place: str, left: Side, right: Side) -> str | None:
        """Return the difference, or None."""
        text = text_of(place, left, right)
        self.asked += 1
        if any(passes(left, right) for passes in self._passed_over):
            return None
        mine, errors, why = self._own(text)
        if any(refuses(left, right) for refuses in self._refuses):
            return None if mine is None else f"{text}\n    taken: {_shown(mine)}"
        try:
            wanted, failed = self._wanted(place, left, right, text)
        except Refused as refusal:
            self.refused += 1
            reason = str(refusal).splitlines()[0]
            return None if mine is None else f"{text}\n    taken: {_shown(mine)}; {reason}"
        if mine is None and failed and not wanted:
            return None  # no row has a value
        if mine is None:
            return f"{text}\n    refused: {why}; wanted {_shown(wanted)} {failed=}"
        if wanted is None:  # the engine does not name the rows that raise
            return None if errors else f"{text}\n    no errors: {_shown(mine)}; {failed}"
        spared = mine - wanted if failed else Counter()  # NULL, whatever the other operand is
        if not set(spared) <= {(plain(None),)} or spared.total() > failed:
            spared = Counter()
        if mine - spared != wanted or bool(errors) != bool(failed):
            return f"{text}\n    {_shown(mine)} ({errors=})\n    {_shown(wanted)} ({failed=})"
        return None

    def _own(self, text: str) -> tuple[Counter[Any] | None, int, str]:
        try:
            view = self._db.sql(text).materialize()
        except PlanError as error:
            return None, 0, str(error).splitlines()[0]
        rows, errors = counted([tuple(row) for row in view]), list(view.errors)
        view.close()
        return rows, len(errors), str(errors[:1])

    def _wanted(
        self, place: str, left: Side, right: Side, text: str
    ) -> tuple[Counter[Any] | None, Any]:
        try:
            return counted(self._run(text)), 0
        except Failed as error:
            failure = str(error)
        if place not in PAIRED:
            return None, failure
        found: Counter[Any] = Counter()
        failed = 0
        for one in range(len(VALUES[left.kind]) + 1):
            for other in range(len(VALUES[right.kind]) + 1):
                try:
                    found += counted(self._run(text_of(place, left, right, one, other)))
                except Failed:
                    failed += 1
        return found, failed


def is_of_zones(left: Side, right: Side) -> bool:
    """True for an instant beside a time without a zone: the library refuses to guess the zone."""
    kinds = {left.kind, right.kind}
    is_column = right.text.startswith("u.")
    return is_column and "timestamptz" in kinds and bool(kinds & {"date", "timestamp"})


def is_of_arrays(left: Side, right: Side) -> bool:
    """True for a text beside an array, which DuckDB reads as one: the library requires a CAST."""
    is_column = right.text.startswith("u.")
    is_text = right.kind == "varchar" if is_column else right.text.startswith("'")
    return (is_text and left.kind.endswith("[]")) or (
        left.kind == "varchar" and is_column and right.kind.endswith("[]")
    )


def is_of_uuids(left: Side, right: Side) -> bool:
    """True for a UUID beside a BLOB, which DuckDB reads as one: the library does not."""
    return {left.kind, right.kind} == {"uuid", "blob"}


def is_of_loose_texts(left: Side, right: Side) -> bool:
    """True for a text beside a time or an interval: DuckDB reads '3' and days as such, CAST not."""
    is_text = right.kind == "varchar" if right.text.startswith("u.") else right.text[0] == "'"
    kinds = {left.kind, right.kind}
    return bool(kinds & {"time", "interval"}) and (is_text or left.kind == "varchar")


def _shown(rows: Counter[Any] | None) -> str:
    return str(sorted(map(repr, (rows or Counter()).elements())))[:300]
