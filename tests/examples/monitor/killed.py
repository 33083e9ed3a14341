"""A monitor that kills itself between two writes: `python -m tests.examples.monitor.killed N ...`.

Its points are before and after incidents follow from conditions, and before and after a batch is
written to the outbox. At the N-th it ends as by `kill -9`. Further arguments are the monitor's.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

from examples.monitor.__main__ import main
from examples.monitor.monitor import Monitor
from examples.monitor.outbox import Outbox


def kill_at(point: int) -> None:
    """Let this process be killed at a point."""
    points = count(1)

    def pass_point() -> None:
        if next(points) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def between_points(own: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any) -> Any:
            pass_point()
            result = own(*arguments)
            pass_point()
            return result

        return stepped

    for kind, name in ((Monitor, "_settle"), (Outbox, "write")):
        setattr(kind, name, between_points(getattr(kind, name)))


if __name__ == "__main__":
    kill_at(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
