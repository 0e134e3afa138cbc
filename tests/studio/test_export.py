"""One folder with all that came of a project."""

from __future__ import annotations

import csv
import json
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from PIL import Image

from inbounds.scans.scan import read, read_labels, same_geometry, write_mask
from studios import CLASSES, SHAPE, about, act, click, ids, opened, scans, volume, write_scan


def all_kinds(root: Path) -> Path:
    """Scans of every format, and NIfTI in all 48 orientations."""
    for number, (order, signs) in enumerate(product(permutations(range(3)), product((1, -1), repeat=3))):
        affine = np.eye(4)
        affine[:3, :3] = 0
        for axis in range(3):
            affine[order[axis], axis] = signs[axis] * (1.5 + axis)
        write_scan(root / f"turn{number:02d}.nii", volume(number), affine)
    for name in ("meta.mha", "pair.mhd", "nrrd.nrrd"):
        image = sitk.GetImageFromArray(volume())
        image.SetDirection((0, 0, 1, -1, 0, 0, 0, -1, 0))
        root.mkdir(exist_ok=True)
        sitk.WriteImage(image, str(root / name))
    for number in range(SHAPE[0]):
        (root / "pictures").mkdir(exist_ok=True)
        Image.fromarray((volume()[number] % 251).astype(np.uint8)).save(root / "pictures" / f"{number}.png")
        (root / "dicom").mkdir(exist_ok=True)
        image = sitk.GetImageFromArray(volume()[number][None])
        tags = {"0008|0060": "MR", "0020|000e": "1.2.3", "0020|000d": "1.2", "0020|0032": f"0\\0\\{4 * number}"}
        tags |= {"0020|0037": "1\\0\\0\\0\\1\\0", "0020|0013": str(number), "0008|0018": f"1.2.3.{number}"}
        for tag, value in tags.items():
            image.SetMetaData(tag, value)
        writer = sitk.ImageFileWriter()
        writer.KeepOriginalImageUIDOn()
        writer.SetFileName(str(root / "dicom" / f"{number}.dcm"))
        writer.Execute(image)
    return root


def named(folder: Path, name: str) -> Path:
    return next(file for file in folder.iterdir() if file.name.split(".")[0] == name and not file.name.endswith("raw"))


def test_the_voxel_under_the_mouse_is_the_one_in_the_exported_file(tmp_path: Path) -> None:
    """In every format and orientation, and in each plane, the brightness that was clicked is found again."""
    root = all_kinds(tmp_path / "scans")
    rng, clicked = np.random.default_rng(0), dict[str, list[int]]()
    with opened(root) as client:
        for name, number in ids(client).items():
            told = about(client, number)
            for plane in told["planes"]:
                n, y, x = (int(rng.integers(plane[side])) for side in ("count", "rows", "columns"))
                picture = client.get(f"/api/scans/{number}/image/{plane['through']}/{n}").content
                place = [0, 0, 0]
                place[plane["through"]] = n
                place[plane["down"]] = plane["rows"] - 1 - y if plane["flip"]["down"] else y
                place[plane["across"]] = plane["columns"] - 1 - x if plane["flip"]["across"] else x
                click(client, number, place, plane=plane["through"])
                clicked.setdefault(name, []).append(picture[y * plane["columns"] + x])
                low, high = told["window"]
        told = client.post("/api/export", json={"who": "Ana"}).json()
        windows = {name: about(client, number)["window"] for name, number in ids(client).items()}
    folder = Path(told["folder"])
    assert len(clicked) == 53
    for name, seen in clicked.items():
        scan, drawn = read(named(root, name)), read_labels(named(folder / "labels", name))
        assert same_geometry(scan, drawn) == []
        low, high = windows[name]
        found = np.clip((scan.array[drawn.array == 1].astype(float) - low) / (high - low) * 255, 0, 255)
        assert np.abs(np.sort(found) - np.sort(np.unique(seen) if len(found) < 3 else seen)).max() <= 0.51, name
        with (folder / "clicks.csv").open(encoding="utf-8") as table:
            rows = [line for line in csv.DictReader(table) if line["case"] == name]
        places = {tuple(int(line[key]) for key in ("slice", "row", "column")) for line in rows}
        assert places == set(map(tuple, np.argwhere(drawn.array == 1).tolist()))


def test_everything_is_exported_and_again(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    with opened(root) as client:
        number = ids(client)["one"]
        click(client, number, (1, 2, 3))
        act(client, "fact", scan=number, slice=None, size={"low": 1, "high": 2, "unit": "ml"}, **{"class": 2})
        work = tmp_path / "scans-studio" / "trainings" / "001"
        (work / "store").mkdir(parents=True)
        (work / "store" / "dataset.json").write_text("{}")
        mask = np.ones(SHAPE, np.uint8)
        write_mask(mask, read(root / "one.nii.gz"), work / "masks" / "one.nii.gz")
        head = "case,class,doubt,volume_ml,size_px,range,edge,pieces,mirrored,runs,note"
        table = f"{head}\none,LV,0.2,69.12,2880,0.2,0,0,0,,\none,RV,1,0,0,1,0,0,0,,\n"
        (work / "masks" / "predictions.csv").write_text(table)
        about = {
            "number": 1,
            "state": "done",
            "classes": list(CLASSES),
            "values": [0, 1, 2],
            "folder": "/elsewhere/trainings",  # before the project was moved
            "store": "001/store",
        }
        about |= {
            "commands": [
                "inbounds prepare folder /scans /elsewhere/trainings/001/store --classes background,LV",
                "inbounds prepare folder /scans /elsewhere/trainings/001/store --classes background,LV --without two",
                "inbounds train --store /elsewhere/trainings/001/store --run '/elsewhere/trainings/001/run' --resume",
            ],
            "sentence": "",
            "words": [],
            "scans": {"one": [], "three": [], "two": []},
            "left_out": {"two": "it is damaged"},
            "stamps": {},
        }
        (work / "job.json").write_text(json.dumps(about))
        (work / "clicks.csv").write_text("case,slice,row,column,class\n")
        act(client, "accept", scan=number, accepted=True)
        for _ in range(2):
            told = client.post("/api/export", json={"who": "Ana"}).json()
            assert set(told["files"]) == {
                "clicks.csv",
                "sizes.csv",
                "volumes.csv",
                "commands.txt",
                "labels/one.nii.gz",
                "masks/one.nii.gz",
                "masks/predictions.csv",
                "store/dataset.json",
                "trainings/001/clicks.csv",
            }
            assert told["commands"] == [
                "inbounds prepare folder /scans trainings/001/store --classes background,LV --without two",
                "inbounds train --store trainings/001/store --run trainings/001/run",
            ]
        training = client.get("/api/project").json()["training"]
        assert training["sentence"] == "masks of 2 scans; 1 could not be read"
        folder = Path(told["folder"])
        assert (folder / "volumes.csv").read_text().splitlines() == [
            "case,class,volume_ml,known_min,known_max,doubt,accepted",
            "one,LV,69.12,,,1.0,1",
            "one,RV,0.0,1,2,1.0,1",
        ]
        assert np.array_equal(read_labels(folder / "masks" / "one.nii.gz").array, mask)
        flags = client.get("/api/project").json()["scans"][0]["flags"]
        assert any("0 ml in the mask, 1 to 2 ml as you said" in flag for flag in flags)


def test_a_full_disk_leaves_the_last_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inbounds.studio import export as room

    with opened(scans(tmp_path / "scans")) as client:
        click(client, ids(client)["one"], (1, 2, 3))
        client.post("/api/export", json={"who": "Ana"})
        kept = sorted((tmp_path / "scans-studio" / "export").rglob("*"))

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(room, "_write_labels", full)
        answer = client.post("/api/export", json={"who": "Ana"})
        assert answer.status_code in (400, 507)
        assert "make room" in answer.json()["error"]
        assert sorted((tmp_path / "scans-studio" / "export").rglob("*")) == kept
