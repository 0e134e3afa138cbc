"""The same as a MONAI bundle: `monai_bundle.json` is all of the training, and `ib.Loss` a part of it like any other."""

from __future__ import annotations

from pathlib import Path

import torch
from discs import Discs, dice
from monai.bundle import ConfigParser
from torch.utils.data import DataLoader


def main(epochs: int = 25) -> float:
    """Train from clicks and sizes; return the Dice on new images."""
    torch.manual_seed(0)
    bundle = ConfigParser()
    bundle.read_config(Path(__file__).with_suffix(".json"))
    bundle["epochs"] = epochs
    bundle.parse()
    bundle.get_parsed_content("run", eval_expr=True)
    net, device = bundle.get_parsed_content("network").eval(), bundle.get_parsed_content("device")
    held_out = next(iter(DataLoader(Discs(32, seed=1), batch_size=32)))
    with torch.no_grad():
        score = dice(net(held_out["image"].to(device)), held_out["truth"].to(device))
    print(f"Dice on new images: {score:.3f}")
    return score


if __name__ == "__main__":
    main()
