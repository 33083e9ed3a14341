"""A history of small Java classes with faults, for testing the analyses and what is made of them.

Each analysis has cases: classes that it is for, and classes that lack one condition. A revision of
the history puts one case in the place of another, so what is found after it is known beforehand.
"""

from examples.findbugs.faults.case import Case, cases, fixture
from examples.findbugs.faults.revisions import FaultRevision, history

__all__ = ["Case", "FaultRevision", "cases", "fixture", "history"]
