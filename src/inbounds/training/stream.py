"""Where a run's work goes: on a GPU a stream of its own, captured as graphs; on a CPU simply where one is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from inbounds.training.group import Group

Result = TypeVar("Result")

WARM = 2
"""How often a function runs as it is written before it is captured: libraries choose and prepare their kernels."""
WARM_TOGETHER = 12
"""The same where several processes train together: PyTorch asks for eleven steps of its data-parallel training."""

MARK = 8
"""After so many steps there is a mark."""
AHEAD = 4
"""How many marks the host may be ahead of the GPU, so that a stop is noticed and what is shown is recent."""


class Stream:
    """A stream and a random generator of one run's own.

    Runs that share a GPU draw the same numbers as if alone: the generator that PyTorch draws from by default is
    exchanged for the stream's while its functions run or are captured, and a graph keeps the one it was captured with.
    On a CPU a stream changes nothing: the default generator is the run's, as every run has a process of its own.

    Args:
        device: Where the run's tensors are.
        seed: Of the generator.
        cuda_graphs: Whether functions are captured on this stream, where the device can do that.
        group: The processes that train the run together. What is drawn for a batch is then the same in all of them,
            and what a network draws for itself, as for dropout, comes from a generator of each process's own.
    """

    def __init__(
        self, device: torch.device, seed: int, *, cuda_graphs: bool = True, group: Group | None = None
    ) -> None:
        self.device = device
        self.cuda = device.type == "cuda"
        self.cuda_graphs = cuda_graphs and self.cuda
        self.cuda_stream: Any = None
        self.generator: torch.Generator = torch.default_generator
        self.pool: Any = None
        self.marks: list[Any] = []
        if self.cuda:
            self.cuda_stream = torch.cuda.Stream(device)
            self.generator = torch.cuda.default_generators[self.cuda_stream.device_index].clone_state()
            self.pool = torch.cuda.graph_pool_handle() if self.cuda_graphs else None
        self.own, self.group, self.seed = self.generator, group, seed
        self.warm = WARM if group is None else WARM_TOGETHER
        if group is not None:
            self.generator = torch.Generator(device)
        self.generator.manual_seed(seed)
        self.begin(0)

    @property
    def shared(self) -> torch.Generator | None:
        """Where to draw what all processes draw alike; `None` is where everything is drawn."""
        return None if self.group is None else self.generator

    def begin(self, epoch: int) -> None:
        """Before an epoch: what each process draws for itself is decided by seed, epoch and process."""
        if self.group is not None:
            self.own.manual_seed((self.seed + 1_000_003 * (epoch * self.group.ranks + self.group.rank + 1)) % 2**63)

    @contextmanager
    def here(self) -> Iterator[None]:
        """Work on this stream: its stream is the current one and its generator the default."""
        if not self.cuda:
            yield
            return
        default = torch.cuda.default_generators[self.cuda_stream.device_index]
        before = default.graphsafe_get_state()
        default.graphsafe_set_state(self.own)
        try:
            with torch.cuda.stream(self.cuda_stream):
                yield
        finally:
            default.graphsafe_set_state(before)

    def mark(self) -> None:
        """Remember this place, to see later whether the device has come past it."""
        if self.cuda:
            mark = torch.cuda.Event()
            mark.record(self.cuda_stream)
            self.marks.append(mark)

    def ahead(self) -> int:
        """How many marks the device has not come past yet."""
        while self.marks and self.marks[0].query():
            self.marks.pop(0)
        return len(self.marks)

    def wait(self) -> None:
        """Until the device has come past the next mark."""
        if self.marks:
            self.marks.pop(0).synchronize()

    def ready(self) -> None:
        """Let what was begun elsewhere, such as copying data, be done before the stream starts."""
        if self.cuda:
            torch.cuda.synchronize(self.device)


class Fetched:
    """Numbers on their way from the GPU to the host, which need not wait for them."""

    def __init__(self, numbers: Tensor) -> None:
        self.values = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        self.values.copy_(numbers, non_blocking=True)
        self.mark = torch.cuda.Event()
        self.mark.record()

    def there(self) -> bool:
        """Whether they have arrived, so that `values` may be read."""
        return bool(self.mark.query())


class GraphedStep(Generic[Result]):
    """A function that a stream calls again and again, and which never reads anything back from the device.

    It runs as written a few times, is then captured as a CUDA graph, and from there on replayed: the same kernels on
    the same tensors, started by one call. Batches of different length need one graph each, which share their memory.
    What the function returns is the same tensors every time, filled anew. On a CPU it simply runs.

    Args:
        function: Takes the length of a batch; all else it knows.
        stream: Where it runs.
    """

    def __init__(self, function: Callable[[int], Result], stream: Stream) -> None:
        self.function, self.stream = function, stream
        self.runs: dict[int, int] = {}
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph, Result]] = {}

    def __call__(self, length: int = 0) -> Result:
        """Run, capture or replay; to be called on the stream."""
        if length in self.graphs:
            graph, result = self.graphs[length]
            graph.replay()
            return result
        self.runs[length] = self.runs.get(length, 0) + 1
        if not self.stream.cuda_graphs or self.runs[length] <= self.stream.warm:
            return self.function(length)
        graph = torch.cuda.CUDAGraph()
        if self.stream.shared is not None:
            graph.register_generator_state(self.stream.shared)
        # Other threads may talk to the GPU meanwhile; only this one's calls become part of the graph.
        with torch.cuda.graph(
            graph, pool=self.stream.pool, stream=self.stream.cuda_stream, capture_error_mode="thread_local"
        ):
            result = self.function(length)
        self.graphs[length] = graph, result
        graph.replay()
        return result
