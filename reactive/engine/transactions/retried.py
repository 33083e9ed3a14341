"""Functions that run in a transaction, and again if that meets another commit.

    @db.transaction(retry=3)
    async def move(key, amount): ...

Cost: of a call that of a transaction; of another try the same again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from optimizer.errors import PlanError
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.left_out import optional
from reactive.engine.transactions.transaction import Transaction
from reactive.errors import ConflictError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

F = TypeVar("F", bound=Callable[..., Any])


def opened(
    engine: Engine,
    commit_with: Any,
    retry: int | None,
    deliver: str | None,
    timeout: float | None,
) -> Transaction:
    """Return a transaction that has not begun. The parameters are those of `Database.transaction`.

    Raises
    ------
    PlanError: `retry` is no number of tries, or `commit_with` nothing that can be committed.
    """

    def begun() -> Transaction:
        if commit_with is None:
            made = Transaction(engine)
        else:
            made = optional("borders.two_commits.joint").JointTransaction(engine, commit_with)
        return made._told_by(deliver, timeout)

    if retry is None:
        return begun()
    if isinstance(retry, bool) or not isinstance(retry, int) or retry < 0:
        raise PlanError(
            f"cannot try a transaction again {retry!r} times\n"
            "  give a number from 0 on: db.transaction(retry=3)"
        )
    return Retried(engine, begun, retry)


@boundary
class Retried(Transaction):
    """Decorator of `Database.transaction(retry=...)`."""

    __slots__ = ("_begun", "_retry")

    def __init__(self, engine: Engine, begun: Callable[[], Transaction], retry: int) -> None:
        super().__init__(engine)
        self._begun = begun
        self._retry = retry

    def __call__(self, function: F) -> F:
        if iscoroutinefunction(function):

            @wraps(function)
            async def asynchronous(*arguments: Any, **named: Any) -> Any:
                left = self._retry
                while True:
                    try:
                        async with self._begun():
                            return await function(*arguments, **named)
                    except ConflictError:
                        if self._is_last(left):
                            raise
                        left -= 1

            return asynchronous  # type: ignore[return-value]

        @wraps(function)
        def synchronous(*arguments: Any, **named: Any) -> Any:
            left = self._retry
            while True:
                try:
                    with self._begun():
                        return function(*arguments, **named)
                except ConflictError:
                    if self._is_last(left):
                        raise
                    left -= 1

        return synchronous  # type: ignore[return-value]

    def _is_last(self, left: int) -> bool:
        """Tell if there is no other try; nor is there one within a transaction of the caller's,
        whose statements would not be made again."""
        return not left or self._engine.mine is not None

    def __enter__(self) -> NoReturn:
        raise TransactionError(_NO_BLOCK)

    async def __aenter__(self) -> NoReturn:
        raise TransactionError(_NO_BLOCK)


_NO_BLOCK = (
    "cannot run the block of a `with` again: Python has no way to do that\n"
    "  decorate a function: `@db.transaction(retry=3)`, also `async def`"
)
