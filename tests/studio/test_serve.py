"""`inbounds studio` as it is called."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from archives import command
from inbounds.studio.project import Project
from studios import CLASSES, scans

READY = re.compile(r"The page: (http://127\.0\.0\.1:\d+)/\?token=(\S+)")


@contextmanager
def running(*words: object) -> Iterator[tuple[str, str]]:
    """The command; its address and its token."""
    line = [sys.executable, "-m", "inbounds", "studio", *map(str, words), "--no-browser"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            told = next(match for said in server.stdout if (match := READY.search(said)))
            yield told[1], told[2]
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(10)


def test_the_page_is_ready_soon_and_without_torch(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    before = os.times()
    with (
        running(root, "--classes", "background,LV") as (address, token),
        httpx.Client(base_url=address) as client,
    ):
        assert client.get("/api/project").status_code == 401
        assert client.get("/", params={"token": token}).status_code == 303
        assert client.get("/api/project").json()["folder"] == str(tmp_path / "scans-studio")
    after = os.times()
    # Of the processor's time: other programs may be in the way.
    assert after.children_user + after.children_system - before.children_user - before.children_system < 2
    look = "import sys; import inbounds.studio.serve, inbounds.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0


def test_two_servers_on_one_project_are_refused(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    project = Project(tmp_path / "scans-studio", root, CLASSES)
    line = [sys.executable, "-m", "inbounds", "studio", str(root), "--no-browser"]
    outcome = subprocess.run(line, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert re.search(r"in use by process \d+ on .+ since 2\d{3}-", outcome.stderr)
    project.close()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "there is no such folder"),
        (["empty"], "no scans found"),
        (["scans", "--project", "scans/inside"], "nothing is written"),
        (["scans", "--classes", "background"], "at least one class"),
        (["scans", "--classes", "background,LV,lv"], "twice"),
    ],
)
def test_what_cannot_be_served(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scans(tmp_path / "scans")
    (tmp_path / "empty").mkdir()
    outcome = command("studio", *words, "--no-browser")
    assert outcome.code == 2
    assert sentence in outcome.err


def test_nothing_is_written_among_the_scans(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    before = sorted(root.rglob("*"))
    Project(tmp_path / "scans-studio", root, CLASSES).close()
    assert sorted(root.rglob("*")) == before
