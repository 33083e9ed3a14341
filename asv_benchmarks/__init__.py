"""Benchmarks: each workload on the engine, and on a hand-written program for the one query.

rows --> workloads (engine and twin) --> measure, memory --> run --> asv classes, report
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # asv finds this package alone, and not the examples beside it
    sys.path.append(ROOT)
