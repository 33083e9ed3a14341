"""Recursions through their own aggregates, each with its least solution by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from reactive import Count, CountDistinct, Database, Max, Min, Sum, Table, fixpoint


class Share(NamedTuple):
    owner: int
    of: int
    percent: int


class Control(NamedTuple):
    owner: int
    of: int


class Friend(NamedTuple):
    of: int
    who: int


class Need(NamedTuple):
    """A number of pieces, or of friends that somebody wants to meet."""

    part: int
    n: int


class Part(NamedTuple):
    whole: int
    part: int
    n: int


Facts = dict[str, list[Any]]
Made = tuple[Any, dict[str, tuple[Table[Any], Callable[[Random], Any]]]]


@dataclass(frozen=True)
class Program:
    """A query over new tables, with generators of their rows, and its solution by hand."""

    query: Callable[[Database], Made]
    by_hand: Callable[[Facts], set[Any]]


def least(step: Callable[[set[Any]], Iterable[Any]]) -> set[Any]:
    rows: set[Any] = set()
    while (found := set(step(rows))) != rows:
        rows = found
    return rows


def share(random: Random) -> Share:
    return Share(random.randrange(5), random.randrange(5), random.choice((0, 10, 20, 30, 30, 51)))


def friend(random: Random) -> Friend:
    return Friend(random.randrange(6), random.randrange(6))


def one_of_six(random: Random) -> int:
    return random.randrange(6)


def control(db: Database) -> Made:
    shares = db.table(Share, name="shares")
    query = fixpoint(
        lambda controls: (
            shares.union_all(
                controls.join(shares, on=lambda c, s: c.of == s.owner).select(
                    lambda c, s: Share(c.owner, s.of, s.percent)
                )
            )
            .group_by(lambda s: (s.owner, s.of))
            .aggregate(Sum(lambda s: s.percent))
            .where(lambda key, total: total > 50)
            .select(lambda key, total: Control(key[0], key[1]))
        )
    )
    return query, {"shares": (shares, share)}


def control_by_hand(facts: Facts) -> set[Any]:
    shares = facts["shares"]

    def step(rows: set[Any]) -> Iterable[Any]:
        totals: Counter[Any] = Counter()
        for each in shares:
            totals[each.owner, each.of] += each.percent
        for owner, of in rows:
            for each in shares:
                if each.owner == of:
                    totals[owner, each.of] += each.percent
        return (Control(*key) for key, total in totals.items() if total > 50)

    return least(step)


def control_by_rules(db: Database) -> Made:
    program = db.datalog("""
        .decl share(owner: number, of: number, percent: number) .input share
        .decl controls(owner: number, of: number) .output controls
        .decl held(a: number, via: number, b: number, n: number)
        held(a, a, b, n) :- share(a, b, n).
        held(a, via, b, n) :- controls(a, via), share(via, b, n).
        controls(a, b) :- held(a, _, b, _), sum n : { held(a, _, b, n) } > 50.
    """)
    row, table = program.row("share"), program.tables["share"]
    return program["controls"], {"shares": (table, lambda random: row(*share(random)))}


def control_by_rules_by_hand(facts: Facts) -> set[Any]:
    shares = {tuple(each) for each in facts["shares"]}

    def step(rows: set[Any]) -> Iterable[Any]:
        held = {(a, a, b, n) for a, b, n in shares}
        held |= {(a, via, b, n) for a, via in rows for of, b, n in shares if of == via}
        totals: Counter[Any] = Counter()
        for a, _, b, n in held:
            totals[a, b] += n
        return (key for key, total in totals.items() if total > 50)

    return least(step)


def _party_tables(db: Database) -> Any:
    return db.table(Friend, name="friends"), db.table(int, name="organisers")


def party(db: Database) -> Made:
    friends, organisers = _party_tables(db)
    query = fixpoint(
        lambda attends: organisers.union(
            attends.join(friends, on=lambda a, f: a == f.who)
            .group_by(lambda a, f: f.of)
            .aggregate(Count())
            .where(lambda of, n: n >= 3)
            .select(lambda of, n: of)
        )
    )
    return query, {"friends": (friends, friend), "organisers": (organisers, one_of_six)}


def party_by_hand(facts: Facts) -> set[Any]:
    def step(rows: set[Any]) -> Iterable[Any]:
        counts = Counter(f.of for f in facts["friends"] if f.who in rows)
        return [*facts["organisers"], *(of for of, n in counts.items() if n >= 3)]

    return least(step)


def party_of_different(db: Database) -> Made:
    """Written as a comprehension: `len` of a set."""
    friends, organisers = _party_tables(db)
    people = db.table(int, name="people")

    @db.query
    def attends() -> set[int]:
        return set(organisers) | {
            p
            for p in people
            if len({f.who for f in friends if f.of == p and f.who in attends()}) >= 2
        }

    tables = {"friends": (friends, friend), "organisers": (organisers, one_of_six)}
    return attends, {**tables, "people": (people, one_of_six)}


def party_of_different_by_hand(facts: Facts) -> set[Any]:
    def step(rows: set[Any]) -> Iterable[Any]:
        met: defaultdict[int, set[int]] = defaultdict(set)
        for each in facts["friends"]:
            if each.who in rows:
                met[each.of].add(each.who)
        return [*facts["organisers"], *(p for p in facts["people"] if len(met[p]) >= 2)]

    return least(step)


def party_by_wish(db: Database) -> Made:
    """Everybody says how many others have to come: the count is compared with a row."""
    friends, organisers = _party_tables(db)
    wishes = db.table(Need, name="wishes")

    def step(attends: Any) -> Any:
        met = (
            attends.join(friends, on=lambda a, f: a == f.who)
            .group_by(lambda a, f: f.of)
            .aggregate(CountDistinct(lambda a, f: a))
        )
        willing = met.join(wishes, on=lambda of, n, w: of == w.part and n >= w.n)
        return organisers.union(willing.select(lambda of, n, w: of))

    wish: Callable[[Random], Need] = lambda r: Need(r.randrange(6), r.randrange(4))  # noqa: E731
    tables = {"friends": (friends, friend), "organisers": (organisers, one_of_six)}
    return fixpoint(step), {**tables, "wishes": (wishes, wish)}


def party_by_wish_by_hand(facts: Facts) -> set[Any]:
    def step(rows: set[Any]) -> Iterable[Any]:
        met: defaultdict[int, set[int]] = defaultdict(set)
        for each in facts["friends"]:
            if each.who in rows:
                met[each.of].add(each.who)
        willing = (w.part for w in facts["wishes"] if w.part in met and len(met[w.part]) >= w.n)
        return [*facts["organisers"], *willing]

    return least(step)


def shortest(db: Database) -> Made:
    """The least cost of each node is in its row: `keep=` replaces the row when it falls."""
    roads, starts = db.table(Part, name="roads"), db.table(Need, name="starts")
    query = fixpoint(
        lambda ways: (
            starts.union_all(
                ways.join(roads, on=lambda w, r: w.part == r.whole).select(
                    lambda w, r: Need(r.part, w.n + r.n)
                )
            )
            .group_by(lambda w: w.part)
            .aggregate(Min(lambda w: w.n))
            .select(lambda part, n: Need(part, n))
        ),
        keep=Min(lambda w: w.n),
        by=lambda w: w.part,
    )

    def road(random: Random) -> Part:
        return Part(random.randrange(6), random.randrange(6), random.randint(1, 9))

    start: Callable[[Random], Need] = lambda r: Need(r.randrange(6), r.randrange(5))  # noqa: E731
    return query, {"roads": (roads, road), "starts": (starts, start)}


def shortest_by_hand(facts: Facts) -> set[Any]:
    best: dict[int, int] = {}
    while True:
        before = dict(best)
        found = [*facts["starts"]]
        found += [Need(r.part, best[r.whole] + r.n) for r in facts["roads"] if r.whole in best]
        for part, n in found:
            best[part] = min(best.get(part, n), n)
        if best == before:
            return {Need(*item) for item in best.items()}


def pieces(db: Database) -> Made:
    """A bill of materials: the pieces of each part that all orders need."""
    parts, orders = db.table(Part, name="parts"), db.table(Need, name="orders")
    query = fixpoint(
        lambda needs: (
            orders.union_all(
                needs.join(parts, on=lambda n, p: n.part == p.whole).select(
                    lambda n, p: Need(p.part, n.n * p.n)
                )
            )
            .group_by(lambda n: n.part)
            .aggregate(Sum(lambda n: n.n))
            .select(lambda part, n: Need(part, n))
        ),
        keep=Max(lambda n: n.n),
        by=lambda n: n.part,
    )

    def part(random: Random) -> Part:
        whole = random.randrange(6)
        return Part(whole, random.randrange(whole + 1, 7), random.randint(1, 3))

    order: Callable[[Random], Need] = lambda r: Need(r.randrange(6), r.randrange(5))  # noqa: E731
    return query, {"parts": (parts, part), "orders": (orders, order)}


def pieces_by_hand(facts: Facts) -> set[Any]:
    totals: dict[int, int] = {}
    for _ in range(8):
        found: defaultdict[int, int] = defaultdict(int)
        for part, n in facts["orders"]:
            found[part] += n
        for whole, part, n in facts["parts"]:
            if whole in totals:
                found[part] += totals[whole] * n
        totals = dict(found)
    return {Need(*item) for item in totals.items()}


def party_of_pairs(db: Database) -> Made:
    """Joins of three, of which rules leave out fields: each pair counts, also with equal fields."""
    friends, organisers = _party_tables(db)
    different = friends.distinct()
    query = fixpoint(
        lambda attends: organisers.union(
            different.join(attends, on=lambda f, a: f.who == a)
            .join(different, on=lambda f, a, g: g.of == f.of and g.who < a + 3)
            .join(attends, on=lambda f, a, g, b: g.who == b)
            .select(lambda f, a, g, b: (f.of, g.of))
            .group_by(lambda pair: pair[0])
            .aggregate(Count())
            .where(lambda of, n: n >= 4)
            .select(lambda of, n: of)
        )
    )
    return query, {"friends": (friends, friend), "organisers": (organisers, one_of_six)}


def party_of_pairs_by_hand(facts: Facts) -> set[Any]:
    friends = set(facts["friends"])

    def step(rows: set[Any]) -> Iterable[Any]:
        met = [f for f in friends if f.who in rows]
        counts = Counter(f.of for f in met for g in met if f.of == g.of and g.who < f.who + 3)
        return [*facts["organisers"], *(of for of, n in counts.items() if n >= 4)]

    return least(step)


def party_of_best(db: Database) -> Made:
    """`Max` reads equal rows once, so that what cannot be counted is no obstacle."""
    friends, organisers = _party_tables(db)
    query = fixpoint(
        lambda attends: organisers.union(
            friends.semi_join(attends, on=lambda f, a: f.who == a)
            .select(lambda f: (f.of, f.who // 2))
            .join(friends, on=lambda pair, g: pair[0] == g.of and g.who > pair[1])
            .group_by(lambda pair, g: g.of)
            .aggregate(Max(lambda pair, g: g.who + pair[1]))
            .where(lambda of, n: n >= 5)
            .select(lambda of, n: of)
        )
    )
    return query, {"friends": (friends, friend), "organisers": (organisers, one_of_six)}


def party_of_best_by_hand(facts: Facts) -> set[Any]:
    friends = facts["friends"]

    def step(rows: set[Any]) -> Iterable[Any]:
        pairs = {(f.of, f.who // 2) for f in friends if f.who in rows}
        met = {g.of for of, n in pairs for g in friends if of == g.of and n < g.who >= 5 - n}
        return [*facts["organisers"], *met]

    return least(step)


PROGRAMS = {
    "party_of_pairs": Program(party_of_pairs, party_of_pairs_by_hand),
    "party_of_best": Program(party_of_best, party_of_best_by_hand),
    "control": Program(control, control_by_hand),
    "control_by_rules": Program(control_by_rules, control_by_rules_by_hand),
    "party": Program(party, party_by_hand),
    "party_of_different": Program(party_of_different, party_of_different_by_hand),
    "party_by_wish": Program(party_by_wish, party_by_wish_by_hand),
    "shortest": Program(shortest, shortest_by_hand),
    "pieces": Program(pieces, pieces_by_hand),
}
