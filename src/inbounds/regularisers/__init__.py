"""What a prediction should be whatever is known of the image: pure, differentiable functions, in 2-D and 3-D alike."""

from collections.abc import Callable

from torch import Tensor

from inbounds.regularisers.border import border
from inbounds.regularisers.normalised_cut import normalised_cut
from inbounds.regularisers.pairwise import pairwise
from inbounds.regularisers.regulariser import Regulariser

regularisers: dict[str, Callable[..., Tensor]] = {
    "border": border,
    "pairwise": pairwise,
    "normalised_cut": normalised_cut,
}
"""By name: functions of probabilities `(B, K, *space)` and the image, to values `(B,)` or `(B, K)`. Add your own."""

__all__ = ["Regulariser", "border", "normalised_cut", "pairwise", "regularisers"]
