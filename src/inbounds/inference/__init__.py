"""Scan file in, mask file out, in the scan's own geometry."""

from inbounds.inference.files import Outcome, predict_files
from inbounds.inference.prediction import Prediction, Region
from inbounds.inference.predictor import Predictor

__all__ = ["Outcome", "Prediction", "Predictor", "Region", "predict_files"]
