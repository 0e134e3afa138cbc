"""What stops a command: at once, but for the moments in which it must not be, and told in one word."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inbounds.stopping import shielded, stoppable


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_either_stops_what_goes_on(number: signal.Signals) -> None:
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    outside = signal.signal(number, usual)  # a shell's background jobs ignore SIGINT
    try:
        with stoppable() as came, pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert came == [number]
        assert signal.getsignal(number) == usual
    finally:
        signal.signal(number, outside)


def test_what_is_ignored_stays_ignored() -> None:
    """As in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stoppable() as came, shielded():
            signal.raise_signal(signal.SIGINT)
        assert came == []
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_must_not_be_left_half_done_is_done_first() -> None:
    done = []

    def work() -> None:
        with shielded():
            with shielded():
                signal.raise_signal(signal.SIGTERM)
                done.append("inner")
            done.append("outer")
        done.append("never")

    with stoppable() as came, pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]
    assert came == [signal.SIGTERM]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_stopped_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "inbounds", "example", str(tmp_path / "new" / "hearts"), "--patients", "40"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    assert process.stderr
    assert "of 80" in process.stderr.readline()  # it is drawing
    process.send_signal(number)
    _, told = process.communicate()
    assert process.returncode == code
    assert told.splitlines()[-1] == "Stopped."
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []
