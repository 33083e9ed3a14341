"""An operator whose state and work are elsewhere, in Spark for example: a `Remote` stores them.

    commit:   deltas --prepare, pack--> entries, which are pending
    flush:    entries --Remote.apply--> delta of the output

The output is the union of the fragment's output for each bucket, and changed rows change their
buckets:

    d part(rows)  =  part(touched buckets, after)  -  part(touched buckets, before)

State:  the entries since the last flush.
Cost:   O(|dL|) per commit.

Further abilities of some remotes: return a delta later (`Telling`), and have their output read in
place (`Followable`).

    told       the delta of the output in a quiet `apply`
    rows       all rows of the output, as of the start of the reader
    changes    the sum of the deltas since
    forget     the reader has read both; later changes are for its next reading

Changes are stored for a reader until it reads them, over any number of flushes. If they outgrow the
rows, or the remote is closed, the reader must start again.

`WaitingEntries` are the entries that wait for a flush, with an estimate of their bytes.

State:  the entries.
Cost:   that of a list, and a size estimate of one entry in sixteen.
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
    adoption_error,
    entry_difference,
)
from reactive.errors import OffloadError, TakenIn

FILL = -1
"""The barrier before all others: that of the initial rows."""


class RemoteOperator:
    """The graph's operator for a fragment elsewhere; its output changes by flushes only.

    A flush sets the pending entries apart (`set_barrier`), applies them (`send_together`), which
    may be slow and does not block commits, and then returns the delta of the output (`flush`).
    Before the first flush, `fill` sends the initial rows of the inputs.
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
        """The store that its remote shares with others; None if it shares none."""
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
        """Number of changed rows fetched into the process."""

    # At commits.

    def step(self, *deltas: Pairs) -> Pairs:
        """Pack the rows of the deltas as pending entries, and emit nothing until a flush."""
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
        """The number of pending entries."""
        held = self._staged + sum(len(snapshot) for _, snapshot in self._held)
        return held + len(self._waiting) + sum(len(entries) for entries, _ in self._batches)

    @property
    def lag_bytes(self) -> int:
        """The estimated bytes of the pending entries."""
        return self._waiting.bytes + sum(entries.bytes for entries, _ in self._batches)

    @property
    def is_fed(self) -> bool:
        """True if external inputs are pending."""
        return any(fed for _, fed in self._batches)

    # At flushes.

    def set_barrier(self, version: int) -> None:
        """Set the pending entries, up to a commit, apart for the next flush.

        The next flush first repeats the entries that the last one could not send.
        """
        fed = [found for place in self._sources if (found := self._feed(place)) is not None]
        if self._waiting or fed:
            self._batches.append((self._waiting, fed))
            self._barriers.append(version)
            self._waiting = WaitingEntries()

    def _feed(self, place: int) -> ExternalInput | None:
        """Return the external rows of an input that are not fed yet; None if there are none.

        From now on they count as fed.
        """
        table, through = self._sources[place]
        after, upto = self._fed[place], table.save()
        self._fed[place] = upto
        return ExternalInput(place, table.rows, through, after, upto) if upto > after else None

    def fed(self) -> list[ExternalInput]:
        """Return the external inputs with all rows fed so far."""
        given = self._sources.items()
        return [
            ExternalInput(place, table.rows, through, BEFORE, self._fed[place])
            for place, (table, through) in given
        ]

    def _try_again(self) -> None:
        """Repeat a failed `apply`, if the remote that may have caused it has left the store."""
        if self._owed is not None and isinstance(self.remote, Sharing):
            if not self._batches and self.remote.left != self._left:
                self._batches, self._barriers = [(WaitingEntries(), [])], [FILL]
            self._left = self.remote.left

    def _prepare(self) -> tuple[Remote, RemotePart]:
        """Return the next part to send, for a remote that applies together with others."""
        self._pairs(self._unseen), self._pairs(self._out)  # a later `apply` could not return them
        return self.remote, RemotePart(self._number, self._barriers[0], *self._batches[0])

    def _apply(self, *, quiet: bool) -> None:
        """Apply the first batch, and append the delta of the output to `_out`.

        `quiet`: append the number of the flush instead, if the remote can tell the delta
        later. If the remote stores the batch but raises `TakenIn`, `_owed` is that error.
        """
        began = perf_counter()
        quiet = quiet and isinstance(self.remote, Telling)
        self._pairs(self._unseen), self._pairs(self._out)  # a later `apply` could not return them
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
        """Give up pending entries and ignore later ones, because the backend cannot be reached."""
        self.lost = error
        self._waiting, self._batches, self._barriers = WaitingEntries(), [], []

    def _next(self) -> None:
        """Drop the batch that was applied, and count the number of the next one."""
        self._number += 1
        del self._batches[0], self._barriers[0]

    def flush(self, *, quiet: bool = False) -> Pairs | None:
        """Return the delta of the output; None if `quiet` and not fetched."""
        with self._sending:
            is_told = not (quiet and any(isinstance(output, int) for output in self._out))
            pairs = self._pairs(self._out) if is_told else None
            self._unseen += self._out
            self._out = []
            return None if pairs is None else sorted(pairs, key=_pair_weight)  # deletions first

    def fetch_skipped(self) -> Pairs:
        """Fetch and return the deltas that quiet flushes skipped, deletions first."""
        with self._sending:
            places = [place for place, out in enumerate(self._unseen) if isinstance(out, int)]
            self._pairs(self._unseen)
            found = [pair for place in places for pair in self._unseen[place]]  # type: ignore[union-attr]
            return sorted(found, key=_pair_weight)

    def _pairs(self, outputs: list[Output]) -> list[Pair]:
        """Return all pairs of several deltas; a delta not fetched yet is fetched into `outputs`."""
        for place, output in enumerate(outputs):
            if isinstance(output, int):
                pairs = outputs[place] = self.remote.told(output)  # type: ignore[attr-defined]
                self.fetched += len(pairs)
        return [pair for output in outputs for pair in output]  # type: ignore[union-attr]

    def _ahead(self) -> list[Pair]:
        """Return the changes that are applied and not visible yet."""
        return [*self._pairs(self._unseen), *self._pairs(self._out)]

    def finish_flush(self) -> None:
        """Make the changes of a finished flush visible."""
        with self._sending:
            self._unseen = []

    def begin(self, inputs: Sequence[Snapshot]) -> None:
        """Collect the initial rows of the inputs. Call it inside the lock."""
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
        """Return True if sending the rows of an input calls user code; do that inside the lock."""
        return held.is_made or self.fragment.prepare[place] is not by_row

    def _hands_over(self, place: int) -> bool:
        """Return True if this operator must send the rows of an input."""
        if place in self._sources:
            return False
        return not (isinstance(self.remote, Sharing) and self.remote.is_brought(place))

    def _prepare_all(self, place: int, held: Snapshot) -> None:
        """Prepare the rows of an input piecewise, and stage each piece.

        If they must be compared with the state of an earlier process, they are collected instead.
        """
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
        """Send the initial rows of the inputs, once.

        With a state of an earlier process, send the difference.

        Rows are sent in pieces; each is freed once it has arrived. After an error, the next call
        continues with the piece that failed.

        Raises
        ------
        OffloadError: there is a difference, and `adopt` is not "process".
        """
        with self._sending:
            if not self.is_filled:
                if self.remote.resumed is None:
                    for entries in self._pieces():
                        self.remote.stage(self._number, entries)
                elif (adopt or self.remote.adopt) != "process" and self.differs():
                    raise adoption_error(self.fragment, self.differs())
                self.differs()
                self.remote.apply(self._number, *self._batches[0], quiet=True)
                self._next()
                self._staged, self.is_filled = 0, True

    def differs(self) -> Sequence[Entry]:
        """Return the entries that change the state of an earlier process to that of the inputs.

        Return none if there is no such state, or if it was filled already.
        """
        with self._sending:
            if self.is_filled or self.remote.resumed is None:
                return ()
            if not self._is_compared:
                entries, fed = self._batches[0]
                wanted = chain(entries, chain.from_iterable(self._pieces()))
                owed = entry_difference(wanted, self.remote.entries())
                if isinstance(self.remote, RemoteSums):
                    owed = self.remote.net_entries(owed)
                self._batches[0] = (WaitingEntries(owed), fed)
                self._is_compared = True
            return self._batches[0][0]

    def count_as_initial(self) -> None:
        """Count the commits since `begin` as initial rows. Call it inside the lock."""
        (entries, fed), *others = self._batches
        since = [entry for later, _ in others for entry in later] + self._waiting
        self._batches = [
            (WaitingEntries(entry_difference([*entries, *since], ())), fed),
            *((WaitingEntries(), more) for _, more in others),
        ]
        self._waiting = WaitingEntries()

    def _pieces(self) -> Iterator[list[Entry]]:
        """Yield the initial entries in pieces, and drop each before the next one."""
        pack = self.remote.pack
        while self._held:
            place, held = self._held[0]
            while len(held):
                yield [(place, *pack(place, row, row), n) for row, n in held.piece()]
                held.forget()
            del self._held[0]

    # The output as of the last completed flush.

    def contents(self) -> Iterable[Pair]:
        """Return the whole output."""
        with self._sending:
            self.fill()
            found, ahead = self.remote.contents(), self._ahead()
            return consolidate([*found, *negate(ahead)]) if ahead else found

    @property
    def is_followable(self) -> bool:
        """True if the output can be read in place."""
        return isinstance(self.remote, Followable) and self.remote.is_followable

    def follow(self) -> Following:
        """Return a reader of the output in place, as of the last flush or a later one."""
        with self._sending:
            if self.lost is not None:
                raise self.lost
            self.fill()
            assert isinstance(self.remote, Followable)
            return self.remote.follow()

    def size(self) -> int:
        """Return the number of rows of the output, counting copies."""
        with self._sending:
            self.fill()
            if not isinstance(self.remote, Telling):
                return sum(weight for _, weight in self.contents())
            return self.remote.size() - sum(weight for _, weight in self._ahead())

    def at(self, key: Any) -> list[Pair]:
        """Return the part of the output in the bucket of a key."""
        return self._rows_in_buckets({self.remote.bucket(key)})

    def count(self, row: Row) -> int:
        """Return the number of copies of a row in the output."""
        if self.fragment.keys_of is None:
            return sum(weight for found, weight in self.contents() if found == row)
        buckets = {self.remote.bucket(key) for key in self.fragment.keys_of(row)}
        return sum(weight for found, weight in self._rows_in_buckets(buckets) if found == row)

    def near(self, keys: Collection[Any], *, is_shown: bool) -> list[Pair]:
        """Return the part of the output in the buckets of some keys.

        Parameters
        ----------
        is_shown: True to read the rows that views show; False to include a flush in progress.
        """
        with self._sending:
            self.fill()
            if isinstance(self.remote, FindingSome):
                found = self.remote.some(keys)
            else:
                buckets = set(map(self.remote.bucket, keys))
                found = [pair for bucket in buckets for pair in self.remote.at(bucket)]
            return _undo_later_changes(found, self._ahead() if is_shown else self._pairs(self._out))

    def _rows_in_buckets(self, buckets: Iterable[int]) -> list[Pair]:
        """Return the output in some buckets, as of the last completed flush."""
        with self._sending:
            self.fill()
            found = [pair for bucket in buckets for pair in self.remote.at(bucket)]
            return _undo_later_changes(found, self._ahead())

    def footprint(self) -> tuple[int, int]:
        """Return the size in the process, where only pending entries are stored: none."""
        return 0, 0

    def describe(self) -> str:
        """Describe where and how the rows are stored, and which work runs where."""
        fed = [(table.rows, nodes) for table, nodes in self._sources.values() if nodes]
        apart = [f"by itself: {self.fragment.apart}"] if self.fragment.apart else []
        steps = (step for rows, chain in fed for step in rows.steps(chain))
        return "; ".join([self.remote.describe(), *apart, *steps])

    def stop(self) -> None:
        """Stop when there are no readers. Stopping twice is no error."""
        with self._sending:
            if not self.is_closed:
                self.is_closed = True
                self.remote.stop()


def _undo_later_changes(found: Pairs, ahead: Pairs) -> list[Pair]:
    """Undo later changes in the found rows; the result may contain additional rows."""
    if not ahead:
        return list(found)
    rows = {row for row, _ in found}
    undone = [(row, -n) for row, n in ahead if row in rows or n < 0]
    return [(row, n) for row, n in consolidate([*found, *undone]) if n > 0]


def _pair_weight(pair: Pair) -> int:
    return pair[1]


@runtime_checkable
class Telling(Protocol):
    """A `Remote` whose deltas need not be fetched: it can return them later."""

    def told(self, number: int) -> Pairs:
        """Return the delta of the output in a quiet `apply`, until the next one."""
        ...

    def size(self) -> int:
        """Return the number of rows of the output, counting copies."""
        ...


@runtime_checkable
class FindingSome(Protocol):
    """A `Remote` that looks up several keys together."""

    def some(self, keys: Collection[Any]) -> Pairs:
        """Return the output rows derived from rows with one of the keys, and possibly others."""
        ...


class RemoteRows(Protocol):
    """Rows with weights elsewhere, not summed, for readers that know their format."""

    @property
    def rows(self) -> int:
        """An upper bound of the number of rows."""
        ...

    def with_rows(self, more: Any) -> Any:
        """Return these rows and more rows of the same kind."""
        ...


class Following(Protocol):
    """A reader of the output of a remote, with its position."""

    @property
    def is_over(self) -> bool:
        """True if it must start again."""
        ...

    @property
    def waiting(self) -> int:
        """The maximum number of changed rows that it has not read."""
        ...

    def rows(self) -> Any:
        """Return all rows as of its start, as `RemoteRows`; not after `forget`."""
        ...

    def changes(self) -> Any:
        """Return the changes since, as `RemoteRows`; None if there are none."""
        ...

    def forget(self) -> None:
        """Mark the results of `rows` and of the last `changes` as read."""
        ...

    def close(self) -> None:
        """Stop reading."""
        ...


@runtime_checkable
class Followable(Protocol):
    """A `Remote` whose output can be read in place."""

    @property
    def is_followable(self) -> bool:
        """True if this remote's output can be read in place."""
        ...

    def follow(self) -> Following:
        """Return a reader of the output as of the last `apply`."""
        ...


BESIDE = 24
"""Bytes that a list and the garbage collector need for an entry."""


class WaitingEntries(list[Entry]):
    """Pending entries; more are added by `take` only.

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
        """Add entries."""
        self += entries
        self._size.add(entries)

    @property
    def bytes(self) -> int:
        """The estimated bytes of the entries."""
        return self._size.bytes
