"""Pages with code: README and docs, their programs, and the stated output."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def page_of(value: object) -> str:
    return name(value) if isinstance(value, Path) else ""


def programs(*, of_spark: bool) -> list[tuple[Path, str]]:
    """Return each program with its page: programs that need Spark, or all others."""
    found = [(page, block) for page in PAGES for block in BLOCK.findall(page.read_text())]
    return [
        (page, block)
        for page, block in found
        if ">>>" not in block and ("SparkOffload" in block) == of_spark
    ]


def printed(program: str) -> list[str]:
    """The lines that a program prints first, by its comments."""
    return [line.split("  # ")[1] for line in program.splitlines() if _prints(line)]


def _prints(line: str) -> bool:
    return "print(" in line and "  # " in line
