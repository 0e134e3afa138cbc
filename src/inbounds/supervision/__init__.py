"""How labelled pixels and constraints combine."""

from inbounds.supervision.recipes import recipes
from inbounds.supervision.supervision import Supervision, Terms

__all__ = ["Supervision", "Terms", "recipes"]
