"""Cases: all that a history is made of, drawn from a seed; parts of it may be left out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from random import Random

from tests.random_queries.histories import Held, Histories, Model, Step
from tests.random_queries.names import Present, named
from tests.random_queries.nodes import Node, called
from tests.random_queries.plans import Plans
from tests.random_queries.rows import START
from tests.random_queries.telling import telling
from tests.random_queries.texts import Texts
from tests.random_queries.values import MODES
from tests.soak.hearing import WAYS
from tests.thresholds import LOWEST, SHIPPED, WALKED, Settings, drawn

STYLES = {"short": 6, "long": 3, "readers": 2}
STEPS = {"short": 14, "long": 110, "readers": 40}
VIEWS = (1, 2, 2, 3, 4)
TIMED = 0.4
"""Part of the histories in which time passes."""
DRAWN = 2
"""Plans that are drawn for each that is played."""
MODES_OFTEN = (*MODES, "ints", "ints")
BEFORE, NEVER = -1, 10**9


@dataclass
class Life:
    """A plan, the times when it is made and closed, and its subscription.

    `interrupt` is the moment of an exception from outside while it is made; then it is made again.
    `hears` is the kind of its subscription.
    """

    node: Node
    born: int
    dies: int = NEVER
    again: bool = False
    how: str = "view"
    interrupt: int | None = None
    hears: str = "in line"


@dataclass
class Case:
    """All that a history is made of; parts may be left out."""

    seed: int
    mode: str
    style: str
    source: str
    tables: tuple[Held, ...]
    lives: dict[int, Life]
    steps: dict[int, Step]
    length: int
    settings: Settings
    raising: bool
    strict: bool
    shares: bool
    now: datetime | None = None
    """The first moment of the clock, if queries read it."""


def case_of(seed: int) -> Case:
    """The history of a seed."""
    random = Random(seed)
    mode, style = random.choice(MODES_OFTEN), random.choices([*STYLES], [*STYLES.values()])[0]
    raising = style == "short" and random.random() < 0.3
    tables = _tables(random, is_stored=raising or random.random() < 0.8)
    texts = Texts(random, mode, raising=raising)
    now: datetime | None = None
    if Random(f"time {seed}").random() < TIMED:
        now = random.choice((START, START.replace(tzinfo=UTC)))
        tables = _tables_over_time(random, tables, streams=not raising and random.random() < 0.7)
        texts.moves = True
    plans = Plans(random, mode, tuple(table.kind for table in tables), texts, held=tables)
    nodes = plans.readers() if style == "readers" else []
    count = 1 if style == "readers" else random.choice(VIEWS)
    others = plans.finals(DRAWN * count)
    present = Present(Model([]))
    present.model.now = now or START
    names = named("\n".join(texts.lines), mode, present.names)
    nodes += telling(others, count, names, tables, random, mode, present.model.now)
    moves = now is not None
    histories = Histories(random, mode, tables, now=present.model.now, moves=moves)
    steps = {0: histories.start()}
    interrupts = style != "long" and all(table.stored for table in tables)
    for number in range(1, STEPS[style] + 1):
        is_short = style == "short" or (style == "readers" and random.random() < 0.5)
        short = partial(histories.short, interrupts=interrupts and random.random() < 0.3)
        steps[number] = short() if is_short else histories.single()
    is_stored = all(table.stored for table in tables)
    return Case(
        seed=seed,
        mode=mode,
        style=style,
        source=texts.source(set[str]().union(*map(called, nodes))),
        tables=tables,
        lives={i: _life(random, node, style, is_stored) for i, node in enumerate(nodes)},
        steps=steps,
        length=len(steps),
        settings=random.choice((SHIPPED, SHIPPED, SHIPPED, LOWEST, WALKED, drawn(random))),
        raising=raising,
        strict=random.random() < 0.2,
        shares=random.random() < 0.7,
        now=now,
    )


def _tables(random: Random, *, is_stored: bool) -> tuple[Held, ...]:
    keyed = random.choice((Held("N", "id"), Held("D", "i")))
    others = [Held(kind) for kind in random.sample("DNSAMV", 2)]
    return (Held("P", stored=is_stored), keyed, *others)


def _tables_over_time(
    random: Random, tables: tuple[Held, ...], *, streams: bool
) -> tuple[Held, ...]:
    """Two of the tables, and some of events: stored ones, some of which expire, and a stream."""
    expires = random.choice((None, ("at", 3), ("due", 2)))
    events = Held("E", random.choice((None, "id")), expires=expires)
    if not streams:
        return *tables[:2], events
    stream = Held("E", stored=False, lateness=random.choice((0, 2, 5)))
    return *tables[:2], events, stream, Held("E", stored=False, late=True)


def _life(random: Random, node: Node, style: str, is_stored: bool) -> Life:
    how = random.choice(("view", "view", "view, subscriber", "view, subscriber", "subscriber"))
    if random.random() < 0.3:
        how += ", again"
    if not is_stored:
        return Life(node, random.choice((BEFORE, BEFORE, BEFORE, 1, 5)), how=how)
    late = {
        "short": (BEFORE, 0, 1, 4, 7),
        "long": (BEFORE, 0, 1, 80),
        "readers": (BEFORE, 0, 1, 9),
    }[style]
    early = {"short": 9, "long": 75, "readers": 20}[style]
    dies = random.choice((NEVER, NEVER, NEVER, early))
    life = Life(node, random.choice(late), dies, random.random() < 0.3, how)
    if "subscriber" in how and random.random() < 0.3:
        life.hears = random.choice(WAYS)
    if style != "long" and random.random() < 0.02:
        life.interrupt = int(random.choice((30, 300, 3_000)) * random.random())
    return life
