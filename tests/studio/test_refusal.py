"""Who looks at the browser and not at the terminal is told why there is no studio."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

from inbounds.studio.refusal import PATIENCE
from studios import newer, refused


def test_a_newer_project_is_told_in_the_browser(tmp_path: Path) -> None:
    with refused(newer(tmp_path), tmp_path / "address") as (address, process):
        assert httpx.get(address.split("?")[0]).status_code == 401
        with httpx.Client(follow_redirects=True) as client:
            page = client.get(address)
            assert page.status_code == 200
            assert "made by a newer version of inbounds" in page.text
            assert "default-src 'self'" in page.headers["content-security-policy"]
            base = str(page.url)
            assert "--ground" in client.get(f"{base}page/style.css").text
            assert client.get(f"{base}page/../door.py").status_code == 404
            assert client.get(f"{base}api/project").status_code == 404
        process.wait(20)
        assert process.returncode == 2
        assert process.stderr is not None
        assert "made by a newer version" in process.stderr.read()


def test_without_a_browser_the_command_ends_at_once(tmp_path: Path) -> None:
    root = newer(tmp_path)
    nowhere = os.environ | {"BROWSER": "no-such-browser", "PATH": str(tmp_path)}
    begun = time.monotonic()
    line = [sys.executable, "-m", "inbounds", "studio", str(root)]
    outcome = subprocess.run(line, capture_output=True, text=True, env=nowhere, check=False)
    assert outcome.returncode == 2
    assert "made by a newer version" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert time.monotonic() - begun < PATIENCE
