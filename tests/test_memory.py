"""What a machine can give, and what is refused because it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inbounds import memory
from inbounds.errors import BadInput
from inbounds.memory import amount, available, require, require_disk


def test_amounts() -> None:
    assert [amount(count) for count in (0, 999, 1000, 2**30, 1.44 * 2**40, 10**30)] == [
        "0 bytes",
        "999 bytes",
        "1 KiB",
        "1 GiB",
        "1.4 TiB",
        "867361737988 EiB",
    ]


def test_what_fits_and_what_does_not() -> None:
    free = available()
    assert free is not None
    assert memory.SMALL < free < 1 << 50
    require(free // 2, "nothing", "stay")
    with pytest.raises(BadInput, match=r"^a scan needs 8 EiB of memory, and .* are free here; crop it$"):
        require(1 << 63, "a scan", "crop it")
    with pytest.raises(BadInput, match="needs 2 GiB of memory, and 1 GiB are free"):
        require(2 << 30, "a scan", "crop it", free=1 << 30)


def test_room_on_a_disk(tmp_path: Path) -> None:
    require_disk(1 << 27, tmp_path / "not" / "there", "a store")
    with pytest.raises(BadInput, match=r"store: a store needs 8 EiB on the disk, and .* are free; make room"):
        require_disk(1 << 63, tmp_path / "not" / "store", "a store")


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_has_less_than_its_machine(tmp_path: Path, version: int) -> None:
    own, root = tmp_path / "own", tmp_path / "root"
    own.write_text("4:cpu,cpuacct:/a\n3:memory:/a/b\n" if version == 1 else "0::/a/b\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")
    prefix = "total_" if version == 1 else ""
    inner = root / ("memory/a/b" if version == 1 else "a/b")
    inner.mkdir(parents=True)
    for folder, limit, used in ((inner, "9000", 5000), (inner.parent, "max", 0), (inner.parents[1], "8000", 7500)):
        (folder / names[0]).write_text(f"{limit}\n")
        (folder / names[1]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 3\n{prefix}inactive_file 700\n{prefix}active_file 300\n")
    assert [left for left in memory._groups(root, own) if left is not None] == [5000, 1500]
    assert list(memory._groups(root, tmp_path / "none")) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a limit that only Linux keeps")
def test_a_limit_of_the_shell_counts() -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))\n"
    code += "from inbounds.memory import available; print(available())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(told.stdout) < 1 << 32
