"""The lock file: the version of every package that is installed, and the SHA-256 of each file of that version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
CLUSTER = ROOT / "cluster.lock"
"""What clusters need: whoever belongs to one has its versions, so that it is neither set up nor shipped."""
TORCH = ROOT / "torch.txt"
"""torch alone, by its version: which file of it is installed depends on the machine."""


@dataclass(frozen=True)
class Locked:
    """A package of one version.

    Attributes:
        version: Of all packages that are called so, this one.
        hashes: The SHA-256 of its files, of which a machine installs one; none where any will do.
    """

    version: str
    hashes: tuple[str, ...]


def locked(file: Path) -> dict[str, Locked]:
    """What a file of requirements holds for this Python on this machine, by name."""
    found: dict[str, Locked] = {}
    for line in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        written, *hashes = line.split(" --hash=sha256:")
        one = Requirement(written)
        if one.marker is None or one.marker.evaluate():
            (pin,) = one.specifier
            found[canonicalize_name(one.name)] = Locked(pin.version, tuple(map(str.strip, hashes)))
    return found
