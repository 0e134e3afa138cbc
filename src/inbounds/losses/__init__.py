"""What the labelled pixels say, and what labels can be made of a prediction."""

from collections.abc import Callable

from inbounds.losses.ascent import Ascent
from inbounds.losses.entropy import cross_entropy
from inbounds.losses.projection import Exact, Projection
from inbounds.losses.proposals import Proposals

projections: dict[str, Callable[..., Projection]] = {"ascent": Ascent, "exact": Exact}
"""By name, for settings. Add your own."""

__all__ = ["Ascent", "Exact", "Projection", "Proposals", "cross_entropy", "projections"]
