"""Weak labels and facts: all that training may know of an image."""

from inbounds.annotations.annotation import UNLABELLED, Annotation, Coarser
from inbounds.annotations.joined import joined

__all__ = ["UNLABELLED", "Annotation", "Coarser", "joined"]
