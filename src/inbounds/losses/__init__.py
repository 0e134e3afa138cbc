"""What the labelled pixels say, and what labels can be made of a prediction."""

from inbounds.losses.ascent import Ascent
from inbounds.losses.entropy import cross_entropy
from inbounds.losses.projection import Exact, Projection
from inbounds.losses.proposals import Proposals

__all__ = ["Ascent", "Exact", "Projection", "Proposals", "cross_entropy"]
