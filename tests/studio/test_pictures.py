"""Pictures of scans and labels, as the page gets them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from studios import about, click, ids, labels, opened, scans, volume, write_scan


def test_pictures_come_in_display_order(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        told = about(client, number)
        low, high = told["window"]
        voxels = volume(0).astype(np.float64)
        gray = np.clip((voxels - low) / (high - low) * 255, 0, 255)
        axial = told["planes"][0]
        assert (axial["name"], axial["flip"]) == ("axial", {"through": False, "down": False, "across": False})
        for plane in told["planes"]:
            answer = client.get(f"/api/scans/{number}/image/{plane['through']}/2")
            seen = np.frombuffer(answer.content, np.uint8).reshape(plane["rows"], plane["columns"]).astype(float)
            wanted = gray.take(2, axis=plane["through"])
            wanted = wanted if plane["down"] < plane["across"] else wanted.T
            steps = [-1 if plane["flip"][name] else 1 for name in ("down", "across")]
            assert np.abs(seen - wanted[:: steps[0], :: steps[1]]).max() <= 1
        again = client.get(f"/api/scans/{number}/image/2/2", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_what_is_clicked_on_the_screen_is_the_voxel_that_is_labelled(tmp_path: Path) -> None:
    """Turned files: the brightest pixel of each plane is clicked, and the brightest voxel of that slice is labelled."""
    affine = np.array([[0, 0, 5.0, 0], [1.5, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 0, 1]])
    write_scan(tmp_path / "scans" / "turned.nii", volume(3), affine)
    with opened(tmp_path / "scans") as client:
        number = ids(client)["turned"]
        for plane in about(client, number)["planes"]:
            n = 3
            picture = volume(3).take(n, axis=plane["through"])
            place = [0.0, 0.0, 0.0]
            answer = client.get(f"/api/scans/{number}/image/{plane['through']}/{n}").content
            seen = np.frombuffer(answer, np.uint8).reshape(plane["rows"], plane["columns"])
            y, x = np.argwhere(seen == seen.max())[0]
            place[plane["through"]] = n
            place[plane["down"]] = float(plane["rows"] - 1 - y if plane["flip"]["down"] else y)
            place[plane["across"]] = float(plane["columns"] - 1 - x if plane["flip"]["across"] else x)
            click(client, number, place, plane=plane["through"])
            drawn = labels(client, number, n, plane["through"])
            assert drawn[y, x] == 1
            assert volume(3)[tuple(int(part) for part in place)] >= np.percentile(volume(3), 99)
            assert picture.size == seen.size


def test_thumbnails_are_png(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["one"]
        answer = client.get(f"/api/scans/{number}/thumbnail")
        assert answer.headers["content-type"] == "image/png"
        picture = Image.open(BytesIO(answer.content))
        assert picture.size == (96, round(96 * 24 * 1.5 / (20 * 2)))
        (made,) = (tmp_path / "scans-studio" / "thumbs").glob("*.png")
        made.write_bytes(b"kept")
        assert client.get(f"/api/scans/{number}/thumbnail").content == b"kept"
        made.unlink()
        assert client.get(f"/api/scans/{number}/thumbnail").content == answer.content
