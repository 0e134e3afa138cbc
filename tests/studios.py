"""A studio on a few small scans, served for real, and a browser that was let in."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import nibabel as nib
import numpy as np
import uvicorn

from inbounds.studio.database import SCHEMA
from inbounds.studio.project import Project
from inbounds.studio.server import create_app
from inbounds.studio.studio import Studio

TOKEN = "let-me-in"
CLASSES = ("background", "LV", "RV")
SHAPE = (6, 24, 20)
SPACING = (8.0, 1.5, 2.0)


def volume(seed: int = 0, shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    """Voxels that are all different, so that each says where it is."""
    return np.random.default_rng(seed).permutation(int(np.prod(shape))).reshape(shape).astype(np.int16)


def write_scan(path: Path, voxels: np.ndarray, affine: np.ndarray | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if affine is None:
        affine = np.diag([-SPACING[2], -SPACING[1], SPACING[0], 1.0])
    nib.Nifti1Image(voxels.T, affine).to_filename(path)
    return path


def scans(folder: Path, names: Sequence[str] = ("one", "two", "three")) -> Path:
    """Plain scans of one size."""
    for seed, name in enumerate(names):
        write_scan(folder / f"{name}.nii.gz", volume(seed))
    return folder


class Page(httpx.Client):
    """A browser that has the cookie."""

    studio: Studio
    port: int


@contextmanager
def opened(root: Path, folder: Path | None = None, classes: Sequence[str] = CLASSES) -> Iterator[Page]:
    """The page's view of a project."""
    project = Project(folder or root.with_name(f"{root.name}-studio"), root, classes)
    studio = Studio(project)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        _, door = create_app(studio, port, TOKEN)
        server = uvicorn.Server(uvicorn.Config(door, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            with Page(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                client.studio, client.port = studio, port
                assert client.get("/", params={"token": TOKEN}).status_code == 303
                yield client
        finally:
            studio.closing = server.should_exit = True
            thread.join()
            studio.trainings.close()
            project.close()


def about(client: Page, scan: int) -> dict[str, Any]:
    """A scan, once its voxels are read."""
    while (answer := client.get(f"/api/scans/{scan}")).status_code == 202:
        assert 0 <= answer.json()["loading"] <= 1
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ids(client: Page) -> dict[str, int]:
    """The scans' numbers by name."""
    return {row["name"]: row["id"] for row in client.get("/api/project").json()["scans"]}


def act(client: Page, kind: str, *, status: int = 200, who: str = "Ana", **content: Any) -> dict[str, Any]:
    """Do something, and see that it goes as expected."""
    answer = client.post("/api/actions", json={"who": who, "kind": kind, **content})
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def click(client: Page, scan: int, place: Sequence[float], klass: int | None = 1, **more: Any) -> dict[str, Any]:
    """Label one voxel, unless a radius makes it a disc."""
    return act(
        client, "stroke", scan=scan, points=[list(place)], radius=more.pop("radius", 0), **more, **{"class": klass}
    )


def labels(client: Page, scan: int, n: int, plane: int = 0) -> np.ndarray:
    """A picture of labels, as the screen shows it."""
    shown = about(client, scan)["planes"][plane]
    answer = client.get(f"/api/scans/{scan}/labels/{plane}/{n}")
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, dtype=np.uint8).reshape(shown["rows"], shown["columns"])


def row(client: Page, name: str) -> dict[str, Any]:
    """A scan in the list."""
    return next(one for one in client.get("/api/project").json()["scans"] if one["name"] == name)


def newer(folder: Path) -> Path:
    """Scans whose project a newer version has made."""
    root = scans(folder / "scans", ("one",))
    Project(folder / "scans-studio", root, CLASSES).close()
    with sqlite3.connect(folder / "scans-studio" / "project.sqlite") as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA + 1}")
    connection.close()
    return root


@contextmanager
def refused(root: Path, file: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command with a browser that writes down where it is sent; the address, and the process."""
    script = file.with_suffix(".sh")
    script.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{file}.part' && mv '{file}.part' '{file}'\n")
    script.chmod(0o755)
    command = [sys.executable, "-m", "inbounds", "studio", str(root)]
    environment = os.environ | {"BROWSER": f"{script} %s"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        until = time.monotonic() + 30
        while not file.is_file() and time.monotonic() < until:
            time.sleep(0.05)
        yield file.read_text(), process
        process.wait(20)
