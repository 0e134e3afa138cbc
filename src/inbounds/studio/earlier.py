"""What earlier trainings of a project left: what the next one goes on from, and what nobody needs any more.

Labels, sizes, commands and words of every training are kept: they are small, and repeat it all. Weights, masks and
stores take room; those of the last trainings that came to an end are kept, and those that others build on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from inbounds.studio.results import TABLE
from inbounds.writing import remove

KEPT = 3
"""So many trainings that came to an end keep their weights and masks."""
LARGE = ("run", "masks", "store")
GONE = ".gone"


class Earlier:
    """The trainings in a folder, the last one first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs: list[dict[str, Any]] = []
        for file in sorted(folder.glob("[0-9]*/job.json"), reverse=True):
            with suppress(OSError, ValueError):
                self.jobs.append(json.loads(file.read_text(encoding="utf-8")))

    def store(self, stamps: Mapping[str, str], classes: Sequence[str]) -> Path | None:
        """The last store of the same scans and classes."""
        for about in self.jobs:
            have = {name: stamp for name, stamp in about["stamps"].items() if name not in about["left_out"]}
            store: Path = self.folder / about["store"]
            if have == stamps and about["classes"] == classes and (store / "dataset.json").is_file():
                return store
        return None

    def run(self, classes: Sequence[str]) -> Path | None:
        """The last finished run that learnt the same classes."""
        for about in self.jobs:
            run = self._place(about) / "run"
            if about["state"] == "done" and about["classes"] == classes and (run / "run.json").is_file():
                return run
        return None

    def tidy(self, needed: Collection[Path | None]) -> None:
        """Remove what takes room of all but the last trainings, unless it is needed.

        What is removed loses its name first, so that nobody takes for whole what a kill has left of it.
        """
        ended = [about for about in self.jobs if (self._place(about) / "masks" / TABLE).is_file()][:KEPT]
        keep = {*needed, *(self.folder / about["store"] for about in ended)}
        keep |= {self._place(about) / name for about in ended for name in ("run", "masks")}
        for about in self.jobs:
            place = self._place(about)
            for large in (place / name for name in LARGE):
                with suppress(OSError):  # somebody looks at it: next time
                    if large not in keep and large.exists():
                        large.rename(large.with_name(f".{large.name}{GONE}"))
            for gone in place.glob(f".*{GONE}"):
                remove(gone)

    def _place(self, about: Mapping[str, Any]) -> Path:
        return self.folder / f"{about['number']:03d}"
