"""An operator whose state and work are elsewhere: in Spark, or wherever a `Remote` keeps them.

    commit:   deltas --prepare, pack--> entries, which wait
    flush:    entries --Remote.apply--> delta of the output

The output is the union of what the fragment makes of each bucket, and a change of rows is a change
of their buckets:

    d part(rows)  =  part(touched buckets, after)  -  part(touched buckets, before)

State:  the entries since the last flush.
Cost:   O(|dL|) per commit.

What some remotes can do besides: tell of a change later, and have their output read where it is.

    told       how a quiet `apply` has changed the output
    rows       all rows of the output, as of when the reader began
    changes    what flushes have come to since
    forget     the reader has both; what comes from now on is for the next time

What they read is kept for them, however many flushes there are in between; unless that is more than
all rows are, or the remote is given up: then they have to begin anew.

What waits for a flush: entries, with about how many bytes they take.

State:  the entries.
Cost:   that of a list, and a look at one entry of sixteen.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from reactive.engine.collections.sampled_size import SampledSize
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate, negate
from reactive.engine.dataflow.snapshot import Snapshot
from reactive.engine.remote.fragments import Fragment, by_row
from reactive.engine.remote.remote import (
    BEFORE,
    NO_SOURCES,
    Adopt,
    Entry,
    ExternalInput,
    Output,
    Remote,
    RemotePart,
    RemoteSums,
    Sharing,
    Sources,
    difference,
    refusal,
)
from reactive.errors import OffloadError, TakenIn

FILL = -1
"""The barrier before all others: of what a part begins with."""


class RemoteOperator:
    """Stands in the graph for a fragment that is elsewhere; its output comes by flushes only.

    A flush sets apart what waits (`set_barrier`), has it applied (`send_together`), which may take
    long and is done while commits go on, and then hands out what came of it (`flush`). Before the
    first one, what its inputs held from the start is handed over (`fill`).
    """

    __slots__ = (
        *("_fed", "_is_compared", "_owed", "_sources"),
        *(
            "_barriers",
            "_batches",
            "_held",
            "_last",
            "_left",
            "_number",
            "_out",
            "_sending",
            "_staged",
            "_unseen",
            "_waiting",
        ),
        *("fetched", "flushes", "is_closed", "is_filled", "latency", "lost"),
        *("fragment", "remote", "shared", "touched"),
    )

    def __init__(self, fragment: Fragment, remote: Remote, sources: Sources = NO_SOURCES) -> None:
        self.fragment = fragment
        self.remote = remote
        self.shared = remote.shared if isinstance(remote, Sharing) else None
        """What its remote shares with others; None if it shares nothing."""
        self._sources = sources
        self._fed = dict.fromkeys(sources, BEFORE)
        self._held: list[tuple[int, Snapshot]] = []
        self._is_compared = False
        self._staged = 0
        self._waiting = WaitingEntries()
        self._last: list[Entry] = []
        self._batches: list[tuple[WaitingEntries, list[ExternalInput]]] = []
        self._barriers: list[int] = []
        self._out: list[Output] = []
        self._unseen: list[Output] = []
        self._number = 0 if remote.resumed is None else remote.resumed + 1
        self._sending = threading.RLock()
        self.is_filled = True
        self.is_closed = False
        self.lost: OffloadError | None = None
        self._owed: TakenIn | None = None
        self._left = 0
        self.flushes = 0
        self.latency = 0.0
        self.touched = 0
        self.fetched = 0
        """Rows of changes that have been fetched into the process."""

    # At commits.

    def step(self, *deltas: Pairs) -> Pairs:
        if self.lost is not None:
            return ()
        last: list[Entry] = []
        pack = self.remote.pack
        for place, delta in enumerate(deltas):
            if place in self._sources:
                continue
            prepare = self.fragment.prepare[place]
            for row, weight in delta:
                prepared = prepare(row)
                if prepared is not None:
                    last.append((place, *pack(place, *prepared), weight))
        self._last = last
        self.touched += len(last)
        return ()

    def undo(self) -> None:
        self._last = []

    def commit(self) -> None:
        self._waiting.take(self._last)
        self._last = []

    @property
    def lag(self) -> int:
        """How many entries wait."""
        held = self._staged + sum(len(snapshot) for _, snapshot in self._held)
        return held + len(self._waiting) + sum(len(entries) for entries, _ in self._batches)

    @property
    def lag_bytes(self) -> int:
        """About how many bytes these take."""
        return self._waiting.bytes + sum(entries.bytes for entries, _ in self._batches)

    @property
    def is_fed(self) -> bool:
        """Whether something that is to be fed waits."""
        return any(fed for _, fed in self._batches)

    # At flushes.

    def set_barrier(self, version: int) -> None:
        """What waits now, up to a commit, is what the next flush is of, after what the last one
        could not send."""
        fed = [found for place in self._sources if (found := self._feed(place)) is not None]
        if self._waiting or fed:
            self._batches.append((self._waiting, fed))
            self._barriers.append(version)
            self._waiting = WaitingEntries()

    def _feed(self, place: int) -> ExternalInput | None:
        """What an input has to be fed from where the rows of its table are."""
        table, through = self._sources[place]
        after, upto = self._fed[place], table.save()
        self._fed[place] = upto
        return ExternalInput(place, table.rows, through, after, upto) if upto > after else None

    def fed(self) -> list[ExternalInput]:
        """The inputs that are fed, with all that they have been."""
        given = self._sources.items()
        return [
            ExternalInput(place, table.rows, through, BEFORE, self._fed[place])
            for place, (table, through) in given
        ]

    def _try_again(self) -> None:
        """Have what failed done again, if one that shared has left since, whose fault it may be."""
        if self._owed is not None and isinstance(self.remote, Sharing):
            if not self._batches and self.remote.left != self._left:
                self._batches, self._barriers = [(WaitingEntries(), [])], [FILL]
            self._left = self.remote.left

    def _prepare(self) -> tuple[Remote, RemotePart]:
        """What is sent next, to a remote that takes it in together with others."""
        self._pairs(self._unseen), self._pairs(self._out)  # a later one cannot tell of them
        return self.remote, RemotePart(self._number, self._barriers[0], *self._batches[0])

    def _apply(self, *, quiet: bool) -> None:
        began = perf_counter()
        quiet = quiet and isinstance(self.remote, Telling)
        self._pairs(self._unseen), self._pairs(self._out)  # a later one cannot tell of them
        try:
            pairs = self.remote.apply(self._number, *self._batches[0], quiet=quiet)
            self.fetched += len(pairs)
            self._out.append(self._number if quiet else pairs)
            self._owed = None
        except TakenIn as error:
            self._owed = error
            self._left = self.remote.left if isinstance(self.remote, Sharing) else 0
        self._next()
        self.latency = perf_counter() - began
        self.flushes += 1

    def lose(self, error: OffloadError) -> None:
        """Nobody can be reached: what waits is given up, and from now on nothing is kept."""
        self.lost = error
        self._waiting, self._batches, self._barriers = WaitingEntries(), [], []

    def _next(self) -> None:
        self._number += 1
        del self._batches[0], self._barriers[0]

    def flush(self, *, quiet: bool = False) -> Pairs | None:
        """What came of it: the delta of the output; None if that is `quiet` and was not fetched."""
        with self._sending:
            is_told = not (quiet and any(isinstance(output, int) for output in self._out))
            pairs = self._pairs(self._out) if is_told else None
            self._unseen += self._out
            self._out = []
            return None if pairs is None else sorted(pairs, key=_weight)  # what goes first

    def overlooked(self) -> Pairs:
        """What came of it and was not asked for, now that somebody is there to be told."""
        with self._sending:
            places = [place for place, out in enumerate(self._unseen) if isinstance(out, int)]
            self._pairs(self._unseen)
            found = [pair for place in places for pair in self._unseen[place]]  # type: ignore[union-attr]
            return sorted(found, key=_weight)

    def _pairs(self, outputs: list[Output]) -> list[Pair]:
        """What has come of several: what has not been fetched is so now."""
        for place, output in enumerate(outputs):
            if isinstance(output, int):
                pairs = outputs[place] = self.remote.told(output)  # type: ignore[attr-defined]
                self.fetched += len(pairs)
        return [pair for output in outputs for pair in output]  # type: ignore[union-attr]

    def _ahead(self) -> list[Pair]:
        """What has been applied, and is not to be seen yet."""
        return [*self._pairs(self._unseen), *self._pairs(self._out)]

    def flushed(self) -> None:
        """A flush is over: what came of it is now to be seen."""
        with self._sending:
            self._unseen = []

    def begin(self, inputs: Sequence[Snapshot]) -> None:
        """What the inputs hold from the start is to be handed over. Inside the lock."""
        own = [(n, held) for n, held in enumerate(inputs) if self._hands_over(n) and len(held)]
        self._held = [(n, held) for n, held in own if not self._asks(n, held)]
        for place, held in own:
            if self._asks(place, held):
                self._prepare_all(place, held)
        self.set_barrier(FILL)
        is_owed = self.remote.resumed is not None or self.fragment.is_never_empty
        is_owed = is_owed or self.shared is not None
        if not self._batches and (self._held or self._staged or is_owed):
            self._batches, self._barriers = [(WaitingEntries(), [])], [FILL]
        self.is_filled = not self._batches

    def _asks(self, place: int, held: Snapshot) -> bool:
        """Whether callables of the user's are asked as the rows of an input are handed over: that
        is to be done inside the lock."""
        return held.is_made or self.fragment.prepare[place] is not by_row

    def _hands_over(self, place: int) -> bool:
        """Whether what an input holds has to come from here."""
        if place in self._sources:
            return False
        return not (isinstance(self.remote, Sharing) and self.remote.is_brought(place))

    def _prepare_all(self, place: int, held: Snapshot) -> None:
        """Have the rows of an input prepared, a piece at a time; they are sent at once, or wait if
        they are to be compared with what an earlier process left."""
        while len(held):
            deltas: list[Pairs] = [()] * len(self.fragment.prepare)
            deltas[place] = held.piece()
            self.step(*deltas)
            held.forget()
            if self.remote.resumed is None:
                self.remote.stage(self._number, self._last)
                self._staged += len(self._last)
                self._last = []
            self.commit()

    def fill(self, adopt: Adopt | None = None) -> None:
        """Hand over what the inputs held from the start, once; of what an earlier process left,
        the difference.

        That is done in pieces, each of which is forgotten when it is there; what is left goes on
        from the piece that failed.

        Raises
        ------
        OffloadError: there is a difference, and nobody has said that the process counts.
        """
        with self._sending:
            if not self.is_filled:
                if self.remote.resumed is None:
                    for entries in self._pieces():
                        self.remote.stage(self._number, entries)
                elif (adopt or self.remote.adopt) != "process" and self.differs():
                    raise refusal(self.fragment, self.differs())
                self.differs()
                self.remote.apply(self._number, *self._batches[0], quiet=True)
                self._next()
                self._staged, self.is_filled = 0, True

    def differs(self) -> Sequence[Entry]:
        """What the inputs held from the start, without what an earlier process left."""
        with self._sending:
            if self.is_filled or self.remote.resumed is None:
                return ()
            if not self._is_compared:
                entries, fed = self._batches[0]
                wanted = chain(entries, chain.from_iterable(self._pieces()))
                owed = difference(wanted, self.remote.entries())
                if isinstance(self.remote, RemoteSums):
                    owed = self.remote.netted(owed)
                self._batches[0] = (WaitingEntries(owed), fed)
                self._is_compared = True
            return self._batches[0][0]

    def restored(self) -> None:
        """What was committed since its beginning counts as held from the start. Inside the lock."""
        (entries, fed), *others = self._batches
        since = [entry for later, _ in others for entry in later] + self._waiting
        self._batches = [
            (WaitingEntries(difference([*entries, *since], ())), fed),
            *((WaitingEntries(), more) for _, more in others),
        ]
        self._waiting = WaitingEntries()

    def _pieces(self) -> Iterator[list[Entry]]:
        pack = self.remote.pack
        while self._held:
            place, held = self._held[0]
            while len(held):
                yield [(place, *pack(place, row, row), n) for row, n in held.piece()]
                held.forget()
            del self._held[0]

    # What is there, as of the last flush that came to its end.

    def contents(self) -> Iterable[Pair]:
        """The whole output."""
        with self._sending:
            self.fill()
            found, ahead = self.remote.contents(), self._ahead()
            return consolidate([*found, *negate(ahead)]) if ahead else found

    @property
    def is_followable(self) -> bool:
        """Whether the output can be read where it is."""
        return isinstance(self.remote, Followable) and self.remote.is_followable

    def follow(self) -> Following:
        """What reads the output where it is, as of the last flush or a later one."""
        with self._sending:
            if self.lost is not None:
                raise self.lost
            self.fill()
            assert isinstance(self.remote, Followable)
            return self.remote.follow()

    def size(self) -> int:
        """How many rows the output has, copies counted."""
        with self._sending:
            self.fill()
            if not isinstance(self.remote, Telling):
                return sum(weight for _, weight in self.contents())
            return self.remote.size() - sum(weight for _, weight in self._ahead())

    def at(self, key: Any) -> list[Pair]:
        """What of the output shares the bucket of a key."""
        return self._of({self.remote.bucket(key)})

    def count(self, row: Row) -> int:
        """How often a row is in the output."""
        if self.fragment.keys_of is None:
            return sum(weight for found, weight in self.contents() if found == row)
        buckets = {self.remote.bucket(key) for key in self.fragment.keys_of(row)}
        return sum(weight for found, weight in self._of(buckets) if found == row)

    def near(self, keys: Collection[Any], *, is_shown: bool) -> list[Pair]:
        """What of the output shares the bucket of one of some keys.

        Parameters
        ----------
        is_shown: as views show it; else with what a flush has handed out that is under way.
        """
        with self._sending:
            self.fill()
            if isinstance(self.remote, FindingSome):
                found = self.remote.some(keys)
            else:
                buckets = set(map(self.remote.bucket, keys))
                found = [pair for bucket in buckets for pair in self.remote.at(bucket)]
            return _before(found, self._ahead() if is_shown else self._pairs(self._out))

    def _of(self, buckets: Iterable[int]) -> list[Pair]:
        with self._sending:
            self.fill()
            found = [pair for bucket in buckets for pair in self.remote.at(bucket)]
            return _before(found, self._ahead())

    def footprint(self) -> tuple[int, int]:
        """What is kept in the process: nothing but what waits."""
        return 0, 0

    def describe(self) -> str:
        """Where and how it is kept, and what runs where."""
        fed = [(table.rows, nodes) for table, nodes in self._sources.values() if nodes]
        apart = [f"by itself: {self.fragment.apart}"] if self.fragment.apart else []
        steps = (step for rows, chain in fed for step in rows.steps(chain))
        return "; ".join([self.remote.describe(), *apart, *steps])

    def stop(self) -> None:
        """Nobody reads it any more. Stopping twice is no error."""
        with self._sending:
            if not self.is_closed:
                self.is_closed = True
                self.remote.stop()


def _before(found: Pairs, ahead: Pairs) -> list[Pair]:
    """Rows that were found, as they were before what has come since; others may come along."""
    if not ahead:
        return list(found)
    rows = {row for row, _ in found}
    undone = [(row, -n) for row, n in ahead if row in rows or n < 0]
    return [(row, n) for row, n in consolidate([*found, *undone]) if n > 0]


def _weight(pair: Pair) -> int:
    return pair[1]


@runtime_checkable
class Telling(Protocol):
    """A `Remote` whose output need not be fetched: it can still tell how it has changed."""

    def told(self, number: int) -> Pairs:
        """How the output changed in an `apply` that was quiet, until there is a later one."""
        ...

    def size(self) -> int:
        """How many rows the output has, copies counted."""
        ...


@runtime_checkable
class FindingSome(Protocol):
    """A `Remote` that looks up several keys together."""

    def some(self, keys: Collection[Any]) -> Pairs:
        """What of the output is made of rows with one of the keys; others may come along."""
        ...


class RemoteRows(Protocol):
    """Rows with weights that are elsewhere, not added up, for those who know how to read them."""

    @property
    def rows(self) -> int:
        """There are no more than so many."""
        ...

    def with_rows(self, more: Any) -> Any:
        """These and more, of the same kind."""
        ...


class Following(Protocol):
    """What one reader has read of a remote."""

    @property
    def is_over(self) -> bool:
        """Whether it has to begin anew."""
        ...

    @property
    def waiting(self) -> int:
        """How many changed rows it has not read, at most."""
        ...

    def rows(self) -> Any:
        """All rows as of when it began, as `RemoteRows`; until something is forgotten."""
        ...

    def changes(self) -> Any:
        """How the output has changed since, as `RemoteRows`; None if it has not."""
        ...

    def forget(self) -> None:
        """What `rows` and the last `changes` have given was read."""
        ...

    def close(self) -> None:
        """It reads no more."""
        ...


@runtime_checkable
class Followable(Protocol):
    """A `Remote` whose output can be read where it is."""

    @property
    def is_followable(self) -> bool:
        """Whether that is so of the rows of this one."""
        ...

    def follow(self) -> Following:
        """A reader of the output as of the last `apply`."""
        ...


BESIDE = 24
"""Bytes that a list and the garbage collector take for an entry."""


class WaitingEntries(list[Entry]):
    """Entries that wait; more of them are added by `take` only.

    Examples
    --------
    >>> waiting = WaitingEntries([(0, 0, "a" * 1000, 1)])
    >>> waiting.bytes > 1000
    True
    """

    __slots__ = ("_size",)

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        super().__init__(entries)
        self._size = SampledSize(each=BESIDE)
        self._size.add(self)

    def take(self, entries: list[Entry]) -> None:
        """Let more of them wait."""
        self += entries
        self._size.add(entries)

    @property
    def bytes(self) -> int:
        """About how many bytes they take."""
        return self._size.bytes
