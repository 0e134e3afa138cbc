"""Fresh environments that share one torch, which takes most of the time and of the disk."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from release.lock import TORCH


class Failed(Exception):  # noqa: N818 (a sentence, as BadInput is)
    """What a user would have met."""


@dataclass(frozen=True)
class Place:
    """A fresh environment.

    Attributes:
        path: Its folder.
        extras: What was installed with the package.
    """

    path: Path
    extras: frozenset[str]

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.path / "bin" / "python")

    def run(self, *words: str, within: Path) -> subprocess.CompletedProcess[str]:
        """Run `python WORDS` there, as if no checkout were near."""
        return run([self.python, *words], within)


def with_torch(python: str, path: Path) -> Path:
    """An environment with torch alone, whose build pip chooses for this machine."""
    must([python, "-m", "venv", str(path)])
    pip = [str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    must([*pip, "--requirement", str(TORCH)])
    return path


def fresh(python: str, path: Path, torch: Path, wheel: Path, extras: frozenset[str]) -> Place:
    """An environment in which pip finds torch already there, and installs the wheel with these extras."""
    must([python, "-m", "venv", str(path)])
    (into,), (shared,) = ([*one.glob("lib/python*/site-packages")] for one in (path, torch.absolute()))
    (into / "torch.pth").write_text(f"{shared}\n", encoding="utf-8")
    pip = [str(path / "bin" / "python"), "-m", "pip"]
    asked = f"{wheel}[{','.join(sorted(extras))}]" if extras else str(wheel)
    must([*pip, "install", "--quiet", "--only-binary", ":all:", "--constraint", str(TORCH), asked])
    must([*pip, "check"])
    return Place(path, extras)


def run(command: list[str], within: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without what this environment says of others."""
    return subprocess.run(command, cwd=within, env=clean(), capture_output=True, encoding="utf-8", check=False)


def must(command: list[str], within: Path = Path()) -> str:
    """The same; what it prints, and `Failed` where it ends badly."""
    done = run(command, within)
    if done.returncode:
        raise Failed(f"{' '.join(command)} ends with {done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def clean() -> dict[str, str]:
    """The environment's variables, without a checkout on the path."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAKE"))}
