"""The state that whole fragments over the same tables share, and its flush: one job for all.

    orders, customers --delta--> steps of all fragments --one write--> state tables
                                   join             once                 orders by customer, ...
                                   sums by town     the first            its sums, its output
                                   sums by client   the second           its sums, its output

Equal sub-queries are one step, and rows that are arranged by equal keys one table. A fragment that
joins later is loaded: its steps run once over the rows of the inputs as of the last flush, and
their rows for existing tables are dropped. Tables that only one fragment needs are deleted with it.

A flush brings all loaded fragments to the same commit. If several of them receive the changes of
one input, these are equal, and are applied once; changes up to a barrier that an input has passed
are skipped.

Sound:  a table of a step holds a function of the rows of the inputs; equal steps hold the same, at
        whatever time they were made.
State:  on disk; in the driver, the changes of flushes whose callables raised.
Cost:   per flush one job; for a fragment that joins later, O(rows of its inputs) once.
Source: [shared] arrangements; [mrql] state that is partitioned as its changes are.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import BEFORE, Entry, ExternalInput, RemotePart
from reactive.engine.runtime.collector import pause_collector
from reactive.errors import OffloadError, TakenIn
from spark_backend.cluster.session import Session
from spark_backend.direct.flush import DirectFlush, check_few
from spark_backend.fragments.compile import Maker
from spark_backend.fragments.members import (
    FlushInput,
    Inflow,
    Loading,
    Member,
    PendingChanges,
    count_changes,
    run_with_retries,
    version_token,
)
from spark_backend.fragments.roster import PLANS, Roster
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import union_frames
from spark_backend.state.whole import read_whole
from spark_backend.steps.step import MOST_NARROW, ODD_VALUE, TOO_FEW, Flush
from spark_backend.tables.chain import callable_error

log = logging.getLogger("reactive")


class SharedState:
    """State tables, and the fragments that share them.

    Parameters
    ----------
    folder: the folder of the tables; the state that an earlier process left is continued.
    plan_of: identifies the owner of the state.
    stable: True if another process may continue the state.
    makers: functions that make the steps of further nodes.

    Raises
    ------
    OffloadError: the state belongs to others, or cannot be read.
    """

    def __init__(
        self,
        session: Session,
        folder: str,
        plan_of: str,
        *,
        stable: bool,
        makers: tuple[Maker, ...] = (),
    ) -> None:
        self._session = session
        self._is_kept = stable
        self._passed: dict[int, int] = {}
        """The last barrier that each input from the process has passed."""
        self._owed, self._round = PendingChanges(), 0
        self.roster = Roster(session, folder, plan_of, makers)
        self.tables = self.roster.tables
        self._inflow = Inflow(session, self.roster.inputs, self.tables)
        self.careful = self.looks_through = False
        self.lock = threading.RLock()
        self.flushes = self.flushes_here = 0
        """The number of flushes, and of those without a job."""
        self.left = 0
        """The number of fragments that have left."""
        self.is_closed = self._is_deleted = False

    # Members.

    def join(self, fragment: Fragment) -> Member:
        """Add a fragment to the members.

        Raises
        ------
        NotColumns: columns cannot express it; nothing has been written.
        """
        with self.lock:
            return self.roster.add(fragment)

    def is_live(self, member: Member, place: int) -> bool:
        """Return True if others provide the rows of the input of a member at `place`.

        A member that is not loaded yet notes such an input in `brought`.
        """
        with self.lock:
            found = self.roster.is_live(member, place)
            if found and not member.is_loaded:
                member.brought.add(member.places[place])
            return found

    def leave(self, member: Member, *, for_good: bool) -> None:
        """Remove a fragment that has no reader.

        Parameters
        ----------
        for_good: delete the tables that only it needs; else keep them for a later process until a
            row of the inputs changes.
        """
        with self.lock:
            self.roster.remove(member)
            self._passed = {p: n for p, n in self._passed.items() if p in self.roster.inputs}
            self.left += 1
            self.is_closed = not self.roster.members
            if not self._is_deleted and (for_good or not self._is_kept):
                self._forget_plan(member)

    def _forget_plan(self, member: Member) -> None:
        """Forget a plan, so that it starts empty if it returns; delete its tables if no other plan
        can need them."""
        others = [name for name in self.roster.parked_plans() if name != member.name]
        if self.is_closed and not others:
            self._is_deleted = True
            self.tables.delete()
        else:
            plans = [name for name in self.roster.plans if name != member.name]
            self.tables.drop(set() if others else self.roster.unneeded_tables(), {PLANS: plans})

    def stop(self) -> None:
        """Remove all fragments."""
        for member in list(self.roster.members):
            self.leave(member, for_good=False)
        self.is_closed = True

    # Flushes.

    def take_in(self, parts: Sequence[tuple[Member, RemotePart]]) -> None:
        """Apply the changes of members, once, in one job; and load new members.

        `Member.raised` reports the error of a callable.

        Raises
        ------
        TakenIn: a callable raised while a fragment was loaded.
        OffloadError: Spark is gone; nothing was applied.
        """
        with self.lock:
            due = [(member, part) for member, part in parts if part.number > member.applied]
            for member, part in due:
                if not member.is_loaded:
                    self._load(member, part)
            self._take_in([(m, part) for m, part in due if part.number > m.applied])

    def _take_in(self, due: Sequence[tuple[Member, RemotePart]]) -> None:
        """Apply the changes of members that are due in one flush.

        If a callable raises, the error is kept in each member, which reports it; any other error is
        raised, and the changes stay pending.
        """
        if not due:
            return
        entries, fed = self._owed.added(self._round, *self._merge_parts(due))
        number = max([self._number, *(part.number for _, part in due)])
        here = self.roster.inputs  # other inputs disappeared with their readers
        fed = [source for source in fed if source.place in here]
        given = FlushInput([e for e in entries if e[0] in here], self._inflow.not_taken_in(fed))
        try:
            run_with_retries(
                lambda: self._attempt(number, given, self._owed, None),
                self._session,
                self._can_retry,
                self.tables,
            )
            self._owed.clear()
            self.flushes += 1
        except TakenIn as error:
            for member, part in due:
                member.raised = part.number, error
        else:
            for member, part in due:
                member.applied, member.told = part.number, number
        self._round += 1
        for member, part in due:
            for place in member.places if part.barrier is not None else ():
                self._passed[place] = max(part.barrier or 0, self._passed.get(place, -1))

    @property
    def _number(self) -> int:
        """The number of the next flush."""
        return 0 if self.tables.number is None else self.tables.number + 1

    def _merge_parts(
        self, due: Sequence[tuple[Member, RemotePart]]
    ) -> tuple[list[Entry], list[ExternalInput]]:
        """Return the changes of each input, from one of the members that provide them."""
        entries: list[Entry] = []
        fed: list[ExternalInput] = []
        seen = set[int]()
        for member, part in due:
            new = {p for p in member.places if p not in seen and not self._has_passed(p, part)}
            seen.update(member.places)
            entries += [e for e in member.place_entries(part.entries) if e[0] in new]
            known = {f.place for f in fed}
            fed += [f for f in member.placed_inputs(part.fed) if f.place not in known]
        return entries, fed

    def _has_passed(self, place: int, part: RemotePart) -> bool:
        return part.barrier is not None and self._passed.get(place, -1) >= part.barrier

    def _load(self, member: Member, part: RemotePart) -> None:
        """Load a member: from its own changes if its tables exist, else from all rows of its
        inputs."""
        live, number = self._provided_inputs(member), max(self._number, part.number)
        own = [e for e in member.place_entries(part.entries) if e[0] not in live]
        sources = member.placed_inputs(part.fed)
        new = [f for f in sources if f.place not in live]
        entries, fed = member.owed.added(part.number, own, new)
        staged = self._inflow.staged(member, part, live)
        counts = {member.places[p]: n for p, n in member.staged.counts.items()}
        of_staged = {place: n for place, n in counts.items() if place in staged}
        given = FlushInput(entries, self._inflow.not_taken_in(fed), staged, of_staged)
        is_there = self.roster.keeps(member.name)
        if not (is_there and given.is_nothing and self._has_others()):
            loading = None if is_there else Loading(member, sources)
            run_with_retries(
                lambda: self._attempt(number, given, member.owed, loading),
                self._session,
                self._can_retry,
                self.tables,
            )
        member.owed.clear()
        member.staged.forget()
        member.is_loaded, member.applied, member.told = True, part.number, number

    def _provided_inputs(self, member: Member) -> set[int]:
        """Return the inputs that others provide, or provided when it began."""
        return self.roster.read_by_others(member) | member.brought

    def _has_others(self) -> bool:
        """Return True if there are tables of other plans, which may be continued."""
        return bool(self.roster.parked_plans() or any(m.is_loaded for m in self.roster.members))

    def _attempt(
        self, number: int, of: FlushInput, owed: PendingChanges, loading: Loading | None
    ) -> None:
        """Run a flush in this process if it has few rows and loads nothing, else on Spark.

        `loading`: the member to load from all rows.
        """
        with pause_collector():  # a flush makes no cycles
            if loading is None and self._is_done_here(number, of):
                return
        self._session.ready()
        self.roster.compile()
        self._compact()
        given = self._inflow.frames(of, is_late=owed.is_late)
        flush = self._flush_of(given, of.counts, self._inflow.local(of, is_late=owed.is_late))
        new = None if loading is None else loading.member
        for member in self.roster.here():
            if member is not new:
                self._run(flush, member, of)
        if loading is not None:
            self._run_over_all(flush, loading, of)
        self._write(number, flush, of, new)

    def _is_done_here(self, number: int, of: FlushInput) -> bool:
        """Try to run a flush of few rows in this process.

        On any exception return False, so that a job runs the flush and reports the error.
        """
        try:
            check_few(self.tables, of.count)
            with suppress(OffloadError):  # without Spark, files are merged later
                self._compact()
            flush = DirectFlush(self.tables, self._inflow.bags(of))
            for member in self.roster.here():
                flush.add(member.output, member.top.kept, flush.delta(member.top))
                for place in sorted(set(member.rows) & set(flush.given) - of.fed_places):
                    kept = self.roster.inputs[place].kept
                    flush.add(member.rows[place], kept, flush.given[place])
        except (Exception, SystemExit) as error:
            log.debug("offloading: a flush by a job: %r", error)
            return False
        tokens, gone = self._tokens_and_drops(of, None, has_changed=bool(flush.given))
        self.tables.put(number, flush.added, tokens=tokens, gone=gone)
        self.flushes_here += 1
        return True

    def _compact(self) -> None:
        self.tables.compact({member.output.name: member.told for member in self.roster.members})

    def _flush_of(
        self, given: Mapping[int, DataFrame], counts: Counter[int], local: frozenset[int]
    ) -> Flush:
        """Return the flush of the given changes: frames and row counts by the position of their
        input. `local`: the positions of the inputs whose rows are in the query itself."""
        rows = counts.total()
        return Flush(
            self.roster.spark,
            self.tables,
            given,
            counts,
            rows,
            self.careful,
            self._session.paths,
            looks_through=self.looks_through,
            local=local,
            is_narrow=rows <= MOST_NARROW and self.tables.number is not None,
        )

    def _run(self, flush: Flush, member: Member, of: FlushInput) -> None:
        """Add the rows of the steps of a member, and its output, to a flush."""
        found = flush.delta(member.top)
        if found is not None:
            flush.add(member.output, found)
        for place in sorted(set(member.rows) & set(flush.given) - of.fed_places):
            flush.add(member.rows[place], flush.given[place])

    def _run_over_all(self, flush: Flush, loading: Loading, of: FlushInput) -> None:
        """Run the steps of a member over all rows of the inputs, and add the rows of new tables."""
        all_given, counts = dict(flush.given), of.counts
        there = {name for m in self.roster.here() for name in m.tables}
        there.update(self.tables.manifest.tables)  # all of them are as of the last flush
        for place in loading.member.places:
            parts, count = self._read_input(place, loading)
            counts[place] += count
            more = [flush.given[place]] if place in flush.given else []
            if parts or more:
                all_given[place] = union_frames([*parts, *more])
        anew = replace(
            self._flush_of(all_given, counts, frozenset()),
            tables=self.tables.as_new(),
            is_narrow=False,
        )
        self._run(anew, loading.member, of)
        for name, frame in anew.added.items():
            if name not in there:
                flush.added[name] = frame
        flush.as_given = anew.as_given
        flush.counts, flush.rows, flush.is_narrow = counts, anew.rows, False

    def rows_of(
        self, member: Member, place: int, source: ExternalInput | None
    ) -> tuple[DataFrame | None, int]:
        """Return the rows of an input of a member as of the last flush, each once, and their
        maximum number; the rows of an external input from its `source`.

        Return (None, 0) if no table has rows of the input yet.
        """
        there = member.places[place]
        if source is not None:
            token = self.tables.manifest.tokens.get(version_token(there), source.upto)
            given = replace(source, place=there, after=BEFORE, upto=token)
            return self._inflow.fed(given, is_late=False), count_changes((), [given])
        spec = self._rows_of(there)
        if spec is None:
            return None, 0
        return read_whole(self.tables, spec), sum(self.tables.manifest.rows(spec.name))

    def _read_input(self, place: int, loading: Loading) -> tuple[list[DataFrame], int]:
        """Return the rows of the input at `place` as of the last flush, and how many at most."""
        if place in self._provided_inputs(loading.member):
            spec = self._rows_of(place)
            if spec is not None:
                parts = [part.select("row", "weight") for part in self.tables.parts(spec)]
                return parts, sum(self.tables.manifest.rows(spec.name))
        token = self.tables.manifest.tokens.get(version_token(place))
        if token is None or place not in loading.sources:
            return [], 0
        source = replace(loading.sources[place], after=BEFORE, upto=token)
        return [self._inflow.fed(source, is_late=False)], count_changes((), [source])

    def _rows_of(self, place: int) -> TableSpec | None:
        """Return a table with the rows of an input from the process; None for no rows.

        Raises
        ------
        OffloadError: the table has been deleted with the fragments that provided it.
        """
        specs = [m.rows[place] for m in self.roster.members if place in m.rows]
        known = [spec for spec in specs if spec.name in self.tables.manifest.tables]
        is_kept = any(m.is_loaded for m in self.roster.members if place in m.places)
        if not known and not is_kept and not self.roster.is_fed(place):
            raise OffloadError(
                "the views with which this one was to share have closed meanwhile\n"
                "  move it again, by view.offload()"
            )
        return known[0] if known else None

    def _write(self, number: int, flush: Flush, of: FlushInput, new: Member | None) -> None:
        """Write the changes and tokens of the flush `number`, and end `looks_through`.

        Tables that no member needs are dropped. `new` is the member that is being loaded, if any:
        its plan and tables count as needed.
        """
        tokens, gone = self._tokens_and_drops(of, new, has_changed=bool(flush.given))
        self.tables.flush(
            number,
            flush.added,
            rows=flush.rows,
            apart={name: flush.counts[place] for name, place in flush.as_given.items()},
            tokens=tokens,
            tasks=1 if flush.is_narrow else None,
            gone=gone,
        )
        self.looks_through = False

    def _tokens_and_drops(
        self, of: FlushInput, new: Member | None, *, has_changed: bool
    ) -> tuple[dict[str, Any], set[str]]:
        """Return the tokens of a flush, and the tables that are not needed after it.

        `new` is the member that is being loaded, or None. Nothing is dropped unless rows
        have changed.
        """
        here = [*self.roster.here(), *([] if new is None else [new])]
        plans, gone = {m.name for m in here}, set[str]()
        if has_changed:
            gone = set(self.tables.manifest.tables) - {name for m in here for name in m.tables}
        else:  # tables of absent plans are still current
            plans.update(self.roster.plans)
        tokens: dict[str, Any] = {PLANS: sorted(plans)}
        tokens.update((version_token(source.place), source.upto) for source in of.fed)
        return tokens, gone

    def _can_retry(self, error: Exception) -> bool:
        """Return True if a flush is to be repeated, and set the mode in which it may succeed.

        An odd value needs careful mode; too few held rows, a look at all rows. Raises `TakenIn` if
        a callable of the query raised.
        """
        told = callable_error(error)
        if told is not None:
            raise TakenIn(
                f"{told}\n  its views stay as they were until it is recalled, or the row no longer"
                " makes it raise"
            ) from error
        is_odd, is_short = ODD_VALUE in str(error), TOO_FEW in str(error)
        self.careful = self.careful or is_odd
        self.looks_through = self.looks_through or is_short
        return is_odd or is_short
