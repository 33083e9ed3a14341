"""One batch, one commit: its rows and its token together, or nothing.

    raise   what a row raises, is raised
    drop    the rows without which the batch can be committed are left out, and told

Which rows these are is found by trial: transactions that are taken back once all operators have
stepped, so that nobody hears of them. First each half of the rows by itself, then halves of these;
then, of the rows that are fine by themselves, the shortest beginning that is not.

Cost: of a batch without such rows that of its rows. Of one with k among n, O(k log n) trials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from reactive.borders.sources.batch import Batch
from reactive.borders.sources.given import Given, given
from reactive.borders.sources.ledger import Ledger, add, remove
from reactive.borders.sources.left_out import LeftOut
from reactive.borders.sources.net_changes import net_changes
from reactive.borders.sources.targets import ByTable
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.transactions.transaction import Transaction, within
from reactive.errors import FixpointError, ReactiveError, TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

Place: TypeAlias = tuple[int, Row]
"""A row, and the number of its table."""
Trial: TypeAlias = Callable[[Sequence[Place]], Exception | None]
"""What some rows raise, if anything."""
BLAMED = (TableError, FixpointError)
"""Errors of ours for which a row may be to blame, beside those of the user's callables."""


def commit_batch(engine: Engine, ledger: Ledger, batch: Batch[Any], *, drops: bool) -> int:
    """Commit a batch; how many rows have changed.

    Parameters
    ----------
    drops: whether rows that raise are left out.

    Raises
    ------
    Exception: what a row raises, unless such rows are left out; what no row is to blame for.
    """
    ledger.targets.check_there(engine.tables)
    found = given(batch, ledger.targets)
    for refused in batch.refused.values() if not drops else ():
        for each in refused:
            raise each.error
    try:
        return _commit(engine, ledger, found, None)
    except Exception as error:
        if not drops or not _may_blame_rows(error):
            raise _refusal(ledger, found, error) from error.__cause__
    return _Careful(engine, ledger, found).commit()


def _commit(engine: Engine, ledger: Ledger, batch: Given, left_out: LeftOut | None) -> int:
    def change() -> int:
        net = net_changes(batch, ledger, left_out)
        _change(ledger, net.gone, net.come)
        ledger.change(net.entries)
        ledger.change_errors(net.solved, net.errors)
        return len(net)

    return within(Transaction(engine), change)


def _change(ledger: Ledger, gone: ByTable, come: ByTable) -> None:
    tables = ledger.targets.tables
    for number, rows in gone.items():
        remove(tables[number], rows)
    for number, rows in come.items():
        add(tables[number], rows)


class _Careful:
    """Commits a batch without the rows that raise."""

    def __init__(self, engine: Engine, ledger: Ledger, batch: Given) -> None:
        self._engine = engine
        self._ledger = ledger
        self._batch = batch
        self._left_out = LeftOut()

    def commit(self) -> int:
        """Commit what can be; what others write in between may make more raise."""
        while True:
            try:
                return _commit(self._engine, self._ledger, self._batch, self._left_out)
            except Exception as error:
                if not _may_blame_rows(error) or not self._leave_out():
                    raise

    def _leave_out(self) -> bool:
        """Find rows that raise; whether there are any."""
        net = within(
            Transaction(self._engine),
            lambda: net_changes(self._batch, self._ledger, self._left_out),
        )
        if self._tried((), ()) is not None:
            return False
        going, coming = _places(net.gone), _places(net.come)
        stay = _culprits(going, lambda some: self._tried(some, ()))
        rest = [going[n] for n in range(len(going)) if n not in stay]
        wait = _culprits(coming, lambda some: self._tried(rest, some))
        for number, error in stay.items():
            self._left_out.note(going[number], error, comes=False)
        for number, error in wait.items():
            self._left_out.note(coming[number], error, comes=True)
        return bool(stay or wait)

    def _tried(self, going: Sequence[Place], coming: Sequence[Place]) -> Exception | None:
        """What these changes raise; nothing is changed."""
        trial = Transaction(self._engine, _take_back)
        try:
            within(trial, lambda: _change(self._ledger, _by_table(going), _by_table(coming)))
        except _TakenBack:
            return None
        except Exception as error:
            if not _may_blame_rows(error):
                raise
            return error
        raise AssertionError("a trial was not taken back")


def _culprits(rows: Sequence[Place], trial: Trial) -> dict[int, Exception]:
    """The rows without which the others do not raise, by their numbers, with what they raise."""
    found = dict(_alone(range(len(rows)), rows, trial))
    while True:
        rest = [number for number in range(len(rows)) if number not in found]
        if not rest or trial([rows[number] for number in rest]) is None:
            return found
        number = _last_of_shortest(rest, rows, trial)
        error = trial([rows[n] for n in rest[: rest.index(number) + 1]])
        if error is None:  # others have changed what it depends on
            return found
        found[number] = error


def _alone(
    numbers: Sequence[int], rows: Sequence[Place], trial: Trial
) -> list[tuple[int, Exception]]:
    """The rows that raise by themselves."""
    if not numbers:
        return []
    error = trial([rows[number] for number in numbers])
    if error is None:
        return []
    if len(numbers) == 1:
        return [(numbers[0], error)]
    half = len(numbers) // 2
    return [*_alone(numbers[:half], rows, trial), *_alone(numbers[half:], rows, trial)]


def _last_of_shortest(numbers: Sequence[int], rows: Sequence[Place], trial: Trial) -> int:
    """The last row of a beginning that raises, while the beginning without it does not."""
    passes, raises = 0, len(numbers)
    while raises - passes > 1:
        middle = (passes + raises) // 2
        if trial([rows[number] for number in numbers[:middle]]) is None:
            passes = middle
        else:
            raises = middle
    return numbers[raises - 1]


def _refusal(ledger: Ledger, batch: Given, error: Exception) -> Exception:
    """What to raise: of a row without a hash, what its table says of it."""
    if type(error) is not TypeError:
        return error
    found = (ledger.targets.refusal(number, row) for number, row in batch.rows())
    return next((refused for refused in found if refused is not None), error)


def _may_blame_rows(error: Exception) -> bool:
    if is_asynchronous(error) or isinstance(error, MemoryError):
        return False
    return isinstance(error, BLAMED) or not isinstance(error, ReactiveError)


class _TakenBack(Exception):
    """A trial has come to its end."""


def _take_back() -> None:
    raise _TakenBack


def _places(rows: ByTable) -> list[Place]:
    return [(number, row) for number, some in rows.items() for row in some]


def _by_table(places: Sequence[Place]) -> ByTable:
    found: ByTable = {}
    for number, row in places:
        found.setdefault(number, []).append(row)
    return found
