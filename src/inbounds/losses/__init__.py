"""What the labelled pixels say."""

from inbounds.losses.entropy import cross_entropy

__all__ = ["cross_entropy"]
