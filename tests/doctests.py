"""The examples in docstrings, run and compared with what they say.

`doctest.testmod` does the same, and takes ten times as long: for each docstring, also for one
without an example, it looks whether any file has changed that a module was loaded from.

python -m tests.doctests MODULE ...    prints what is said of each, nothing where all is well
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from contextlib import redirect_stdout
from doctest import ELLIPSIS, DocTestFinder, DocTestRunner, TestResults
from types import ModuleType


def tried(module: ModuleType) -> TestResults:
    """How many examples a module has, and how many of them are wrong, which is printed."""
    runner = DocTestRunner(optionflags=ELLIPSIS)
    for test in DocTestFinder().find(module):
        if test.examples:
            runner.run(test)
    return TestResults(runner.failures, runner.tries)


def main(names: list[str]) -> None:
    told = {}
    for name in names:
        with redirect_stdout(io.StringIO()) as out:
            tried(importlib.import_module(name))
        told[name] = out.getvalue()
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
