"""Scan file in, mask file out, in the scan's own geometry."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inbounds.inference.files import Outcome, predict_files
    from inbounds.inference.prediction import Prediction, Region
    from inbounds.inference.predictor import Predictor

__all__ = ["Outcome", "Prediction", "Predictor", "Region", "predict_files"]
# Nothing is imported before it is used, so that what masks are doubted for can be told without torch.
_HOME = {"Outcome": "files", "predict_files": "files", "Prediction": "prediction", "Region": "prediction"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'inbounds.inference' has no attribute {name!r}")
    return getattr(importlib.import_module(f"inbounds.inference.{_HOME.get(name, 'predictor')}"), name)
