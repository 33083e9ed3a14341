"""The long description of an index page: the README with links that lead to the repository."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
RELATIVE = re.compile(r"(!?\[[^\]]*\]\()(?!https?:|#)")


def absolute(text: str, repository: str) -> str:
    """Markdown with links that do not depend on where it is shown."""

    def opened(link: re.Match[str]) -> str:
        kind = "raw" if link[1].startswith("!") else "blob"
        return f"{link[1]}{repository}/{kind}/main/"

    return RELATIVE.sub(opened, text)


project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
readme = (ROOT / "README.md").read_text(encoding="utf-8")
setup(
    long_description=absolute(readme, project["urls"]["Source"]),
    long_description_content_type="text/markdown",
)
