"""Build what is released: `make dist`, or `python -m release [FOLDER]`.

A source archive, a wheel, and the list of what the wheel brings along, which lies in the wheel as well (PEP 770). With
`SOURCE_DATE_EPOCH` the same sources give the same bytes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from release.bill import bill
from release.lock import ROOT


def main(folder: Path) -> None:
    """Build everything into a folder and print the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    source, wheel = SdistBuilder(str(ROOT)), WheelBuilder(str(ROOT))
    version, made = wheel.metadata.version, os.environ.get("SOURCE_DATE_EPOCH")
    listed = folder.absolute() / f"inbounds-{version}.cdx.json"
    listed.write_text(bill(version, int(made) if made else None), encoding="utf-8", newline="\n")
    wheel.config.target_config["sbom-files"] = [str(listed)]
    print(listed)
    for builder in (source, wheel):
        for built in builder.build(directory=str(folder.absolute()), versions=["standard"]):
            print(built)


if __name__ == "__main__":
    main(Path(*sys.argv[1:2] or ["dist"]))
