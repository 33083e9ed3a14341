"""An interrupt at any moment: a commit is made and reported, or not made, and no thread hangs.

The interpreter raises it where a function begins, and after a call of a function in C.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_stack
from types import FrameType
from typing import Any

import pytest

import reactive
from reactive import Count, Database, Delta, Max, Sum
from reactive.engine.dataflow.leaves import ViewRows
from reactive.engine.runtime.interrupts import surely
from reactive.engine.storage.store import BagStore
from tests.budget import stride
from tests.moments import is_closed

OURS = ("<reactive ", str(Path(reactive.__file__).parent) + os.sep)
"""Prefixes of the file names of generated code, and of the engine."""


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    amount: int


class Interrupting:
    """Raise at the nth moment at which the interpreter might; `where` names that place."""

    def __init__(self, moment: int) -> None:
        self._left = moment
        self.where: str | None = None

    def __enter__(self) -> Interrupting:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *of: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "c_return") or not code.co_filename.startswith(OURS):
            return
        if code.co_name == "__del__" or (event == "call" and is_closed(frame)):
            return  # an exception in there is lost
        if any(caller.f_code.co_name == "hear" for caller, _ in walk_stack(frame)):
            return  # it is the user's
        self._left -= 1
        if self._left < 0:
            sys.setprofile(None)
            self.where = f"{event} in {code.co_name}, line {frame.f_lineno}"
            raise KeyboardInterrupt


class Side:
    """A database with views, and the deltas of their subscribers."""

    def __init__(self, *, keyed: bool, in_use: bool) -> None:
        self.db = Database()
        orders: Any = self.db.table(Order, key="id" if keyed else None)
        customers: Any = self.db.table(int, name="customers")
        customers.add_all(range(5))
        self.orders = orders
        both = orders.join(customers, on=lambda o, c: o.customer == c)
        queries = [
            orders.where(lambda o: o.amount > 0)
            .group_by(lambda o: o.customer)
            .aggregate(Count(), Max(lambda o: o.amount)),
            both.group_by(lambda o, c: c).aggregate(Sum(lambda o, c: o.amount)),
            both.select(lambda o, c: (o.id, c)),
            orders.select(lambda o: o.customer).distinct(),
            orders.order_by(lambda o: -o.amount).limit(3),
            around(orders.where(lambda o: o.amount > 1)),
            orders.aggregate(Sum(lambda o: o.amount)).where(lambda total: total > 0),
        ]
        self.views = [query.materialize() for query in queries]
        self.heard: list[Counter[Any]] = [Counter() for _ in queries]
        pairs = zip(self.views, self.heard, strict=True)
        self.following = [view.subscribe(self._hearing(into)) for view, into in pairs]
        orders.add_all(Order(n, n % 4, n) for n in range(6))
        if in_use:  # its commits are a function by now
            for n in range(100, 170):
                orders.add(Order(n, n % 4, 1))

    def _hearing(self, into: Counter[Any]) -> Callable[[Delta[Any]], None]:
        def hear(delta: Delta[Any]) -> None:
            if delta.is_snapshot:
                into.clear()
            for row, weight in delta.items():
                into[row] += weight

        return hear

    def rows(self) -> Counter[Order]:
        return Counter(self.orders)

    def check(self, where: str | None) -> None:
        """Check that the gate is open, and that views and subscribers equal the table."""
        gate: Any = self.db._engine.db_lock
        assert gate.depth_here == gate.depth == 0 and not gate.lock._is_owned(), where
        assert self.db._engine.pending is None, where
        assert gc.isenabled(), where
        for view, heard in zip(self.views, self.heard, strict=True):
            view.verify()
            assert Counter(dict(view.zset().items())) == +heard, where


def around(orders: Any) -> Any:
    """Count the cycles of three orders, from a customer to an amount and back."""
    two = orders.join(orders, on=lambda a, b: a.amount == b.customer)
    return two.join(
        orders, on=lambda a, b, c: b.amount == c.customer and c.amount == a.customer
    ).aggregate(Count())


def add(side: Side) -> None:
    side.orders.add(Order(7, 1, 7))


def update(side: Side) -> None:
    side.orders.update(Order(3, 3, 3), Order(3, 1, 9))


def together(side: Side) -> None:
    with side.db.transaction():
        side.orders.add(Order(7, 1, 7))
        side.orders.remove(Order(2, 2, 2))


def nested(side: Side) -> None:
    outer = side.db.transaction()
    with outer:
        side.orders.add(Order(7, 1, 7))
        with outer, side.db.transaction():
            side.orders.add(Order(8, 2, 8))


def add_all(side: Side) -> None:
    side.orders.add_all(Order(200 + n, n % 4, 1) for n in range(3))


EVERY = stride(13)
"""One moment in `EVERY` is tried, beginning with another moment in each case."""
CASES = [
    (keyed, in_use, statement)
    for keyed in (True, False)
    for in_use in (False, True)
    for statement in (add, update, together, nested, add_all)
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of generators
@pytest.mark.parametrize("case", range(len(CASES)))
def test_an_interrupt_at_any_moment_leaves_all_or_nothing(case: int) -> None:
    keyed, in_use, statement = CASES[case]
    done = Side(keyed=keyed, in_use=in_use)
    statement(done)
    moment = case % EVERY
    where: str | None = ""
    while where is not None:
        side = Side(keyed=keyed, in_use=in_use)
        before = side.rows()
        with Interrupting(moment) as interrupting, suppress(KeyboardInterrupt):
            statement(side)
        where = interrupting.where
        assert side.rows() in (before, done.rows()), where
        side.orders.add(Order(900, 2, 2))
        side.check(where)
        moment += EVERY
    assert moment > 20


def test_one_that_ends_after_those_outside_it_have_ended_gives_the_gate_back() -> None:
    side = Side(keyed=True, in_use=False)
    with side.db.transaction():
        inner = side.db.transaction()
        inner.__enter__()
        side.orders.add(Order(7, 1, 7))
    del inner  # as after an interrupt where its end begins
    assert Order(7, 1, 7) not in side.orders
    side.orders.add(Order(8, 1, 8))
    side.check("an end")


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("operator", [ViewRows, BagStore])
def test_ctrl_c_while_a_commit_is_put_back_comes_when_it_is(
    operator: Any, in_use: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb = "undo" if operator is ViewRows else "revert"
    put_back, heard = getattr(operator, verb), list[Any]()

    def interrupted(*given: Any) -> None:
        heard.append(given)
        signal.raise_signal(signal.SIGINT)
        put_back(*given)

    monkeypatch.setattr(operator, verb, interrupted)  # before nodes know how to undo
    side = Side(keyed=False, in_use=in_use)
    fragile = side.orders.select(lambda o: 1 // (o.amount + 1)).materialize()
    if in_use:  # by now with that view
        for n in range(70):
            side.orders.add(Order(n, 0, 0))
    before, rows = side.rows(), Counter(fragile)
    for statement in (
        lambda: side.orders.add(Order(7, 1, -1)),
        lambda: side.orders.add_all([Order(7, 1, 1), Order(8, 2, -1)]),
        lambda: together_failing(side),
    ):
        heard.clear()
        with pytest.raises(KeyboardInterrupt):
            statement()
        assert heard
        assert side.rows() == before
        assert Counter(fragile) == rows
    side.orders.add(Order(900, 2, 2))
    side.check("while put back")


def together_failing(side: Side) -> None:
    with side.db.transaction():
        side.orders.add(Order(7, 1, 1))
        side.orders.add(Order(8, 2, -1))


def test_ctrl_c_comes_after_what_is_put_back() -> None:
    handler, heard = signal.getsignal(signal.SIGINT), list[Any]()

    def put_back() -> None:
        signal.raise_signal(signal.SIGINT)
        heard.append("put back")

    with pytest.raises(KeyboardInterrupt):
        surely(put_back)
    assert heard == ["put back"]
    assert signal.getsignal(signal.SIGINT) is handler
    for own in (signal.SIG_IGN, lambda *given: heard.append(given[0])):
        signal.signal(signal.SIGINT, own)
        try:
            surely(put_back)
            assert signal.getsignal(signal.SIGINT) is own
        finally:
            signal.signal(signal.SIGINT, handler)
    assert heard == ["put back", "put back", "put back", signal.SIGINT]
    thread = threading.Thread(target=surely, args=(lambda: heard.append("elsewhere"),))
    thread.start()
    thread.join()
    assert heard[-1] == "elsewhere"
    with pytest.raises(ZeroDivisionError):
        surely(lambda: heard.append(1 // 0))


def test_ctrl_c_while_it_is_about_to_be_put_off_does_not_keep_things_from_being_put_back() -> None:
    for function in ("_put_off", "_handler", "_int_to_enum", "helper", "__enter__", "signal"):
        for keyed in (True, False):
            side = Side(keyed=keyed, in_use=False)
            before = side.rows()

            def profile(frame: FrameType, event: str, argument: Any) -> None:
                if event == "call" and frame.f_code.co_name == function:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

            with pytest.raises((KeyboardInterrupt, ArithmeticError)), side.db.transaction():
                side.orders.add(Order(7, 1, 7))
                sys.setprofile(profile)
                raise ArithmeticError
            sys.setprofile(None)
            assert side.rows() == before, function
            side.orders.add(Order(900, 2, 2))
            side.check(function)


def test_an_interrupt_before_a_leaf_has_stepped_leaves_it_as_it_was() -> None:
    db = Database()
    numbers: Any = db.table(int, name="numbers")
    view = numbers.aggregate(Sum(lambda n: n)).materialize()
    numbers.add(5)

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_qualname == "SingleRow.step":
            sys.setprofile(None)
            raise KeyboardInterrupt

    for _ in range(2):
        sys.setprofile(profile)
        with pytest.raises(KeyboardInterrupt):
            numbers.add(1)
        assert list(numbers) == list(view) == [5]
        for _ in range(70):  # from now on its commits are a function of their own
            numbers.add(0)
            numbers.remove(0)
