"""Files of other programs: what they say lands on the right voxels, or nothing of them does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest

from studios import SHAPE, SPACING, Page, about, act, click, ids, labels, opened, row, scans, volume, write_scan

AFFINE = np.array([[0, 0.5, 5.0, -30], [-1.5, 0, 0.2, 12], [0.1, 2.0, 0, 7], [0, 0, 0, 1]])


def send(client: Page, name: str, content: bytes | str, status: int = 200, **fields: Any) -> dict[str, Any]:
    body = content.encode() if isinstance(content, str) else content
    answer = client.post("/api/import", files={"file": (name, body)}, data={"who": "Ana", **fields})
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def markups(points: dict[str, tuple[float, float, float]], system: str = "LPS") -> str:
    listed = [{"label": name, "position": place, "positionStatus": "defined"} for name, place in points.items()]
    listed.append({"label": "LV-99", "position": [0, 0, 0], "positionStatus": "undefined"})
    return json.dumps({"markups": [{"type": "Fiducial", "coordinateSystem": system, "controlPoints": listed}]})


def ras(number: float, line: float, column: float) -> tuple[float, float, float]:
    x, y, z, _ = AFFINE @ [column, line, number, 1]
    return float(x), float(y), float(z)


@pytest.mark.parametrize("form", ["LPS", "RAS", "fcsv", "old fcsv"])
def test_points_of_slicer_land_on_their_voxels(form: str, tmp_path: Path) -> None:
    root = tmp_path / "scans"
    write_scan(root / "turned.nii", volume(), AFFINE)
    points = {"LV-1": ras(2, 5, 7), "RV": ras(3.3, 20.4, 0), "background 2": ras(0, 0, 19)}
    flip = 1 if form in ("RAS", "old fcsv") else -1
    given = {name: (flip * x, flip * y, z) for name, (x, y, z) in points.items()}
    with opened(root) as client:
        if "fcsv" in form:
            system = "0" if form == "old fcsv" else "LPS"
            lines = [f"# Markups fiducial file version = 4.11\n# CoordinateSystem = {system}"]
            lines.append("# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID")
            lines += [f"n,{x},{y},{z},0,0,0,1,1,1,0,{name},," for name, (x, y, z) in given.items()]
            told = send(client, "turned.fcsv", "\n".join(lines))
        else:
            told = send(client, "turned.mrk.json", markups(given, form))
        assert told["sentence"] == "3 points on turned"
        made = client.studio.project.labels(ids(client)["turned"]).array
        assert {tuple(at): int(made[tuple(at)]) for at in np.argwhere(made != 255).tolist()} == {
            (2, 5, 7): 1,
            (3, 20, 0): 2,
            (0, 0, 19): 0,
        }
        client.post("/api/undo", json={"who": "Ana"})
        assert row(client, "turned")["labelled"] == 0


def test_points_that_do_not_fit_are_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    far = (900.0, 0.0, 0.0)
    with opened(root) as client:
        here = {"LV": (4.0, 3.0, 8.0)}
        assert "outside one" in send(client, "one.mrk.json", markups(here | {"RV": far}), 400)["error"]
        assert "called after no class" in send(client, "one.mrk.json", markups({"F-1": here["LV"]}), 400)["error"]
        assert "no scan is called so" in send(client, "else.mrk.json", markups(here), 400)["error"]
        assert "neither LPS nor RAS" in send(client, "one.mrk.json", markups(here, "IJK"), 400)["error"]
        for content in ("{", "[]", '{"markups": [{"controlPoints": [{"position": [1, 2]}]}]}', '{"markups": 3}'):
            assert "not a file of points" in send(client, "one.mrk.json", content, 400)["error"]
        assert "there is no point" in send(client, "one.mrk.json", '{"markups": []}', 400)["error"]
        assert row(client, "one")["labelled"] == 0
        number = ids(client)["one"]
        send(client, "anything.mrk.json", markups({"F-1": here["LV"]}), scan=number, **{"class": 2})
        assert row(client, "one")["labelled"] == 1


def test_painted_masks_are_mapped_value_by_value(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    painted = np.zeros(SHAPE, np.uint8)
    painted[2, 3:9, 4:12], painted[4, 0, 0], painted[5, 1, 1] = 1, 4, 7
    image = nib.Nifti1Image(painted.T, np.diag([-SPACING[2], -SPACING[1], SPACING[0], 1.0]))
    content = image.to_bytes()
    with opened(root) as client:
        number = ids(client)["one"]
        click(client, number, (2, 0, 0), 2)
        assert "stands for no class" in send(client, "one-seg.nii", content, 400)["error"]
        assert "no class 9" in send(client, "one-seg.nii", content, 400, values='{"4": 9}')["error"]
        assert "no mapping" in send(client, "one-seg.nii", content, 400, values="[1]")["error"]
        told = send(client, "one-seg.nii", content, values='{"1": 1, "4": 0, "7": null}')
        assert told["sentence"] == "49 painted voxels on one"
        client.post("/api/undo", json={"who": "Ana"})
        told = send(client, "one-seg.nii", content, values='{"1": 1, "4": 0}')
        assert told["sentence"] == "49 painted voxels on one; the values 7 label nothing"
        assert (labels(client, number, 2)[3:9, 4:12] == 1).all()
        assert labels(client, number, 2)[0, 0] == 2  # what was there stays
        assert labels(client, number, 4)[0, 0] == 0
        assert labels(client, number, 5)[1, 1] == 255
        client.post("/api/undo", json={"who": "Ana"})
        assert row(client, "one")["labelled"] == 1


def test_a_mask_of_another_scan_is_refused(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans", ("one",))
    moved = nib.Nifti1Image(np.ones(SHAPE, np.uint8).T, np.diag([2.0, 1.5, 8.0, 1.0]))
    small = nib.Nifti1Image(np.ones((3, 4, 5), np.uint8).T, np.eye(4))
    with opened(root) as client:
        assert "mm away" in send(client, "one.nii", moved.to_bytes(), 400)["error"]
        error = send(client, "one.nii", small.to_bytes(), 400)["error"]
        assert "shape" in error
        assert "/tmp" not in error.split("differs")[0]
        assert "not known by its name" in send(client, "one.exe", b"MZ", 400)["error"]
        assert send(client, "one.nii", b"nonsense", 400)["error"]


def test_tables_of_clicks_and_facts(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans")) as client:
        told = send(
            client, "clicks.csv", "case,slice,row,column,class\none,1,2,3,LV\ntwo,0,0,0,background\none,1,2,4,RV\n"
        )
        assert told["sentence"] == "3 clicks on 2 scans"
        assert labels(client, ids(client)["one"], 1)[2, 3:5].tolist() == [1, 2]
        told = send(
            client,
            "facts.csv",
            "case;slice;class;present;size_px;volume_ml\none;1;LV;;30-40;\none;;RV;;;1,5\ntwo;3;LV;0;;\n",
        )
        assert told["sentence"] == "3 facts on 2 scans"
        facts = {(one["slice"], one["class"]): one for one in about(client, ids(client)["one"])["facts"]}
        assert facts[1, 1]["size"] == {"low": 30.0, "high": 40.0, "unit": "px"}
        assert facts[None, 2]["size"] == {"low": 1.5, "high": 1.5, "unit": "ml"}
        client.post("/api/undo", json={"who": "Ana"})
        assert row(client, "two")["facts"] == 0  # all of a table is one action
        assert row(client, "one")["facts"] == 0
        for name, content, sentence in (
            ("clicks.csv", "case,slice,row,column,class\none,1,2,3,LV\none,9,0,0,LV\n", "line 3: slice 9 of one"),
            (
                "clicks.csv",
                "case,slice,row,column,class\none,1,2,99,LV\n",
                "line 2: (slice, row, column) 1, 2, 99",
            ),
            ("clicks.csv", "case,slice,row,column,class\nfour,1,2,3,LV\n", "no case 'four'"),
            ("facts.csv", "case,slice,class,size_px\none,1,LV,99999\n", "more than there are"),
            ("facts.csv", "case,slice,class,size_px\none,1,LV,\n", "no line says"),
            ("notes.csv", "hello,there\n1,2\n", "there is no column"),
        ):
            error = send(client, name, content, 400)["error"]
            assert sentence in error, error
            assert str(tmp_path) not in error
        assert row(client, "one")["labelled"] == 2


def test_uploads_are_named_by_their_last_part_only(tmp_path: Path) -> None:
    with opened(scans(tmp_path / "scans", ("one",))) as client:
        content = "case,slice,row,column,class\none,1,2,3,LV\n"
        for name in ("../../clicks.csv", "C:\\clicks.csv", "/etc/clicks.csv"):
            assert send(client, name, content)["sentence"] == "1 click on 1 scan"
        send(client, "..", content, 400)
        act(client, "class_delete", value=1, status=409)
        kind = {"content-type": "application/json"}
        assert client.post("/api/import", content=b"{}", headers=kind).status_code == 400
