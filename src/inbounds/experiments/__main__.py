"""`python -m inbounds.experiments`: every table and figure of README and docs anew, from what is in results."""

from __future__ import annotations

import sys
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.experiments.pages import rebuild
from inbounds.reports.illustrations import draw_levels_of_supervision, draw_penalty


def main(root: Path) -> None:
    """Rebuild what a checkout shows."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    try:
        written = rebuild(root / "results", [page for page in pages if page.is_file()])
    except BadInput as error:
        sys.exit(f"Error: {error}")
    written += draw_penalty(root / "docs" / "penalty") + draw_levels_of_supervision(root / "docs" / "supervision")
    for file in written:
        print(f"{file}: written")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
