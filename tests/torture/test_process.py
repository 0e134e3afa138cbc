from __future__ import annotations

import json
import os
import signal
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


WARM = """
import json, os, signal, sys
from pathlib import Path
from torture.process import Place, run, start, warm_up
from torture.watch import Stop

warm_up()
threads = len(list(Path("/proc/self/task").iterdir())) if Path("/proc/self/task").exists() else 1
place = Place(Path(sys.argv[1])).made()
words = ["prepare", "phantom", "store", "--patients", 2, "--side", 48]
killed = run(words, place, Stop(signal.SIGKILL, 5))
done, refused = run(words, place), run(["verify", "nowhere"], place)
late = run(["studio", "--help"], place, limit=0)
print(json.dumps([threads, killed.code, done.code, done.notes, refused.code, refused.err, late.late]))
"""


@pytest.mark.slow
def test_commands_are_forked_from_one_thread_in_which_all_is_imported(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WARM, str(tmp_path)]
    ended = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=120)
    assert ended.returncode == 0, ended.stderr
    threads, killed, done, notes, refused, said, late = json.loads(ended.stdout)
    assert (threads, killed, done, notes, refused, late) == (1, -signal.SIGKILL, 0, [], 2, True)
    assert said.startswith("Error: nowhere: this is not a store")
    assert [file.name for file in (tmp_path / "here").iterdir()] == ["store"]
