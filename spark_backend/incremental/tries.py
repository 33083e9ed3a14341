"""A flush is tried again where it fails, as one that failed has changed nothing."""

from __future__ import annotations

from collections.abc import Callable

from reactive.errors import OffloadError
from spark_backend.cluster.session import Session

TRIES = 3
"""How often a flush is tried again."""


def tried(
    attempt: Callable[[], None],
    session: Session,
    goes_on: Callable[[Exception], bool] = lambda error: False,
) -> None:
    """Run an attempt, until it succeeds.

    Parameters
    ----------
    goes_on: what to do about an error; whether it is worth another try.

    Raises
    ------
    OffloadError: it failed each time, or in the same way in a session that is there.
    """
    for number in range(TRIES + 1):
        try:
            return attempt()
        except OffloadError:
            raise
        except Exception as error:
            failed = error
            if not goes_on(error) and number and session.is_alive():
                break
    raise OffloadError(
        f"Spark failed at a flush: {str(failed).partition(chr(10))[0]}\n"
        "  the changes are kept and will be tried again at the next flush"
    ) from failed
