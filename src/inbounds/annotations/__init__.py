"""Weak labels and facts: all that training may know of an image."""

from inbounds.annotations.annotation import UNLABELLED, Annotation

__all__ = ["UNLABELLED", "Annotation"]
