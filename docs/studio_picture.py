"""The picture of the studio in README and manual: `python docs/studio_picture.py` draws it anew, in a few minutes.

Generated hearts, five clicks on every third slice, rough sizes, and a short training, all through the studio's own
page and server. It needs playwright and a Chromium.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

OUT = Path(__file__).with_name("studio.png")
CLASSES = ("background", "RV", "MYO", "LV")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main(minutes: float = 3) -> None:
    """Label, train, look, and take the picture."""
    with tempfile.TemporaryDirectory() as place:
        hearts, inbounds = Path(place) / "hearts", (sys.executable, "-m", "inbounds")
        subprocess.run([*inbounds, "example", str(hearts), "--patients", "20", "--side", "96"], check=True)
        options = ("--classes", ",".join(CLASSES), "--no-browser", "--port", "0")
        server = subprocess.Popen(
            [*inbounds, "studio", str(hearts / "scans"), *options], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            url = next(word for line in server.stdout for word in line.split() if "token=" in word)
            with sync_playwright() as started:
                path = next(found for name in BROWSERS if (found := shutil.which(name)))
                browser = started.chromium.launch(executable_path=path, headless=True)
                page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
                page.goto(url)
                page.locator("dialog input[name=who]").fill("Ana")
                page.locator("dialog button.main").click()
                label(page, hearts)
                train(page, minutes)
                look(page)
                page.screenshot(path=OUT)
                browser.close()
        finally:
            server.terminate()
            server.wait()
    print(f"{OUT}: drawn")


def ask(page: Page, path: str, body: Any = None) -> Any:
    """What the server answers."""
    base = page.url.rstrip("/")
    headers = {"Content-Type": "application/json", "Origin": base}
    answer = (
        page.request.post(base + path, data=json.dumps(body), headers=headers)
        if body
        else page.request.get(base + path)
    )
    assert answer.ok, answer.text()
    return answer.json()


def label(page: Page, hearts: Path) -> None:
    """What a person would click and type."""
    scans = {row["name"]: row["id"] for row in ask(page, "/api/project")["scans"]}
    with (hearts / "clicks.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            at = [float(row[axis]) for axis in ("slice", "row", "column")]
            what = {"kind": "stroke", "class": CLASSES.index(row["class"]), "plane": 0, "points": [at], "radius": 2}
            ask(page, "/api/actions", {"who": "Ana", "scan": scans[row["case"]], **what})
    with (hearts / "sizes.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            size = float(row["size_px"] or 0)
            if size > 0:
                about = {"low": 0.85 * size, "high": 1.15 * size, "unit": "px"}
                what = {
                    "kind": "fact",
                    "class": CLASSES.index(row["class"]),
                    "slice": int(row["slice"]),
                    "present": True,
                }
                ask(page, "/api/actions", {"who": "Ana", "scan": scans[row["case"]], **what, "size": about})


def train(page: Page, minutes: float) -> None:
    """One button, and wait."""
    ask(page, "/api/train", {"who": "Ana", "minutes": minutes})
    while (training := ask(page, "/api/project")["training"])["state"] not in ("done", "failed", "stopped"):
        print(training["sentence"], flush=True)
        time.sleep(5)
    assert training["state"] == "done", training["sentence"]


def look(page: Page) -> None:
    """Review, with a stroke in hand."""
    page.reload()
    page.locator("[data-tab=review]").click()
    page.locator(".list button").nth(3).click()
    time.sleep(2)
    page.locator("[data-class='3']").click()
    box = page.locator("canvas[data-view='0']").bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 0.5 * box["height"])
    time.sleep(1)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
