"""On a GPU: every recipe fits into a CUDA graph, and a forward pass never waits for the device."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from cases import BOUNDS, PENALTIES, PLANE, STATISTICS, Batch, batch, constraint, related
from inbounds import (
    Ascent,
    Constraint,
    Exact,
    Interval,
    Loss,
    Multipliers,
    Supervision,
    centroid,
    log_barrier,
    recipes,
    size,
)

pytestmark = [
    pytest.mark.plain,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def device_batch(K: int = 3) -> Batch:
    logits, image, annotation = batch(K, PLANE)
    return Batch(logits.cuda(), image.cuda(), annotation.to("cuda"))


def everything(**settings) -> Supervision:
    """Every statistic that brings no tensor from the host, each with its own fact."""
    names = [name for name in STATISTICS if name != "fraction"]
    return Supervision(constraints=[constraint(n, PLANE, BOUNDS["individual"], name=n, **settings) for n in names])


SUPERVISIONS = {
    **{name: build() for name, build in recipes.items()},
    **{f"every statistic, {scope}": everything(scope=scope) for scope in ("image", "volume")},
    "every bounds": Supervision(
        constraints=[
            constraint("size", PLANE, bounds, penalty, name=f"{name} {price}")
            for name, bounds in BOUNDS.items()
            for price, penalty in PENALTIES.items()
        ]
    ),
    **{
        f"exact proposals of classes {classes}": recipes["proposals_individual"](
            project=Exact(), harden=False, classes=classes
        )
        for classes in ([1], [1, 2])
    },
    "ascent with a corrected stop": recipes["proposals_individual"](project=Ascent(early_stop="corrected")),
    "several regions": Supervision(constraints=related()),
    "proposals of a union": recipes["proposals_individual"](project=Exact(), harden=False, classes=[(1, 2), 2]),
    "classes apart": Supervision(constraints=[constraint("size", PLANE, BOUNDS["individual"], classes=[2, 0])]),
}
every_supervision = pytest.mark.parametrize("name", SUPERVISIONS)


@every_supervision
def test_agrees_with_the_cpu(name) -> None:
    logits, image, annotation = batch(3, PLANE)
    host, device = logits.clone().requires_grad_(), logits.cuda().requires_grad_()
    here = SUPERVISIONS[name](host, image, annotation).total
    there = SUPERVISIONS[name](device, image.cuda(), annotation.to("cuda")).total
    torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-5)
    here.backward()
    there.backward()
    torch.testing.assert_close(device.grad.cpu(), host.grad, rtol=1e-3, atol=1e-5)


@every_supervision
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_never_waits_for_the_device(name) -> None:
    logits, image, annotation = device_batch()
    logits.requires_grad_()
    SUPERVISIONS[name](logits, image, annotation).total.backward()  # lazy initialisation may wait
    try:
        torch.cuda.set_sync_debug_mode("error")
        SUPERVISIONS[name](logits, image, annotation).total.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@every_supervision
def test_replays_in_a_cuda_graph(name) -> None:
    logits, image, annotation = device_batch()
    supervise = SUPERVISIONS[name]
    fresh = torch.randn_like(logits)
    static = logits.clone().requires_grad_()

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        total = supervise(static, image, annotation).total
        (gradient,) = torch.autograd.grad(total, static)
        return total.detach(), gradient

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for values in (logits, fresh):
        with torch.no_grad():
            static.copy_(values)
        graph.replay()
        replayed = [result.clone() for result in captured]
        for ours, eager in zip(replayed, step(), strict=True):
            torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("early_stop", ["off", "authors", "corrected"])
def test_the_ascent_in_one_kernel_climbs_as_the_loop_does(early_stop: str) -> None:
    torch.manual_seed(0)
    odds = torch.randn(4, 1, 70, 70) * 3 - 1
    log_probs = torch.cat([-odds / 2, odds / 2], dim=1).log_softmax(dim=1)
    label = torch.full((4, 70, 70), 255)
    label[:, :5, :5] = 1
    sides = torch.tensor([[60, 200], [0, 0], [4000, torch.inf], [0, torch.inf]])[:, :, None, None]
    bounds, ascent = Interval(sides[:, 0], sides[:, 1]), Ascent(early_stop=early_stop, iterations=101)
    there = ascent(log_probs.cuda(), label.cuda(), Interval(bounds.lower.cuda(), bounds.upper.cuda()), [1])
    here = ascent(log_probs, label, bounds, [1])
    assert (here - log_probs)[:2].abs().amax(dim=(1, 2, 3)).min() > 1
    torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inbounds.losses.ascent._kernel", lambda: None)
        loop = ascent(log_probs.cuda(), label.cuda(), Interval(bounds.lower.cuda(), bounds.upper.cuda()), [1])
    torch.testing.assert_close(there, loop, rtol=1e-4, atol=1e-4)


def test_a_schedule_reaches_into_the_graph() -> None:
    logits, image, annotation = device_batch()
    t = torch.tensor(2.0, device="cuda")
    supervise = Supervision(constraints=[constraint("size", PLANE, BOUNDS["fixed"], log_barrier(t))])
    supervise(logits, image, annotation)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = supervise(logits, image, annotation).total
    for _ in range(2):
        graph.replay()
        torch.testing.assert_close(total, supervise(logits, image, annotation).total)
        t.mul_(3)


def test_multipliers_take_their_steps_in_the_graph() -> None:
    logits, image, annotation = device_batch()
    annotation = replace(annotation, index=torch.tensor([3, 1, 1, 0], device="cuda"))
    penalty = Multipliers().sized(4, 2, 1, "cuda")
    supervise = Supervision(constraints=[constraint("size", PLANE, BOUNDS["fixed"], penalty)])
    static = logits.clone().requires_grad_()

    def step() -> torch.Tensor:
        return torch.autograd.grad(supervise(static, image, annotation).total, static)[0]

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradient = step()
    penalty.values.zero_()
    for _ in range(3):
        graph.replay()
    captured, values = gradient.clone(), penalty.values.clone()
    penalty.values.zero_()
    for _ in range(3):
        eager = step()
    torch.testing.assert_close(captured, eager)
    torch.testing.assert_close(values, penalty.values)
    assert values.gt(0).any()


def test_65536_half_precision_ones() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        ones = torch.ones(1, 1, 256, 256, dtype=dtype, device="cuda")
        assert size(ones).item() == 65536
        assert centroid(ones).tolist() == [[[127.5, 127.5]]]


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_a_loss_in_a_graph_of_a_step(activation) -> None:
    """With outputs of deep supervision, under autocast; a schedule reaches in, and it looks at numbers once alone."""
    logits, image, annotation = device_batch()
    if activation == "sigmoid":
        logits, label = logits[:, 1:], torch.zeros(4, 2, *PLANE, dtype=torch.long, device="cuda")
        annotation = replace(annotation, label=label)
    weight = torch.tensor(0.1)
    bounded = Constraint(size, BOUNDS["individual"], weight=weight)
    loss = Loss(Supervision(constraints=[bounded]), activation=activation).to("cuda")
    assert weight.is_cuda
    outputs = [logits.clone().requires_grad_(), torch.randn_like(logits[..., :3, :3]).requires_grad_()]

    def step() -> list[torch.Tensor]:
        with torch.autocast("cuda", dtype=torch.float16):
            total = loss([output.half() for output in outputs], annotation, image)
        return [total.detach(), *torch.autograd.grad(total, outputs)]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    try:
        torch.cuda.set_sync_debug_mode("error")
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for change in (1.0, 3.0):
        weight.mul_(change)
        with torch.no_grad():
            outputs[0].copy_(torch.randn_like(logits))
        graph.replay()
        replayed = [result.clone() for result in captured]
        for ours, eager in zip(replayed, step(), strict=True):
            torch.testing.assert_close(ours, eager)


def test_a_loss_refuses_what_is_wrong_at_its_first_batch() -> None:
    logits, _, annotation = device_batch()
    wrong = replace(annotation, label=torch.full_like(annotation.label, 7))
    with pytest.raises(ValueError, match="label 7 at index"):
        Loss(Supervision())(logits, wrong)


def test_pinned_memory() -> None:
    _, _, annotation = batch(3, PLANE)
    pinned = annotation.pin_memory()
    assert pinned.label.is_pinned()
    assert pinned == annotation
    assert pinned.to("cuda", non_blocking=True).facts["size"].is_cuda
