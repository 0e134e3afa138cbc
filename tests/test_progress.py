"""A bar for people, a few lines for logs."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from inbounds.progress import LINES, bar


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 100])
def test_a_log_gets_a_few_plain_lines(count: int) -> None:
    out = io.StringIO()
    items = list(range(count))
    assert list(bar("reading", Console(file=out))(items)) == items
    lines = out.getvalue().splitlines()
    assert len(lines) == min(count, LINES)
    assert all(line.startswith("reading: ") and line.endswith(f" of {count}") for line in lines)
    assert "\x1b" not in out.getvalue()
    assert not lines or lines[-1] == f"reading: {count} of {count}"


def test_a_terminal_gets_a_bar_with_the_time_left() -> None:
    out = io.StringIO()
    items = list(range(5))
    assert list(bar("reading", Console(file=out, force_terminal=True, width=80))(items)) == items
    assert "5/5" in out.getvalue()
    assert "0:00:00" in out.getvalue()


def test_a_line_is_said_after_the_work() -> None:
    out = io.StringIO()
    work = bar("reading", Console(file=out))(range(4))
    next(work)
    assert out.getvalue() == ""
    next(work)
    assert out.getvalue() == "reading: 1 of 4\n"
