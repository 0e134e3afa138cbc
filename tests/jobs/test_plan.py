from __future__ import annotations

from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.jobs.plan import LONGEST, lines_of, read_sweep
from inbounds.jobs.training import Training
from inbounds.store.store import Store
from sweeps import plan


def lines(file: Path) -> dict[str, Training]:
    return {line.place: Training.model_validate(line.about) for line in lines_of(read_sweep(file), file)}


def test_a_grid_rows_seeds_and_folds_are_combined(tmp_path: Path, hearts: Store) -> None:
    more = """
[grid]
"training.lr" = [1e-3, 2e-3]
recipe = ["tags", "individual"]
[[rows]]
name = "loose"
margin = 0.3
[[rows]]
name = "wide"
settings = { augment = { flip = true } }
"""
    file = plan(tmp_path / "plan.toml", hearts, seeds=[0, 3], more=more)
    file.write_text("folds = 2\n" + file.read_text())
    found = lines(file)
    assert len(found) == 2 * 2 * 2 * 2 * 2
    assert list(found)[:2] == [f"runs/loose,lr=0.001,recipe=tags/seed-0/fold-{n}" for n in (0, 1)]
    one = found["runs/wide,lr=0.002,recipe=individual/seed-3/fold-1"]
    assert (one.recipe, one.seed, one.fold, one.folds, one.margin) == ("individual", 3, 1, 2, None)
    assert one.changes[-2:] == ["augment={flip = true}", "training.lr=0.002"]
    assert one.changes[0].startswith('network={name = "monai:UNet", settings = {spatial_dims = 2, channels = [4, 8]')
    assert found["runs/loose,lr=0.001,recipe=tags/seed-0/fold-0"].margin == 0.3


def test_paths_are_seen_from_the_plan_and_where_data_lie_decides_nothing(tmp_path: Path, hearts: Store) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(hearts.path)
    one, other = plan(tmp_path / "a.toml", hearts), plan(tmp_path / "elsewhere" / "b.toml", hearts)
    other.write_text(other.read_text().replace(str(hearts.path.resolve()), "link"))
    first, second = (lines_of(read_sweep(file), file) for file in (one, other))
    assert [line.hash for line in first] == [line.hash for line in second]
    assert Path(second[0].about["store"]).is_absolute()


def test_names_are_folders_and_differ(tmp_path: Path, hearts: Store) -> None:
    far = ", ".join(
        f'{{ a = {{ statistic = "size", bounds = {{ kind = "fixed", lower = {n} }}, weight = 0.{"1" * 60} }} }}'
        for n in (1, 2)
    )
    names = [Path(name).parts for name in lines(plan(tmp_path / "p", hearts, more=f"[grid]\nconstraints = [{far}]"))]
    assert all(len(parts) == 3 and len(parts[1]) == LONGEST for parts in names)
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    ("more", "saying"),
    [
        ('[grid]\n"training.epoch" = [1, 2]', "training.epochs"),
        ("[grid]\n'training.lr' = [1e-3, -1]", "training.lr is -1"),
        ("[gird]\na = [1]", "unknown setting 'gird'; did you mean 'grid'"),
        ('[[rows]]\nname = "a/b"', "a name is without /"),
        ('[[rows]]\nname = "a"\nrecipe = "tag"', "did you mean 'tags'"),
        ('[[rows]]\nname = "a"\nannotation = "dics"', "no annotation 'dics'"),
        ('[[rows]]\nname = "a"\nfacts = "none"', "no facts 'none'"),
        ('[[rows]]\nname = "a"\nclasses = ["XY"]', "XY"),
        ("[grid]\n'training.lr' = [2026-01-01]", "a setting is a number, a text"),
        ("[slurm]\nminuts = 3", "slurm.minutes"),
        ("[grid", "cannot be read as TOML"),
    ],
)
def test_what_cannot_be_trained_is_refused(tmp_path: Path, hearts: Store, more: str, saying: str) -> None:
    file = plan(tmp_path / "plan.toml", hearts, more=more)
    with pytest.raises(BadInput) as refusal:
        lines(file)
    assert str(refusal.value).startswith(str(file))
    assert saying in str(refusal.value)


def test_too_many_runs_are_refused(tmp_path: Path, hearts: Store) -> None:
    with pytest.raises(BadInput, match=r"plan\.toml: more than 10,000 runs"):
        lines(plan(tmp_path / "plan.toml", hearts, seeds=range(10_001)))
