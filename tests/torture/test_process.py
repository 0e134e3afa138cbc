from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaigns fork")


def told(code: str, root: Path) -> list[dict[str, object]]:
    """What a program of its own notes, which changes and opens as it likes in `here`."""
    begin = f"""
import os, shutil, signal, sys, tempfile
from pathlib import Path
from torture.watch import Stop, Watch
root = Path({str(root)!r})
notes = os.open(root / "notes", os.O_RDWR | os.O_CREAT)
here = root / "here"
here.mkdir()
os.chdir(here)
watch = Watch(root, (sys.prefix, sys.base_prefix), notes, STOP)
watch.begin()
"""
    stop = code.partition("\n")[0] if code.startswith("Stop(") else "None"
    code = begin.replace("STOP", stop) + code.removeprefix(stop) + "\nwatch.note('changes', watch.changes)"
    subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    return [json.loads(line) for line in (root / "notes").read_text().splitlines()]


def test_changes_are_counted(tmp_path: Path) -> None:
    code = "Path('a').write_text('x'); Path('a').rename('b'); Path('c').mkdir(); shutil.rmtree('c'); Path('b').unlink()"
    # Of a tree that is removed, the whole and its folder each count.
    assert told(code, tmp_path) == [{"changes": 6}]


def test_a_command_stops_before_the_chosen_change(tmp_path: Path) -> None:
    assert told("Stop(signal.SIGKILL, 2)\nPath('a').touch(); Path('b').touch()", tmp_path) == []
    assert [file.name for file in (tmp_path / "here").iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("os.open('/etc/hostname', os.O_RDONLY)", "read outside"),
        ("Path('link').symlink_to('/etc/hostname'); Path('link').read_text()", "read outside"),
        (
            "open(f'/tmp/inbounds-{os.getpid()}', 'w').close(); os.remove(f'/tmp/inbounds-{os.getpid()}')",
            "wrote outside",
        ),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 9))", "network"),
        ("import pickle; pickle.loads(b'cos\\ngetcwd\\n.')", "unpickled"),
        ("import subprocess; subprocess.run(['true'])", "program"),
    ],
)
def test_what_no_command_should_do_is_noted(tmp_path: Path, code: str, kind: str) -> None:
    if not Path("/etc/hostname").exists():
        pytest.skip("no file of the system to look at")
    (tmp_path / "root").mkdir()
    assert kind in {kind for line in told(code, tmp_path / "root") for kind in line}
