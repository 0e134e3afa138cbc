from __future__ import annotations

from pathlib import Path

import pytest

from inbounds.config import read_settings
from inbounds.errors import BadInput


def test_defaults_are_the_papers() -> None:
    settings = read_settings("individual")
    assert settings.network.name == "enet"
    training = settings.training
    assert (training.epochs, training.batch, training.lr, training.betas) == (None, 1, 5e-4, (0.9, 0.99))
    assert (training.patience, training.factor) == (20, 0.5)


def test_a_file_then_single_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[training]\nepochs = 7\nbatch = 4\n[network]\nname = "residual_unet"\nsettings = {width = 8}\n')
    settings = read_settings("tags", file, ["training.epochs=9", "constraints.size.penalty=hinge", "network.name=enet"])
    assert (settings.training.epochs, settings.training.batch, settings.network.name) == (9, 4, "enet")
    assert settings.constraints["size"].penalty == {"name": "hinge"}
    assert settings.network.settings == {"width": 8}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.epoch=3", "unknown setting 'training.epoch'; did you mean 'training.epochs'"),
        ("wieght=3", "unknown setting 'wieght'; did you mean 'weight'"),
        ("training.epochs=0", r"training.epochs is 0: .*greater than or equal to 1"),
        ("training.epochs=many", "training.epochs is 'many'"),
        ("training.epochs", "write it as key=value"),
        ("network.name.x=1", "training|network"),
        ("training.betas=[2,3]", r"--set training.betas=\[2,3\]: training.betas.0 is 2: .*less than 1"),
        ("training.lr=1e300", "less than or equal to 10"),
        ("training.device=tpu", "training.device is 'tpu'"),
        ("augment.translate=8", "augment.translate is 8: .*less than 1"),
        ("constraints.size.weight=-1", "greater than or equal to 0"),
        ("constraints.size=3", "size is a group of settings, not 3"),
    ],
)
def test_refuses(change: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_settings("common", None, [change])


def test_refuses_a_file_that_is_no_toml(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("training = [")
    with pytest.raises(BadInput, match=r"a.toml: cannot be read as TOML"):
        read_settings("tags", file)
    with pytest.raises(BadInput, match=r"b.toml: cannot be read"):
        read_settings("tags", tmp_path / "b.toml")
    file.write_text('recipe = "common"')
    with pytest.raises(BadInput, match="made for the recipe 'common', not for 'tags'"):
        read_settings("tags", file)


def test_layers_merge_key_by_key(tmp_path: Path) -> None:
    """A name alone may get its arguments later; another name takes the old one's arguments with it."""
    changes = ["constraints.x={statistic='size',bounds='fixed'}", "constraints.x.bounds.lower=3"]
    assert read_settings("tags", None, changes).constraints["x"].bounds == {"kind": "fixed", "lower": 3}
    changes += ["constraints.x.bounds.kind=tags"]
    assert read_settings("tags", None, changes).constraints["x"].bounds == {"kind": "tags"}
    file = tmp_path / "a.toml"
    file.write_text("weight = 0.5\nconstraints = [1]\n")
    with pytest.raises(BadInput, match=r"a.toml: constraints is a group of settings, not \[1\]"):
        read_settings("tags", file)
    with pytest.raises(BadInput, match="training is a group of settings, not 3"):
        read_settings("tags", None, ["training=3"])


@pytest.mark.parametrize(
    ("content", "saying"),
    [
        (b"\x00\x01\x02\xff", "not a text file in UTF-8; give a file of settings in UTF-8"),
        (b"training = \x00", "not a text file in UTF-8"),
        ("[training]".encode("utf-16"), "not a text file in UTF-8"),
        (b"a = " + b"[" * 5000, "more than 20 of them"),
        (b"[" + b".".join([b"a"] * 3000) + b"]", "more than 20 of them"),
        (b".".join([b"a"] * 30) + b" = 1", "more than 20 of them"),
        (b"[training]\nepochs = " + b"9" * 5000, "cannot be read as TOML"),
        (b"#" * (1 << 20) + b"\n", "larger than 1 MiB"),
    ],
    ids=["binary", "zero", "utf-16", "brackets", "groups", "dots", "digits", "large"],
)
def test_files_that_are_not_what_they_seem(tmp_path: Path, content: bytes, saying: str) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(BadInput, match=f"a.toml: .*{saying}"):
        read_settings("tags", tmp_path / "a.toml")


@pytest.mark.parametrize("value", ["[" * 5000, "9" * 5000, "{a=" * 3000 + "1" + "}" * 3000])
def test_values_that_are_not_what_they_seem(value: str) -> None:
    with pytest.raises(BadInput, match=r"^--set training.epochs=.{184}\.\.\.: .{,200}$"):
        read_settings("tags", None, [f"training.epochs={value}"])
    with pytest.raises(BadInput, match="more than 20 of them"):
        read_settings("tags", None, [".".join(["a"] * 3000) + "=1"])


@pytest.mark.parametrize(
    ("content", "changes", "culprit"),
    [
        ("constraints.size.penalty = 'x'", ["constraints.size.weight=2"], "a.toml"),
        ("constraints.size.weight = 2", ["constraints.size.penalty=x"], "--set constraints.size.penalty=x"),
        ("", ["constraints.size.penalty=x", "constraints.size.weight=2"], "--set constraints.size.penalty=x"),
        ("hybrid.repeat = 2", ["hybrid.only_full=true"], "a.toml"),
        ("hybrid = {full_scans = 2, repeat = 3}", ["hybrid.full_scans=0"], "--set hybrid.full_scans=0"),
        ("", ["training.epochs=0", "training.batch=2"], "--set training.epochs=0"),
    ],
)
def test_who_is_told_wrote_it(tmp_path: Path, content: str, changes: list[str], culprit: str) -> None:
    """The layer with which it went wrong, not the last one that speaks of the same thing."""
    (tmp_path / "a.toml").write_text(content)
    with pytest.raises(BadInput) as error:
        read_settings("tags", tmp_path / "a.toml", changes)
    assert str(error.value).removeprefix(f"{tmp_path}/").startswith(f"{culprit}: ")
