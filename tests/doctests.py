"""The examples in docstrings, run and compared with their stated results.

`doctest.testmod` does the same, but is ten times slower: for each docstring, also one without an
example, it checks all loaded modules for changed files.

python -m tests.doctests MODULE ...    prints the failures of each module
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
    """Run the examples of a module; print the failures, and return the numbers of both."""
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
