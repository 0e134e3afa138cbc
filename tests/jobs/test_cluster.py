from __future__ import annotations

from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.jobs.cluster import Cluster, read_cluster


def test_what_is_not_said_is_as_it_is_without_a_file(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('[slurm]\npack = 4\nmore = { qos = "long" }\n[ray]\ngpus = 0.5\n')
    read = read_cluster(file)
    assert (read.slurm.pack, read.slurm.more, read.slurm.minutes) == (4, {"qos": "long"}, Cluster().slurm.minutes)
    assert (read.ray.gpus, read.ray.address) == (0.5, "auto")
    assert read_cluster(None) == Cluster()


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("[slurm]\npack = 0", "slurm.pack is 0"),
        ("[slurm]\npartitions = 'a'", "did you mean 'slurm.partition'"),
        ("slurm = 3", "slurm is a group of settings"),
        ("store = 'a'", "unknown setting 'store'"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, text: str, saying: str) -> None:
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(BadInput, match=r"cluster\.toml: ") as refusal:
        read_cluster(tmp_path / "cluster.toml")
    assert saying in str(refusal.value)
