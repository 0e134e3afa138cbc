"""The studio as people meet it: a real browser, real mouse and keys, and what they leave on the disk."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.scans import write
from browsing import BRIGHT, SETTLED, UNSETTLED, api, browser, label, on_screen, open_page, pick, settled, studio, until
from inbounds.scans.scan import read, write_mask
from inbounds.studio.preview import Newest, write_newest
from studios import SHAPE, TOKEN, newer, opened, refused, scans

nibabel = pytest.importorskip("nibabel")
pytestmark = pytest.mark.plain  # a process of its own: nothing of it would be checked
__all__ = ["browser"]

CORNER = np.array([2, 2, 2])
"""So many voxels from the patient's right, front and head lies the bright cross."""
FORMATS = ("mha", "nrrd", "dicom", "png")
LOOK = f"""async ([voxel, soFar]) => {{
  const settled = {SETTLED}, bright = {BRIGHT};
  const there = (view, place) => (!voxel || view.shown === voxel[place])
    && view.viewport.zoom >= (soFar.zoom ?? 0) && studio.work.open_.sequence >= (soFar.done ?? 0);
  for (const end = performance.now() + 15000; !(settled() && studio.work.views.every(there));) {{
    if (performance.now() > end) return ({UNSETTLED})();
    await new Promise((resolve) => setTimeout(resolve, 4));
  }}
  return studio.work.views.map(({{ box, shown }}, place) => {{
    const area = box.getBoundingClientRect(), words = [...box.querySelectorAll(".word")].map((word) => word.innerText);
    return {{ slice: shown, middle: [area.left + area.width / 2, area.top + area.height / 2], bright: bright(place),
      letters: words.slice(0, 4), plane: words[4].split(" ")[0], done: studio.work.open_.sequence }};
  }});
}}"""
SIDES = {"axial": "RLAP", "coronal": "RLSI", "sagittal": "APSI"}


def turned(axes: tuple[int, ...], flips: tuple[int, ...], path: Path) -> tuple[int, int, int]:
    """Write a scan whose axes lie so in the body, with one bright cross; return its middle as slice, row, column.

    Each plane shows five voxels of it in the slice through its middle, and one in those beside it.
    """
    shape, spacing = np.array([11, 9, 7]), np.array([1.0, 1.0, 5.0])  # of columns, rows, slices
    affine = np.eye(4)
    affine[:3, :3] = 0
    voxel = np.zeros(3, dtype=int)
    towards_corner = (1, 1, 1)  # right, anterior, superior
    for axis, (body, flip) in enumerate(zip(axes, flips, strict=True)):
        affine[body, axis] = flip * spacing[axis]
        voxel[axis] = shape[axis] - 1 - CORNER[axis] if flip == towards_corner[body] else CORNER[axis]
    image = np.random.default_rng(0).integers(0, 60, shape).astype(np.int16)
    for step in (np.zeros(3, dtype=int), *np.eye(3, dtype=int), *-np.eye(3, dtype=int)):
        image[tuple(voxel + step)] = 1000
    nibabel.Nifti1Image(image, affine).to_filename(path)
    column, row, at = (int(each) for each in voxel)
    return at, row, column


@pytest.fixture(scope="module")
def all_ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, dict[str, tuple[int, int, int]]]]:
    """A studio on scans that lie in all 48 ways along the axes of the body."""
    folder = tmp_path_factory.mktemp("ways") / "scans"
    folder.mkdir()
    there = {}
    for axes, flips in product(permutations(range(3)), product((1, -1), repeat=3)):
        name = "".join("RAS"[axis] if flip > 0 else "LPI"[axis] for axis, flip in zip(axes, flips, strict=True))
        there[name] = turned(axes, flips, folder / f"{name}.nii.gz")
    with studio(folder, "--classes", "background,spot") as server:
        yield server, there


def test_a_click_on_a_bright_voxel_labels_that_voxel_however_the_scan_lies(browser: Any, all_ways: Any) -> None:
    server, there = all_ways
    page = open_page(browser, server.url, width=1090, height=460)  # small, so that it is painted quickly
    page.locator("[data-tab=label]").click()
    page.evaluate("studio.work.views.forEach((view) => { view.viewport.look.smooth = false; })")  # voxels are counted
    assert len(there) == 48
    pick(page, "point", 1)
    for name, voxel in there.items():
        label(page, name)
        find_and_click(page, voxel)
    export = api(page, server.url.split("/?")[0] + "/api/export", {"who": "Ana"})
    with (Path(export["folder"]) / "clicks.csv").open(encoding="utf-8") as stream:
        rows = [
            (row["case"], (int(row["slice"]), int(row["row"]), int(row["column"]))) for row in csv.DictReader(stream)
        ]
    assert sorted(rows) == sorted(there.items())
    assert page.errors == []


def find_and_click(page: Any, voxel: tuple[int, int, int]) -> None:
    """In each plane go to the slice of the file, zoom in on the bright cross, and click on its middle.

    What lies on which side is looked at as well, and that each click is one action.
    """
    for view, number in zip(look(page), voxel, strict=True):
        page.mouse.move(view["middle"][0], view["middle"][1])
        page.mouse.wheel(0, 100 * (number - view["slice"]))
    page.keyboard.down("Control")
    for view in look(page, voxel):
        assert "".join(view["letters"]) == SIDES[view["plane"]]
        assert view["bright"]["voxels"] > 2
        # Right, front and head are where the voxel is; on the screen they are left, left and top.
        assert view["bright"]["across"] < 0.5
        assert view["bright"]["down"] < 0.5
        page.mouse.move(view["bright"]["x"], view["bright"]["y"])
        page.mouse.wheel(0, -150)
    page.keyboard.up("Control")
    for place, view in enumerate(look(page, voxel, zoom=1.6)):
        page.mouse.click(view["bright"]["x"], view["bright"]["y"])
        look(page, voxel, done=view["done"] + place + 1)


def look(page: Any, voxel: tuple[int, int, int] | None = None, **so_far: float) -> list[dict[str, Any]]:
    """What the three planes show, once they show this voxel, so large, after so many actions, and all is painted."""
    found = page.evaluate(LOOK, [voxel, so_far])
    assert isinstance(found, list), found
    return found


@pytest.fixture
def hearts(tmp_path: Path) -> Path:
    """Some generated hearts, and one file that is no scan."""
    from inbounds.cli import app

    app(["example", str(tmp_path / "hearts"), "--patients", "4", "--side", "48"], standalone_mode=False)
    folder = tmp_path / "hearts" / "scans"
    (folder / "broken.nii.gz").write_bytes(b"this is no scan, whatever its name says")
    return folder


def drag(page: Any, *places: tuple[float, float], button: str = "left") -> None:
    page.mouse.move(*places[0])
    page.mouse.down(button=button)
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up(button=button)
    settled(page)


def labelled(page: Any) -> dict[int, int]:
    """How many pixels of the large slice have which label, as the page shows it."""
    values = page.evaluate("Array.from(studio.work.views[0].viewport.shown.labels ?? [])")
    found, counts = np.unique([value for value in values if value != 255], return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def test_what_a_person_does_is_kept_shared_and_undone(browser: Any, hearts: Path) -> None:
    with studio(hearts, "--classes", "background,RV,MYO,LV") as server:
        page = open_page(browser, server.url)
        assert page.locator(".scan.broken").count() == 1
        assert "broken" in page.locator(".scan.broken .name").inner_text()
        page.locator(".scan:not(.broken)").first.click()
        settled(page)

        # A stroke with the mouse, background with another, one voxel erased.
        middle, above = on_screen(page, 0, 24, 24), on_screen(page, 0, 6, 24)
        pick(page, "brush", 3)
        drag(page, middle, on_screen(page, 0, 27, 26))
        page.keyboard.press("0")
        drag(page, on_screen(page, 0, 6, 6), above)
        settled(page)
        counts = labelled(page)
        assert set(counts) == {0, 3}
        assert counts[0] >= 18
        pick(page, "eraser", 3)
        page.mouse.click(*above)
        until(lambda: labelled(page)[0] < counts[0])
        page.keyboard.press("Control+z")
        until(lambda: labelled(page) == counts)
        page.keyboard.press("Control+Shift+z")
        until(lambda: labelled(page)[0] < counts[0])

        # The wheel changes the slice, the right button brightness, and neither labels anything.
        before = page.locator(".view.large").get_attribute("data-slice")
        page.mouse.wheel(0, 40)
        until(lambda: page.locator(".view.large").get_attribute("data-slice") != before)
        settled(page)
        drag(page, middle, above, button="right")
        assert page.evaluate("studio.work.level[0] !== 0 || studio.work.level[1] !== 255")
        assert labelled(page) == {}

        # A second person in a second tab sees it, and neither overwrites the other.
        other = open_page(browser, server.url, "Ben")
        label(other, page.evaluate("studio.state.scan"))
        other.keyboard.press("1")
        pick(other, "point", 1)
        other.mouse.click(*on_screen(other, 0, 30, 10))
        settled(other)
        page.mouse.wheel(0, -40)
        settled(page)
        until(lambda: labelled(page).get(1) == 1)
        assert labelled(page)[3] == counts[3]
        assert labelled(other) == labelled(page)
        assert other.errors == []

        assert page.errors == []
        kept, scan = labelled(page), page.evaluate("studio.state.scan")

    # The power goes off; all of it is there afterwards, undo as well.
    with studio(hearts) as server:
        page = open_page(browser, server.url)
        label(page, scan)
        assert labelled(page) == kept
        page.keyboard.press("Control+z")
        until(lambda: labelled(page)[0] == counts[0])
        assert page.errors == []


def test_everything_goes_by_keyboard(browser: Any, hearts: Path) -> None:
    with studio(hearts, "--classes", "background,RV,MYO,LV") as server:
        page = open_page(browser, server.url)
        page.keyboard.press("F2")
        settled(page)
        for key in ("p", "3", "Alt+ArrowRight", "Alt+ArrowDown", "Enter"):
            page.keyboard.press(key)
            settled(page)
        assert labelled(page) == {3: 1}
        start = int(page.locator(".view.large").get_attribute("data-slice"))

        # An area in this slice, copied to the neighbours; absent in three others at once; a volume.
        page.keyboard.press("s")
        page.keyboard.type("300")
        page.keyboard.press("Enter")
        facts = until(lambda: page.evaluate("studio.work.open_.facts"))
        assert [(fact["slice"], fact["class"], fact["size"]["unit"]) for fact in facts] == [(start, 3, "mm2")]
        assert facts[0]["size"]["low"] == pytest.approx(255)
        page.keyboard.press("c")
        until(lambda: len(page.evaluate("studio.work.open_.facts")) == 3)
        for key in ("Shift+ArrowDown", "Shift+ArrowDown", "c"):  # and to those that are chosen from here on
            page.keyboard.press(key)
        facts = until(lambda: (f := page.evaluate("studio.work.open_.facts"), len(f) == 4 and f)[1])
        assert sorted(fact["slice"] for fact in facts) == [start - 1, start, start + 1, start + 2]
        page.keyboard.press("Control+z")
        until(lambda: len(page.evaluate("studio.work.open_.facts")) == 3)
        page.keyboard.press("Home")
        page.keyboard.press("Shift+ArrowDown")
        page.keyboard.press("n")
        absent = until(lambda: [f for f in page.evaluate("studio.work.open_.facts") if f["present"] is False])
        assert sorted(fact["slice"] for fact in absent) == [0, 1]
        page.keyboard.press("v")
        page.keyboard.type("60")
        page.keyboard.press("Enter")
        until(lambda: any(fact["slice"] is None for fact in page.evaluate("studio.work.open_.facts")))

        # What cannot be is refused in words, and nothing changes.
        page.keyboard.press("s")
        page.keyboard.type("9999999")
        page.keyboard.press("Enter")
        page.locator(".toast.bad", has_text="LV").wait_for()
        assert len(page.evaluate("studio.work.open_.facts")) == 6
        page.keyboard.press("F1")
        page.locator("[aria-label='delete LV']").click()
        page.locator(".toast.bad", has_text="LV has labels or facts; remove them").wait_for()
        assert page.evaluate("studio.state.project.classes.length") == 3
        page.keyboard.press("?")
        assert page.locator("dialog h2").inner_text() == "Keys and tools"
        assert page.errors == []


def test_a_size_is_drawn_as_an_ellipse_and_a_box_makes_background(browser: Any, hearts: Path) -> None:
    with studio(hearts, "--classes", "background,heart") as server:
        page = open_page(browser, server.url)
        page.keyboard.press("F2")
        settled(page)
        pick(page, "ellipse", 1)
        drag(page, on_screen(page, 0, 10, 10), on_screen(page, 0, 30, 40))
        fact = until(lambda: page.evaluate("studio.work.open_.facts"))[0]
        mm = page.evaluate("studio.work.open_.planes[0].mm")
        assert (fact["size"]["low"] + fact["size"]["high"]) / 2 == pytest.approx(
            np.pi / 4 * 20 * 30 * mm["down"] * mm["across"], rel=0.03
        )
        page.keyboard.press("PageDown")
        settled(page)
        pick(page, "box", 1)
        drag(page, on_screen(page, 0, 12, 12), on_screen(page, 0, 35, 35))
        counts = until(lambda: labelled(page))
        assert set(counts) == {0}
        assert counts[0] == pytest.approx(48 * 48 - 24 * 24, abs=100)
        assert page.errors == []


def test_the_page_is_there_before_all_headers_are_read(browser: Any, hearts: Path) -> None:
    with studio(hearts, "--classes", "background,heart") as server:
        context = browser.new_context()
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        answers = []

        def unread(route: Any) -> None:
            answer = route.fetch()
            project = answer.json()
            if not answers:
                for row in project["scans"]:
                    row["shape"] = None
            answers.append(project)
            route.fulfill(response=answer, json=project)

        page.route("**/api/project", unread)
        page.goto(server.url)
        page.locator("dialog input[name=who]").fill("Ana")
        page.keyboard.press("Enter")
        assert page.get_by_text("its header is being read").count() > 0
        page.get_by_text(re.compile("48 . 48")).first.wait_for()
        assert page.get_by_text("its header is being read").count() == 0
        assert len(answers) > 1
        assert errors == []


def test_the_newest_masks_come_while_it_trains(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(scans(tmp_path / "scans", ("one", "two"))) as client:
        trainings = client.studio.trainings
        monkeypatch.setattr(trainings, "_alive", lambda _: True)
        work = trainings.folder / "001"
        work.mkdir(parents=True)
        about = {"number": 1, "sentence": "", "commands": [], "words": [], "left_out": {}, "minutes": 1}
        about |= {"state": "training", "since": time.time()}
        (work / "job.json").write_text(json.dumps(about))
        page = open_page(browser, f"http://127.0.0.1:{client.port}/?token={TOKEN}")
        page.keyboard.press("F3")
        page.get_by_role("heading", name="Training").wait_for()
        assert page.locator(".live canvas").count() == 0
        mask = np.zeros(SHAPE[1:], np.uint8)
        for epoch, value in ((3, 0), (8, 2)):
            mask[4:12, 5:15] = value
            write_newest(work, Newest(epoch, {"one": 2, "two": 3}, {"one": mask, "two": mask}))
            page.get_by_text(f"Newest masks · after epoch {epoch}").wait_for()
            page.locator(f".live canvas[data-coloured={'true' if value else 'false'}]").nth(1).wait_for()
            assert page.locator(".live canvas").count() == 2
        assert page.errors == []


def test_labels_from_elsewhere_come_in_and_what_they_contradict_is_said(browser: Any, tmp_path: Path) -> None:
    painted = np.zeros(SHAPE, np.uint8)
    painted[2, 4:9, 5:11] = 7
    with opened(scans(tmp_path / "scans", ("one", "two"))) as client:
        scan = read(tmp_path / "scans" / "one.nii.gz")
        write_mask(painted, scan, tmp_path / "painted.nii.gz")
        x, y, z, _ = scan.geometry.affine @ [3, 2, 2, 1]  # column, row, slice
        point = {"label": "F-1", "position": [-x, -y, z], "positionStatus": "defined"}
        points = {"markups": [{"coordinateSystem": "LPS", "controlPoints": [point]}]}
        (tmp_path / "points.mrk.json").write_text(json.dumps(points))
        (tmp_path / "notes.csv").write_text("who,what\n")
        page = open_page(browser, f"http://127.0.0.1:{client.port}/?token={TOKEN}")
        page.get_by_role("button", name="Import").click()
        page.locator("dialog input[type=file]").set_input_files(
            [tmp_path / name for name in ("painted.nii.gz", "points.mrk.json", "notes.csv")]
        )
        page.locator("dialog select[name=scan]").select_option(label="one")
        page.locator("dialog select[name=class]").select_option(label="RV")
        page.locator("dialog input[name=value-1]").fill("7")
        page.locator("dialog button.main").click()
        page.locator(".toast", has_text="painted.nii.gz: 30 painted voxels on one").wait_for()
        page.locator(".toast", has_text="points.mrk.json: 1 point on one").wait_for()
        page.locator(".toast.bad", has_text="notes.csv").wait_for()
        label(page, "one")
        page.keyboard.press("Home")
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        page.wait_for_function("() => studio.work.views[0].shown === 2")
        settled(page)
        assert labelled(page) == {1: 30, 2: 1}
        page.keyboard.press("1")
        page.keyboard.press("n")
        page.locator(".toast.bad", has_text="LV is said to be absent, but 30 voxels are labelled as it").wait_for()
        page.locator(".known .warn", has_text="30 voxels are labelled").wait_for()
        assert page.errors == []


def test_masks_of_a_new_training_take_the_place_of_those_on_the_screen(browser: Any, tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans", ("one",))) as client:

        def trained(number: int, value: int) -> None:
            work = client.studio.trainings.folder / f"{number:03d}"
            scan = read(tmp_path / "scans" / "one.nii.gz")
            write_mask(np.full(SHAPE, value, np.uint8), scan, work / "masks" / "one.nii.gz")
            head = "case,class,doubt,volume_ml,size_px,range,edge,pieces,mirrored,runs,note"
            (work / "masks" / "predictions.csv").write_text(f"{head}\none,LV,0.2,{10 * number},2880,0.2,0,0,0,,\n")
            job = {"number": number, "state": "done", "classes": ["background", "LV", "RV"], "values": [0, 1, 2]}
            job |= {"sentence": "", "commands": [], "words": [], "left_out": {}, "stamps": {}, "scans": {"one": []}}
            (work / "job.json").write_text(json.dumps(job))

        trained(1, 1)
        page = open_page(browser, f"http://127.0.0.1:{client.port}/?token={TOKEN}")
        page.keyboard.press("F4")
        settled(page)
        seen = "(value) => studio.work.views[0].viewport.shown.mask?.every((each) => each === value)"
        page.wait_for_function(seen, arg=1)
        trained(2, 2)
        page.wait_for_function(seen, arg=2)
        page.locator(".volumes td", has_text="20").wait_for()
        assert page.errors == []


def test_a_page_without_the_token_gets_nothing(browser: Any, hearts: Path) -> None:
    with studio(hearts, "--classes", "background,heart") as server:
        page = browser.new_context().new_page()
        page.goto(server.url.split("?")[0])
        assert "inbounds studio" not in page.content() or "token" in page.inner_text("body")
        assert page.request.get(server.url.split("?")[0] + "api/project").status == 401


def test_a_newer_project_is_told_in_the_page(browser: Any, tmp_path: Path) -> None:
    with refused(newer(tmp_path), tmp_path / "address") as (address, _):
        page = browser.new_context().new_page()
        page.goto(address)
        assert page.locator("h2").inner_text() == "The studio cannot open this project"
        assert "made by a newer version of inbounds (schema" in page.locator("p.card").inner_text()


def test_a_full_disk_is_told_in_the_page_and_undoes_nothing(browser: Any, tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans", ("one",))) as client:
        page = open_page(browser, f"http://127.0.0.1:{client.port}/?token={TOKEN}")
        page.keyboard.press("F2")
        settled(page)
        pick(page, "brush", 1)
        drag(page, on_screen(page, 0, 5, 5), on_screen(page, 0, 9, 9))
        before = labelled(page)
        database = client.studio.project.database
        database.rows(f"PRAGMA max_page_count={database.rows('PRAGMA page_count')[0][0]}")
        for number in range(40):  # until the last page is full
            drag(page, *(on_screen(page, 0, 2 + (number + step) % 18, 2 + step) for step in range(16)))
            if page.locator(".toast.bad").count():
                break
            before = labelled(page)
        assert "the disk does not take it" in page.locator(".toast.bad").inner_text()
        assert labelled(page) == before
        database.rows("PRAGMA max_page_count=1000000")
        drag(page, on_screen(page, 0, 20, 5), on_screen(page, 0, 20, 9))
        until(lambda: labelled(page) != before)
        assert page.errors == []


def test_a_click_labels_the_voxel_of_any_format(browser: Any, tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 60, (7, 40, 36)).astype(np.int16)
    image[3:6, 8:13, 19:24] = 1000
    folder = tmp_path / "scans"
    folder.mkdir()
    for form in ("mha", "nrrd", "dicom"):
        write(image, folder / (form if form == "dicom" else f"{form}.{form}"), form)
    (folder / "png").mkdir()
    for number, plane in enumerate(image):
        Image.fromarray((plane // 4).astype(np.uint8)).save(folder / "png" / f"{number}.png")
    with studio(folder, "--classes", "background,spot") as server:
        page = open_page(browser, server.url)
        for form in FORMATS:
            label(page, form)
            pick(page, "point", 1)
            page.keyboard.press("Home")
            for _ in range(4):
                page.keyboard.press("ArrowDown")
            page.wait_for_function("() => studio.work.views[0].shown === 4")
            settled(page)
            bright = page.evaluate(BRIGHT, 0)
            page.mouse.click(bright["x"], bright["y"])
            until(lambda: labelled(page) == {1: 1})
        export = api(page, server.url.split("/?")[0] + "/api/export", {"who": "Ana"})
        assert page.errors == []
    with (Path(export["folder"]) / "clicks.csv").open(encoding="utf-8") as stream:
        rows = {row["case"]: (row["slice"], row["row"], row["column"]) for row in csv.DictReader(stream)}
    assert rows == dict.fromkeys(FORMATS, ("4", "10", "21"))


def test_a_pen_draws_and_two_fingers_zoom(browser: Any, hearts: Path) -> None:
    with studio(hearts, "--classes", "background,heart") as server:
        page = open_page(browser, server.url, width=1024, height=768, has_touch=True, device_scale_factor=2)
        page.locator("[data-tab=label]").tap()
        settled(page)
        page.locator("[data-tool=point]").tap()
        hands = page.context.new_cdp_session(page)

        def touch(kind: str, *places: tuple[float, float]) -> None:
            points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
            hands.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        # A finger on a voxel labels it.
        spot = on_screen(page, 0, 20, 24)
        touch("touchStart", spot)
        touch("touchEnd")
        settled(page)
        assert labelled(page) == {1: 1}
        values = page.evaluate("Array.from(studio.work.views[0].viewport.shown.labels)")
        assert divmod(values.index(1), 48) == (20, 24)

        # Two fingers zoom and move, and label nothing, also when one comes after the other.
        x, y = spot
        touch("touchStart", (x - 40, y))
        touch("touchStart", (x - 40, y), (x + 40, y))
        for apart in (60, 80, 100):
            touch("touchMove", (x - apart, y), (x + apart, y))
        touch("touchEnd")
        settled(page)
        assert page.evaluate("studio.work.views[0].viewport.zoom") == pytest.approx(2.5, rel=0.05)
        assert labelled(page) == {1: 1}
        assert on_screen(page, 0, 20, 24) == pytest.approx(spot, abs=12)

        # A pen paints.
        page.locator("[data-tool=brush]").tap()
        line = [on_screen(page, 0, 22, 20), on_screen(page, 0, 22, 26)]
        for kind, place in (("mousePressed", line[0]), ("mouseMoved", line[1]), ("mouseReleased", line[1])):
            pen = {"type": kind, "x": place[0], "y": place[1], "button": "left", "buttons": 1, "clickCount": 1}
            hands.send("Input.dispatchMouseEvent", {**pen, "pointerType": "pen"})
        until(lambda: labelled(page)[1] >= 7)
        values = np.array(page.evaluate("Array.from(studio.work.views[0].viewport.shown.labels)")).reshape(48, 48)
        assert (values[22, 20:27] == 1).all()

        # There is no room for the list of scans, but for a way to the next.
        scan = page.evaluate("studio.state.scan")
        assert not page.locator(".list").is_visible()
        page.get_by_label("next scan").tap()
        until(lambda: page.evaluate("studio.state.scan") != scan)
        settled(page)
        assert page.errors == []
