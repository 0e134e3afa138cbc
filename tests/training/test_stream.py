"""The step is the same whether it runs as written, compiled, or as a replayed graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from inbounds.store.store import Store
from inbounds.training.data import Data
from inbounds.training.loop import Trainer
from inbounds.training.stream import GraphedStep, Stream
from inbounds.training.train_many import train_many
from training_runs import kept, start

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
ENET = ["network.name=enet", "network.settings={}"]
GPU = [*ENET, "training.device=cuda", "training.batch=4"]
FADING = ["training.schedule=cosine", "training.epochs=3", "regularisers.border={term='border',schedule='lr'}"]

pytestmark = [
    pytest.mark.plain,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def store(hearts: Store) -> Store:
    return hearts


def losses(trainer: Trainer, epochs: int = 3) -> Tensor:
    """The sums of the loss terms after each step."""
    found = []
    for _ in range(epochs):
        trainer.network.train()
        with trainer.stream.here():
            trainer.step.begin(trainer._plan())
            for _ in trainer.step.plan:
                trainer.step()
                found.append(trainer.step.sums.clone())
            trainer.state.epoch += 1
            trainer.schedule.advance(trainer.state, epochs, trainer.optimiser)
    trainer.stream.ready()
    return torch.stack(found).cpu()


def test_on_a_cpu_a_lane_changes_nothing() -> None:
    stream = Stream(torch.device("cpu"), seed=3)
    calls: list[int] = []
    twice = GraphedStep(lambda length: calls.append(length) or torch.rand(2), stream)
    with stream.here():
        first = [twice(5), twice(5), twice(5), twice(5)]
    torch.manual_seed(3)
    assert all(torch.equal(drawn, torch.rand(2)) for drawn in first)
    assert calls == [5] * 4


class Mark:
    """Stands for an event on a GPU: it is past after it was asked a few times."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def query(self) -> bool:
        self.left -= 1
        return self.left < 0

    def synchronize(self) -> None:
        self.left = 0


def test_a_run_waits_for_its_device_and_only_then(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host stops giving work to a device that is behind, says so, and ends with the same network."""
    quick, slow = (start(tmp_path / name, store, "tags", "training.epochs=2", "training.batch=1") for name in "ab")
    assert not any(Trainer(quick).steps())
    trainer = Trainer(slow)
    monkeypatch.setattr(trainer.stream, "mark", lambda: trainer.stream.marks.append(Mark(30)))
    told = list(trainer.steps())
    assert any(told)
    assert not trainer.stream.marks
    assert kept(quick)["metrics.csv"] == kept(slow)["metrics.csv"]
    waiting = Stream(torch.device("cpu"), seed=0)
    waiting.marks += [Mark(0), Mark(9), Mark(9)]
    assert waiting.ahead() == 2
    waiting.wait()
    assert waiting.ahead() == 1


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[gpu, pytest.mark.gpu])])
def test_compiled_gives_the_same_losses(tmp_path: Path, store: Store, device: str) -> None:
    # Without dropout, whose random numbers a compiler may draw in another order.
    unet = ["network.name=unet", "network.settings={width=4,levels=2}", f"training.device={device}"]
    unet += [*FADING, "training.batch=16", "training.lr=1e-4"]
    plain, compiled = (
        Trainer(start(tmp_path / on, store, "individual", f"training.compile={on}", *unet)) for on in ("nothing", "all")
    )
    expected = losses(plain)
    torch.testing.assert_close(losses(compiled), expected, rtol=1e-3, atol=1e-5)


def _deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let convolutions add up in the same order every time; Adam makes much of small differences."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)


@gpu
@pytest.mark.gpu
@pytest.mark.parametrize("recipe", ["individual", "volume", "full", "proposals_individual", "proposals_volume"])
def test_captured_gives_the_same_losses(
    tmp_path: Path, store: Store, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout and augmentation: a graph draws the numbers that the same code would have drawn."""
    _deterministic(monkeypatch)
    more = [*GPU, *FADING, "training.compile=nothing", "augment.rotate=10", "augment.flip=true"]
    eager, captured = (
        losses(Trainer(start(tmp_path / on, store, recipe, *more, f"training.cuda_graphs={on}")))
        for on in ("false", "true")
    )
    torch.testing.assert_close(captured, eager, rtol=0, atol=0)


@gpu
@pytest.mark.gpu
def test_side_by_side_is_as_if_alone(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _deterministic(monkeypatch)
    recipes = ("individual", "tags", "full")
    runs = [start(tmp_path / name, store, name, *GPU, "training.epochs=3") for name in recipes]
    alone = [start(tmp_path / f"alone-{name}", store, name, *GPU, "training.epochs=3") for name in recipes]
    assert train_many(runs) == {}
    for together, single in zip(runs, alone, strict=True):
        Trainer(single).fit()
        assert kept(together)["metrics.csv"] == kept(single)["metrics.csv"]


@gpu
@pytest.mark.gpu
def test_memory_stays_flat(tmp_path: Path, store: Store) -> None:
    trainer = Trainer(start(tmp_path / "run", store, "volume", *GPU), data=Data())
    losses(trainer, 4)
    before = torch.cuda.memory_reserved()
    losses(trainer, 10)
    assert torch.cuda.memory_reserved() == before
