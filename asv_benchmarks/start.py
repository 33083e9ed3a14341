"""How long `import reactive` takes in a new process, beyond what the interpreter itself takes.

The compiled files of an installed package are there, so they are here too: in a folder of their
own, which the first start fills.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median
from time import perf_counter

ROUNDS = 15


def import_figures(rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds of the import, and of a process that does nothing; the two in turns."""
    with tempfile.TemporaryDirectory() as folder:
        started("import reactive", folder)
        pairs = [
            (started("pass", folder), started("import reactive", folder)) for _ in range(rounds)
        ]
    return {
        "import": median(full - bare for bare, full in pairs),
        "bare": median(bare for bare, _ in pairs),
    }


def started(program: str, folder: str) -> float:
    """Milliseconds of a process that runs a program, with its compiled files in a folder."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = perf_counter()
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    return (perf_counter() - start) * 1e3
