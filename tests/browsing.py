"""A studio in a process of its own, and a real browser in front of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)

BRIGHT = """view => {
  const { viewport } = studio.work.views[view];
  const canvas = viewport.canvas, { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  let [x, y, found] = [0, 0, 0];
  for (let at = 0; at < width * height; at += 1) {
    if (pixels[4 * at] > 250 && pixels[4 * at + 2] > 250) { x += at % width; y += Math.floor(at / width); found += 1; }
  }
  if (found < 20) return null;
  const box = canvas.getBoundingClientRect();
  const [across, down] = [(x / found + 0.5) / width, (y / found + 0.5) / height];
  const voxels = found / (viewport.scale.x * viewport.scale.y);
  return { across, down, voxels, x: box.left + across * box.width, y: box.top + down * box.height };
}"""
"""Where the bright part of a picture lies on the screen: in pixels of the page, in shares, and of how many voxels."""

SETTLED = """() => { const w = studio.work; return w && w.open_ && !w.gesture && w.wait.hidden
  && w.views.every(v => v.viewport.shown.image && v.shown === w.at(w.order[v.place]) && !v.viewport.asked); }"""
UNSETTLED = """() => {
  const w = studio.work, views = w.views.map(v => [v.shown, w.open_ && w.at(w.order[v.place]), v.viewport.asked]);
  const said = document.getElementById("toasts").textContent;
  return JSON.stringify({ gesture: Boolean(w.gesture), waiting: !w.wait.hidden && w.wait.textContent, views, said });
}"""

PLACE = """([view, y, x]) => {
  const { viewport } = studio.work.views[view];
  const { canvas } = viewport, box = canvas.getBoundingClientRect(), at = viewport.toCanvas(x, y);
  return [box.left + at.x * box.width / canvas.width, box.top + at.y * box.height / canvas.height];
}"""


@contextmanager
def studio(scans: Path, *options: str) -> Iterator[Studio]:
    """The studio on a folder of scans."""
    server = Studio(scans, *options)
    try:
        yield server
    finally:
        server.kill()


class Studio:
    """A server, begun by the command that people type."""

    def __init__(self, scans: Path, *options: str) -> None:
        command = [sys.executable, "-m", "inbounds", "studio", str(scans), "--no-browser", "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "token=" in line:
                self.url = next(word for word in line.split() if "token=" in word)
                return
        raise AssertionError("".join(said))

    def kill(self) -> None:
        """End it as the power going off would."""
        self.process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window; skipped where there is none, except in CI, which brings one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("CI must bring Chromium")
        pytest.skip("needs a Chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, headless=True)
        yield opened
        opened.close()


def open_page(browser: Any, url: str, who: str = "Ana", width: int = 1280, height: int = 800, **device: Any) -> Any:
    """A tab of a person's own browser, on the studio; its errors fail the test."""
    context = browser.new_context(viewport={"width": width, "height": height}, **device)
    page = context.new_page()
    page.errors, page.refused = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on(
        "requestfailed", lambda request: page.errors.append(request.url) if "127.0.0.1" not in request.url else None
    )
    page.on(
        "response",
        lambda answer: page.refused.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None,
    )
    page.goto(url)
    page.locator("dialog input[name=who]").fill(who)
    page.locator("dialog button.main").click()
    return page


def label(page: Any, scan: int | str) -> None:
    """Open a scan to label it; back when its slices are on the screen."""
    number = (
        scan
        if isinstance(scan, int)
        else page.evaluate(f"studio.state.project.scans.find(r => r.name === {json.dumps(scan)}).id")
    )
    if page.locator("[data-tab=label]").get_attribute("aria-selected") != "true":
        page.locator("[data-tab=label]").click()
    page.evaluate(f"studio.work.open({number})")
    settled(page)


def settled(page: Any) -> None:
    """Wait until what is on the screen is what was asked for."""
    try:
        page.wait_for_function(SETTLED, timeout=15_000)
    except Exception as error:
        raise AssertionError(page.evaluate(UNSETTLED), page.errors, page.refused) from error


def pick(page: Any, tool: str, klass: int) -> None:
    """Take a tool and a class in hand, by their buttons."""
    page.locator(f"[data-tool={tool}]").click()
    page.locator(f"[data-class='{klass}']").click()


def on_screen(page: Any, view: int, row: float, column: float) -> tuple[float, float]:
    """Where a place of a shown plane lies on the page."""
    found = page.evaluate(PLACE, [view, row, column])
    return found[0], found[1]


def api(page: Any, path: str, body: dict[str, Any] | None = None) -> Any:
    """Ask the server as the page does."""
    asked = (
        page.request.get(path)
        if body is None
        else page.request.post(
            path, data=json.dumps(body), headers={"Content-Type": "application/json", "Origin": path.split("/api")[0]}
        )
    )
    assert asked.ok, asked.text()
    return asked.json()


def until(true: Any, seconds: float = 20) -> Any:
    """Wait until something holds, and give it back."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come about")
