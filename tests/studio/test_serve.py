"""`inbounds studio` as it is called."""

from __future__ import annotations

import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from archives import command
from inbounds.errors import BadInput
from inbounds.store.store import Store
from inbounds.studio.project import Project
from inbounds.studio.serve import Address
from studios import CLASSES, scans

READY = re.compile(r"The page: (https?://[\w.]+:\d+)/\?token=(\S+)")


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


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """That of this computer under two of its names, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    line += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.2", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(line, check=True, capture_output=True)
    return files


def test_another_name_with_a_certificate(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    root = scans(tmp_path / "scans", ("one",))
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    words = ["--classes", "background,LV", "--host", "127.0.0.2"]
    words += ["--certificate", str(certificate[0]), "--key", str(certificate[1])]
    with running(root, *words) as (address, token), httpx.Client(base_url=address, verify=trusting) as client:
        assert address.startswith("https://127.0.0.2:")
        assert client.get("/api/project").status_code == 401
        kept = client.get("/", params={"token": token}).headers["set-cookie"].lower()
        assert "secure" in kept
        assert client.get("/api/project").status_code == 200
        body, kind = {"who": "Ana", "kind": "rescan"}, {"origin": address}
        assert client.post("/api/actions", json=body, headers=kind).status_code == 200
        other = {"origin": address.replace("https", "http")}
        assert client.post("/api/actions", json=body, headers=other).status_code == 403
        assert client.get("/api/project", headers={"host": "evil.example"}).status_code == 403
        with pytest.raises(httpx.HTTPError):
            httpx.get(address.replace("https", "http"))


def test_what_is_no_certificate(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    good, key = certificate
    (tmp_path / "noise.pem").write_text("no certificate")
    for address, sentence in (
        (Address("192.0.2.1"), "in clear; give a --certificate"),
        (Address("0.0.0.0", certificate=good, key=key), "the name or the number by which others reach"),
        (Address(key=key), "needs the --certificate"),
        (Address(certificate=tmp_path / "noise.pem"), "no certificate with its key"),
        (Address(certificate=tmp_path / "none.pem"), "No such file"),
        (Address(certificate=good, key=good), "no certificate with its key"),
    ):
        with pytest.raises(BadInput, match=sentence):
            address.check()
    Address("localhost").check()
    Address("localhost", certificate=good, key=key).check()
    with pytest.raises(BadInput, match="nobody knows this name"):
        Address("no-such-name.invalid", certificate=good).listen()
    with pytest.raises(BadInput, match="cannot be used"):
        Address("192.0.2.1", certificate=good).listen()


def test_a_store_is_opened_like_its_scans(tmp_path: Path, hearts: Store) -> None:
    shutil.copytree(hearts.path, tmp_path / "store")
    with (
        running(tmp_path / "store", "--classes", "background,LV") as (address, token),
        httpx.Client(base_url=address) as client,
    ):
        client.get("/", params={"token": token})
        project = client.get("/api/project").json()
        assert project["name"] == "store"
        assert [row["name"] for row in project["scans"]] == sorted(record.name for record in hearts.records)
    assert not (tmp_path / "store" / "project.sqlite").exists()


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
