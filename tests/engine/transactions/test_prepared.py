"""A two-phase commit is made or not; a reader between the phases changes nothing."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest

from reactive import ClosedError, Database, Sum, TransactionError
from reactive.engine.dataflow.schedule import LATEST
from reactive.engine.transactions.prepared import PreparedTransaction
from reactive.engine.transactions.transaction import Transaction
from tests.budget import seeds, stride
from tests.engine.transactions.test_between import PATIENCE, Refused, Side, interrupt
from tests.moments import Moments


def nobody(side: Side) -> None: ...


def same_thread(side: Side) -> None:
    side.state()
    side.check()


def other_thread(side: Side) -> None:
    thread = threading.Thread(target=side.state)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def new_view(side: Side) -> None:
    side.views.append(side.a.group_by(lambda r: r[1]).aggregate(Sum(lambda r: r[0])).materialize())
    side.following.append(side.views[-1].subscribe(lambda delta: None))


LOOKS = [nobody, same_thread, other_thread, new_view]


def fill(side: Side) -> None:
    side.a.remove((1, 1))
    side.a.add((2, 0))
    side.b.upsert((1, 11))


def prepared_of(side: Side, change: Callable[[Side], object] = fill) -> PreparedTransaction:
    prepared = PreparedTransaction(side.db._engine).begin()
    change(side)
    prepared.prepare()
    return prepared


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("commits", [0, LATEST])
def test_undone_it_leaves_all_as_before(look: Any, optimize: bool, commits: int) -> None:
    side = Side(optimize=optimize, commits=commits)
    before = side.state()
    for _ in range(3):
        prepared = prepared_of(side)
        look(side)
        prepared.undo()
        prepared.undo()
        assert side.db._engine.broken is None  # undone, not repaired
        assert (side.state()[:2], side.state()[3], side.heard) == (*[before[:2], before[3]], [])
        side.check()
    side.change()
    assert side.state() != before and side.heard
    side.check()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("commits", [0, LATEST])
def test_published_it_is_as_a_plain_transaction(look: Any, optimize: bool, commits: int) -> None:
    side, plain = (Side(optimize=optimize, commits=commits) for _ in range(2))
    prepared = prepared_of(side)
    look(side)
    look(plain)
    assert side.heard == []
    prepared.publish()
    plain.change()
    assert side.db._engine.broken is None
    assert side.state() == plain.state()
    heard = [[(d.version, d.added, d.removed, d.updated) for d in s.heard] for s in (side, plain)]
    assert heard[0] == heard[1]
    side.check()


def test_readers_do_not_wait_and_see_the_last_commit() -> None:
    side = Side()
    old = side.state()
    prepared = prepared_of(side)
    assert side.state()[2:] == old[2:]  # the preparing thread sees the tables as they will be
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(side.state).result(PATIENCE) == old
        prepared.publish()
        assert pool.submit(side.state).result(PATIENCE) != old


def test_writers_wait_until_its_end() -> None:
    side = Side()
    prepared = prepared_of(side)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(side.a.add, (7, 7))
        for _ in range(3):
            assert not written.done()
            side.state()
        prepared.publish()
        written.result(PATIENCE)
    assert (7, 7) in side.a and (2, 0) in side.a
    side.check()


def test_what_an_operator_raises_undoes_it() -> None:
    side = Side()
    fragile = side.a.select(lambda r: 1 // r[1]).materialize()
    before = side.state()
    with pytest.raises(ZeroDivisionError):
        prepared_of(side, lambda side: side.a.add((7, 0)))
    assert (side.state(), side.heard, len(fragile)) == (before, [], 3)
    assert side.db._engine.pending is None
    side.a.add((7, 7))
    side.check()


def test_it_takes_no_statement_once_prepared() -> None:
    side = Side()
    engine = side.db._engine
    prepared = prepared_of(side)
    for act in (lambda: side.a.add((8, 8)), Transaction(engine).__enter__, side.db.close):
        with pytest.raises(TransactionError):
            act()
    for again in (prepared.prepare, prepared.begin):
        with pytest.raises(TransactionError):
            again()
    prepared.publish()
    for late in (prepared.prepare, prepared.publish):
        with pytest.raises(TransactionError):
            late()
    side.a.add((8, 8))
    side.check()


def test_it_refuses_to_begin_in_a_transaction_and_in_a_closed_database() -> None:
    side = Side()
    with side.db.transaction(), pytest.raises(TransactionError, match="commit_with"):
        PreparedTransaction(side.db._engine).begin()
    side.change()
    side.db.close()
    with pytest.raises(ClosedError):
        PreparedTransaction(side.db._engine).begin()


def test_a_nested_transaction_that_failed_fails_it() -> None:
    side = Side()
    before = side.state()
    prepared = PreparedTransaction(side.db._engine).begin()
    with suppress(Refused), side.db.transaction():
        side.a.add((7, 7))
        raise Refused
    with pytest.raises(TransactionError, match="nested"):
        prepared.prepare()
    assert side.state() == before and not prepared.is_open


def test_without_changes_there_is_no_version() -> None:
    side = Side()
    before = side.state()
    prepared_of(side, nobody).publish()
    prepared_of(side, nobody).undo()
    with PreparedTransaction(side.db._engine):
        side.a.add((7, 7))
    assert side.state() == before
    side.a.add((7, 7))


@pytest.mark.parametrize("how", ["dropped", "in a cycle", "its thread ends"])
@pytest.mark.parametrize("look", [nobody, same_thread])
def test_left_alone_it_is_undone(how: str, look: Any) -> None:
    side = Side()
    before = side.state()
    if how == "its thread ends":
        thread = threading.Thread(target=lambda: prepared_of(side) and None)
        thread.start()
        thread.join(PATIENCE)
    else:
        prepared = prepared_of(side)
        look(side)
        cycle: Any = [prepared]
        if how == "in a cycle":
            cycle.append(cycle)
        del prepared, cycle
        gc.collect()
    assert side.state() == before
    side.a.add((7, 7))
    side.check()


@pytest.mark.parametrize("end", ["publish", "undo"])
@pytest.mark.parametrize("is_read", [False, True])
def test_plans_that_bail_out_are_made_anew(end: str, is_read: bool) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    both = a.join(b, on=lambda x, y: x[0] == y[0])
    view = both.group_by(lambda x, y: y[1]).aggregate(Sum(lambda x, y: x[1])).materialize()
    b.add((1, "north"))
    a.add((1, 5))
    anew = Mock(wraps=db._engine.queries.recompile_without)
    db._engine.queries.recompile_without = anew  # type: ignore[method-assign]
    prepared = PreparedTransaction(db._engine).begin()
    a.add_all([(1, 7), (2, "five")])  # the second one has no partner
    prepared.prepare()
    if is_read:
        assert list(view) == [("north", 5)]
    getattr(prepared, end)()
    assert list(view) == [("north", 12 if end == "publish" else 5)]
    a.add((1, 1))
    view.verify()
    assert anew.call_count == 1
    assert len(a) == (4 if end == "publish" else 2)


def test_an_operator_that_raises_only_later_costs_its_views_and_not_the_commit() -> None:
    side, is_bad = Side(), list[int]()
    moody = side.a.select(lambda r: (r, 1 // (not is_bad))).materialize()
    prepared = prepared_of(side)
    assert len(moody) == 3  # it has to step again
    is_bad.append(1)
    prepared.publish()
    with pytest.raises(ZeroDivisionError):
        len(moody)
    is_bad.clear()
    assert {r for r, _ in moody} == {(1, 2), (2, 3), (2, 0)}
    assert side.db.version == 3
    side.check()


def test_ctrl_c_waits_until_the_end() -> None:
    for end in ("publish", "undo"):
        side = Side()
        before = side.state()
        prepared = prepared_of(side)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            getattr(prepared, end)()
        assert (side.state() == before) is (end == "undo")
        assert side.db._engine.broken is None
        side.check()
    prepared = prepared_of(side)
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # a second one does not wait
    with pytest.raises(KeyboardInterrupt):
        prepared.undo()
    side.check()


def run(side: Side, look: Callable[[Side], object], end: str, committed: list[int]) -> None:
    """Prepare a transaction, commit elsewhere in between, and end it by `end`."""
    with PreparedTransaction(side.db._engine) as prepared:
        fill(side)
        prepared.prepare()
        look(side)
        if end == "publish":
            committed.append(1)
            try:
                prepared.publish()
            except BaseException:
                if prepared.is_open:
                    prepared.publish()
                raise


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("look", [nobody, same_thread])
@pytest.mark.parametrize("end", ["publish", "undo"])
def test_at_no_moment_is_half_of_it_left(look: Callable[[Side], object], end: str) -> None:
    assert moments(look, end, stride(131, 4)) > 100


def moments(look: Callable[[Side], object], end: str, stride: int) -> int:
    """Interrupt it at moments that are so far from each other; the last one there is."""
    done = Side()
    before = done.state()[:2]
    done.change()
    after = done.state()[:2]
    moment, where = 0, "the first"
    while where:
        side, committed = Side(), list[int]()
        with Moments(moment, interrupt) as at, suppress(KeyboardInterrupt):
            run(side, look, end, committed)
        where = at.where or ""
        gc.collect()
        assert side.state()[:2] == (after if committed else before), (moment, where)
        side.check()
        side.a.add((9, 9))
        side.check()
        moment += stride
    return moment


def test_other_tasks_of_the_same_thread_see_the_last_commit() -> None:
    async def write(side: Side, begun: asyncio.Event) -> None:
        await begun.wait()
        async with side.db.transaction():
            side.a.add((7, 7))

    async def main() -> None:
        side = Side()
        old = side.state()
        begun = asyncio.Event()
        writing = asyncio.create_task(write(side, begun))
        prepared = await PreparedTransaction(side.db._engine).begin_async()
        fill(side)
        prepared.prepare()

        async def read() -> Any:
            return side.state()

        assert await asyncio.create_task(read()) == old
        begun.set()
        await asyncio.sleep(0.01)
        assert not writing.done()
        prepared.publish()
        await writing
        assert (2, 0) in side.a and (7, 7) in side.a
        side.check()
        async with side.db.transaction():
            side.a.remove((7, 7))

    asyncio.run(main())


def test_of_several_databases_all_are_prepared_before_any_is_published() -> None:
    one, two = Side(), Side()
    fragile = two.a.select(lambda r: 1 // r[1]).materialize()
    before = one.state(), two.state()
    first, second = (
        PreparedTransaction(one.db._engine).begin(),
        PreparedTransaction(two.db._engine).begin(),
    )
    fill(one)
    two.a.add((7, 0))
    first.prepare()
    with pytest.raises(ZeroDivisionError):
        second.prepare()
    first.undo()
    assert (one.state(), two.state(), len(fragile)) == (*before, 3)
    one.check()
    two.check()


def told(delta: Any) -> Any:
    return delta.version, Counter(delta.added), Counter(delta.removed), Counter(delta.updated)


@pytest.mark.parametrize("seed", seeds(6, 3))
def test_histories_are_those_of_plain_transactions(seed: int) -> None:
    rng = random.Random(seed)
    side, plain = Side(), Side()
    fragile = [s.a.select(lambda r: 60 // r[1]).materialize() for s in (side, plain)]

    def change(side: Side, number: int) -> None:
        rng = random.Random(number)
        for _ in range(rng.randint(0, 4)):
            row = rng.randint(1, 3), rng.choice([1, 2, 3, 5, 0] if rng.random() < 0.3 else [1, 2])
            if rng.random() < 0.4 and row in side.a:
                side.a.remove(row)
            else:
                side.a.add(row)
            if rng.random() < 0.3:
                side.b.upsert((row[0], rng.randint(1, 9)))

    for number in range(60):
        stands = rng.random() < 0.6
        found: list[Any] = []
        for one, is_plain in ((side, False), (plain, True)):
            try:
                if is_plain:
                    with suppress(Refused), one.db.transaction():
                        change(one, number)
                        if not stands:
                            raise Refused
                else:
                    prepared = PreparedTransaction(one.db._engine).begin()
                    change(one, number)
                    if stands or rng.random() < 0.5:
                        prepared.prepare()
                        rng.choice(LOOKS[:3])(one)
                    (prepared.publish if stands else prepared.undo)()
            except ZeroDivisionError:
                found.append("refused")
            found.append([one.state(), [told(d) for d in one.heard]])
        if not stands and "refused" in found:  # of an undone one not all have stepped
            found.remove("refused")
        assert found[: len(found) // 2] == found[len(found) // 2 :]
        side.check()
    assert sorted(fragile[0]) == sorted(fragile[1])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_who_waits_to_write_finds_repaired_what_was_broken_off_meanwhile() -> None:
    side = Side()
    transaction = Transaction(side.db._engine, interrupt).__enter__()
    fill(side)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(side.a.add, (7, 7))
        while not side.db._engine.db_lock.waiting:
            pass
        with pytest.raises(KeyboardInterrupt):
            transaction.__exit__(None, None, None)
        written.result(PATIENCE)
    assert side.db._engine.broken is None
    assert Counter(side.a) == Counter([(1, 1), (1, 2), (2, 3), (7, 7)])
    side.check()
