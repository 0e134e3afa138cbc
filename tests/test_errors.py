"""What may have been meant."""

from __future__ import annotations

import pytest

from inbounds.errors import nearest


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("tag", ["tags", "common"], "did you mean 'tags'?"),
        ("ENET", ["enet"], "did you mean 'enet'?"),
        ("lv", ["LV", "RV"], "did you mean 'LV'?"),
        ("xyz", ["a", "b"], "there are: a, b"),
        ("xyz", [], "there are: none"),
        ("xyz", [f"case{n}" for n in range(20)], "there are: case0, case1, case2, case3, case4, and 15 more"),
    ],
)
def test_the_nearest_name_or_all_there_are(name: str, names: list[str], expected: str) -> None:
    assert nearest(name, names) == expected
