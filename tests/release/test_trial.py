"""What a release is tried with; the trial itself takes half an hour, and is `make release`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from inbounds.cli import app
from release.environments import Failed, Place, clean, must
from release.lock import ROOT
from release.trial import COMMANDS, NOT_FOR_USERS, _good, _refused

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_every_command_and_every_extra_is_tried() -> None:
    tried = {words[0] for words in COMMANDS if not words[0].startswith("--")}
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    assert known - tried == {"nnunet"}, "`make test-nnunet` tries that one"
    assert tried <= known
    for_users = set(EXTRAS) - NOT_FOR_USERS
    assert set().union(*COMMANDS.values()) == for_users


def test_the_checkout_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert "PYTHONPATH" not in clean()
    program = "import importlib.util as u; print(u.find_spec('release'))"
    assert must([sys.executable, "-c", program], tmp_path).strip() == "None"


def test_what_a_command_must_say(tmp_path: Path) -> None:
    """One that works, one that ends badly, and one that does not name the extra that was looked for."""
    here = Place(Path(sys.prefix), frozenset())
    assert here.python == sys.executable or Path(here.python).exists()
    _good(here.run("-m", "inbounds", "recipes", within=tmp_path), ["recipes"])
    with pytest.raises(Failed, match=r"verify nowhere ends with 2"):
        _good(here.run("-m", "inbounds", "verify", "nowhere", within=tmp_path), ["verify", "nowhere"])
    with pytest.raises(Failed, match=r"ends with 2 without \['data'\]"):
        _refused(here, ["verify", "nowhere"], frozenset({"data"}), tmp_path)
