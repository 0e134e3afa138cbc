"""Which network a run keeps beside the last one."""

from __future__ import annotations

from collections.abc import Mapping

from inbounds.runs.checkpoint import State


def select(state: State, validation: Mapping[str, float]) -> bool:
    """Whether the network of the epoch that just ended is the best so far; the state remembers it.

    The best has the highest DSC per slice. Progress, which the plateau schedule waits for, is the same or, without a
    truth to score by, fewer violated bounds.

    Args:
        state: Where the run stands.
        validation: What the epoch's validation measured, over all classes.
    """
    score, violations = validation.get("dsc_slice"), validation.get("violations")
    best = score is not None and (state.best is None or score > state.best[0])
    fewer = violations is not None and (state.fewest is None or violations < state.fewest)
    if score is not None or violations is not None:
        progress = best if score is not None else fewer
        state.bad_epochs = 0 if progress else state.bad_epochs + 1
    if score is not None and best:
        state.best = score, state.epoch
    if fewer:
        state.fewest = violations
    return best
