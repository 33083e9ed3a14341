"""The process of the pipeline, as the one that watches it sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

from examples.pipeline.worker import Told


class WorkerEnded(Exception):
    """The process has ended by itself; what it said last is the text."""


class Running:
    """The process, with the JVM that it starts: both are killed together.

    Parameters
    ----------
    folder: of the pipeline.
    customers: how many there are.
    """

    def __init__(self, folder: Path, customers: int) -> None:
        self._errors = folder / "errors.txt"
        command = [sys.executable, "-m", "examples.pipeline.worker", str(folder), str(customers)]
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def take(self, batch: int) -> Told:
        """Let the process take a batch, and wait for it.

        Raises
        ------
        WorkerEnded: the process ended before.
        """
        self._tell(batch)
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise WorkerEnded(self._errors.read_text()[-1000:])
        return Told(**json.loads(answer))

    def die_at(self, batch: int, seconds: float) -> None:
        """Let the process take a batch, and kill it some seconds later."""
        self._tell(batch)
        sleep(seconds)
        self.kill()

    def kill(self) -> None:
        """Kill the process by a signal that cannot be handled."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Report the end of the batches, and wait for the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, batch: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{batch}\n")
        self._process.stdin.flush()
