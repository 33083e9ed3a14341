"""A history of small Java classes with faults, for testing the analyses and their results.

Each analysis has cases: classes with a fault, and classes that lack one condition of it. A revision
of the history replaces one case by another, so that its findings are known beforehand.
"""

from examples.findbugs.faults.case import Case, cases, fixture
from examples.findbugs.faults.revisions import FaultRevision, history

__all__ = ["Case", "FaultRevision", "cases", "fixture", "history"]
