"""How soon the studio shows what it is asked for: its command and a real browser, on large scans and on many."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scans import MEGABYTE, Shape, hounsfield, write
from benchmarks.timing import Row, row
from inbounds.errors import BadInput
from inbounds.progress import bar

NAMES = ("chromium", "chromium-browser", "google-chrome")
PAUSE = 200
"""Milliseconds between two keys: somebody looks."""
SMALL = (12, 64, 64)
"""Slices, rows and columns of a scan of which there are many."""
PATIENCE = 120_000
WATCH = """() => {
  window.shown = [];
  const [view] = studio.work.views, { viewport } = view, paint = viewport.paint.bind(viewport);
  let pressed = null;
  document.addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
  viewport.paint = () => {
    paint();
    const begun = pressed;
    if (begun === null || view.shown !== studio.work.at(studio.work.order[0])) return;
    pressed = null;
    requestAnimationFrame((now) => window.shown.push(now - begun));
  };
}"""
"""Notes how long after a key the frame with its slice is over."""
PAINTED = """() => { const w = studio.work; return w?.open_ && w.wait.hidden
  && w.views.every((v) => v.viewport.shown.image && !v.viewport.asked); }"""


def measure(folder: Path, shape: Shape, many: int, presses: int) -> list[Row]:
    """From a key to a slice, from opening a scan to its first slice, memory, and opening a project of many scans.

    Args:
        folder: For scans and projects.
        shape: Slices, rows and columns of the large scan.
        many: Scans of the project that is opened.
        presses: Keys in each plane.
    """
    rows = []
    with _browser() as chromium:
        for form in ("nii", "nii.gz"):
            scan = write(hounsfield(shape)[0], folder / form / f"scan.{form}", form)
            _forget(scan)
            with _served(folder / form) as (server, url):
                page = _page(chromium, url)
                begun = time.perf_counter()
                page.locator("[data-tab=label]").click()
                page.wait_for_function(PAINTED, timeout=PATIENCE)
                first = 1000 * (time.perf_counter() - begun)
                pressed = _press(page, presses) if form == "nii" else {}
                rows.append(row("studio", f"first slice, {form}", 1, [first], peak_mb=_peak(server) / MEGABYTE))
                rows += [row("studio", f"key to slice, {plane}", 1, times) for plane, times in pressed.items()]
            shutil.rmtree(folder / form)
        project = folder / "many"
        for number in bar("writing scans")(range(many)):
            write(np.random.default_rng(number).integers(0, 99, SMALL).astype(np.int16), _place(project, number), "nii")
        for name in ("for the first time", "again"):
            begun = time.perf_counter()
            with _served(project) as (server, url):
                ready = 1000 * (time.perf_counter() - begun)
                page = _page(chromium, url)
                page.wait_for_function("(n) => document.querySelectorAll('.scan').length === n", arg=many)
                opened = 1000 * (time.perf_counter() - begun)
                more: dict[str, Any] = {"peak_mb": _peak(server) / MEGABYTE, "images": many}
                rows.append(row("studio", f"opened {name}, command to page", 1, [opened], **more))
                rows.append(row("studio", f"opened {name}, command alone", 1, [ready], images=many))
    return rows


def _place(folder: Path, number: int) -> Path:
    return folder / f"scan{number:04d}.nii"


def _press(page: Any, presses: int) -> dict[str, list[float]]:
    """Step through the three planes, each made the large one; milliseconds of each key."""
    found = {}
    page.evaluate(WATCH)
    for plane in range(3):
        name = page.evaluate("studio.work.plane(studio.work.order[0]).name")
        page.evaluate("window.shown.length = 0")
        for number in range(presses):
            page.keyboard.press("ArrowDown" if number < presses - 5 else "ArrowUp")  # and back at the end
            page.wait_for_timeout(PAUSE)
        found[name] = page.evaluate("window.shown")
        if len(found[name]) < presses:
            raise BadInput(f"{name}: {presses} keys, and {len(found[name])} slices were painted; is the machine busy?")
        page.keyboard.press("Tab" if plane == 0 else "Shift+Tab")
        page.wait_for_function(PAINTED, timeout=PATIENCE)
    return found


@contextmanager
def _browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise BadInput("--sections studio: playwright is not installed; pip install playwright") from None
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        raise BadInput("--sections studio: there is no Chromium; install one, such as by apt-get install chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, headless=True)
        try:
            yield browser
        finally:
            browser.close()


def _page(browser: Any, url: str) -> Any:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(url)
    page.locator("dialog input[name=who]").fill("Ana")
    page.locator("dialog button.main").click()
    return page


@contextmanager
def _served(scans: Path) -> Iterator[tuple[int, str]]:
    """The studio on a folder of scans: the number of its process, and the page's address."""
    words = [sys.executable, "-m", "inbounds", "studio", str(scans), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = next((word for line in server.stdout for word in line.split() if "token=" in word), "")
            if not url:
                raise BadInput(f"{scans}: the studio did not start")
            yield server.pid, url
        finally:
            server.terminate()


def _peak(process: int) -> int:
    """The most memory that a process has had, in bytes; 0 where the system does not say."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.is_file() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _forget(file: Path) -> None:
    """Let the system forget what it has of a file in memory, so that it comes from the disk."""
    if hasattr(os, "posix_fadvise"):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
