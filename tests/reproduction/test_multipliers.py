"""The comparison of penalties on a problem with a known solution."""

from __future__ import annotations

from reproduction.multipliers import toy


def test_multipliers_hold_all_bounds_where_a_weight_that_is_too_small_does_not() -> None:
    rows = {name: (held, float(divergence)) for name, _, held, divergence in toy(images=3, steps=500)}
    assert rows["multipliers, step 0.1"][0] == "3 of 3"
    assert rows["quadratic, weight 0.05"][0] != "3 of 3"
    assert rows["quadratic, weight 0.05"][1] < rows["multipliers, step 0.1"][1]
