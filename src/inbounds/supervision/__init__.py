"""How labelled pixels and constraints combine."""

from inbounds.supervision.loss import Loss
from inbounds.supervision.recipes import recipes
from inbounds.supervision.supervision import Supervision, Terms

__all__ = ["Loss", "Supervision", "Terms", "recipes"]
