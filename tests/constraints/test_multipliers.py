"""Multipliers: by hand, against problems whose solution is known, beside `cooper`, compiled, and through a training."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest
import torch

from cases import random
from inbounds import (
    UNLABELLED,
    Annotation,
    Constraint,
    Exact,
    Fixed,
    Individual,
    Interval,
    Multipliers,
    Scans,
    Supervision,
    size,
)


def both_sides(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers).reshape(2, 1, 1, 1)


def test_by_hand() -> None:
    """Violations of 3 twice, then of -1, then far inside; steps of 0.5, damping 2."""
    one = Multipliers(step_size=0.5, damping=2.0, images=4)
    index, cost = torch.tensor([3]), []
    for z in (3.0, 3.0, -1.0, -9.0):
        violation = both_sides(-torch.inf, z).requires_grad_()
        priced = one.price(violation, index)
        cost.append((priced[1].item(), torch.autograd.grad(priced.sum(), violation)[0][1].item()))
        assert priced[0] == 0
    # (max(0, l + 2 z)^2 - l^2) / 4 and max(0, l + 2 z), for l = 0, 1.5, 3, 2.5
    assert cost == [(9.0, 6.0), ((7.5**2 - 1.5**2) / 4, 7.5), ((1 - 9) / 4, 1.0), (-(2.5**2) / 4, 0.0)]
    assert one.values[:3].eq(0).all()
    assert one.values[3].flatten().tolist() == [0, 0]


def test_open_sides_copies_and_what_is_not_finite() -> None:
    one = Multipliers(step_size=1.0, images=3)
    violation = torch.stack([torch.full((3, 1, 1), -torch.inf), torch.tensor([1.0, 2.0, 4.0]).reshape(3, 1, 1)])
    with torch.no_grad():
        one.price(violation, torch.tensor([0, 2, 0]))
    assert not one.values.any()  # nobody learns from it
    one.price(violation, torch.tensor([0, 2, 0]))
    assert one.values[:, 1, 0, 0].tolist() == [5, 0, 2]  # both copies of image 0 count
    one.price(torch.full_like(violation, torch.nan), torch.tensor([0, 2, 0]))
    assert one.values[:, 1, 0, 0].tolist() == [5, 0, 2]


@pytest.mark.parametrize("damping", [0.0, 1.0])
def test_the_gradient_is_that_of_differences(damping) -> None:
    values = random(2, 2, 2, 1, seed=3)
    violation = (random(2, 2, 2, 1, seed=4) - 0.5).requires_grad_()

    def price(z: torch.Tensor) -> torch.Tensor:
        fresh = replace(Multipliers(), images=2, regions=2, damping=damping, values=values.clone())
        return fresh.price(z, torch.tensor([1, 0]))

    assert torch.autograd.gradcheck(price, violation)


def nearest(constraint: Constraint, logits: torch.Tensor, annotation: Annotation, steps: int, lr: float) -> tuple:
    """Descend to the nearest probabilities that keep to bounds, `min KL(Q || S)`; and the step when they first do."""
    target = logits.log_softmax(dim=1)
    free = logits.clone().requires_grad_()
    adam, first = torch.optim.Adam([free], lr=lr), steps
    for step in range(steps):
        adam.zero_grad()
        mine = free.log_softmax(dim=1)
        divergence = (mine.exp() * (mine - target)).flatten(1).sum(dim=1).mean()
        (divergence + constraint(mine.exp(), None, annotation)).backward()
        adam.step()
        if first == steps and constraint.satisfied(free.detach().softmax(1), None, annotation)[0].all():
            first = step + 1
    return free.detach().softmax(1), first


@pytest.mark.parametrize("damping", [0.0, 20.0])
@pytest.mark.parametrize("space", [(4, 5), (2, 3, 3)], ids=["2d", "3d"])
def test_they_find_the_solution_and_the_multipliers_of_the_exact_projection(space, damping) -> None:
    logits = 3 * random(2, 2, *space, dtype=torch.float32)
    pixels = logits[0, 0].numel()
    sizes = torch.tensor([[[torch.nan], [0.8 * pixels]], [[torch.nan], [0.2 * pixels]]])
    label = torch.full((2, *space), UNLABELLED)
    annotation = Annotation(label, {"size": sizes}, index=torch.tensor([5, 2]))
    penalty = Multipliers(step_size=0.5 if damping else 0.1, damping=damping, images=6)
    constraint = Constraint(size, Individual(relative=0.05), penalty)
    found, _ = nearest(constraint, logits, annotation, 1500, 0.02)
    bounds = constraint.interval(found, None, annotation)
    exact = Exact()(logits.log_softmax(1), label, Interval(bounds.lower, bounds.upper), [1])
    torch.testing.assert_close(found, exact.softmax(1), atol=2e-3, rtol=0)
    # At the optimum the multiplier is what the projection takes off the logits, times the scale: the pixels.
    odds = (exact[:, 1] - exact[:, 0]) - (logits[:, 1] - logits[:, 0])
    shift = -odds.flatten(1).mean(dim=1) * pixels
    solved = (penalty.values[:, 1] - penalty.values[:, 0])[:, 0, 0]
    torch.testing.assert_close(solved[[5, 2]], shift, rtol=0.02, atol=0)
    assert solved[[0, 1, 3, 4]].eq(0).all()


def test_multipliers_of_scans() -> None:
    penalty = Multipliers(step_size=1.0, damping=0, images=5)
    constraint = Constraint(size, Fixed(None, 1), penalty, scope="volume", scale="typical", typical=1.0)
    label = torch.full((3, 2, 2), UNLABELLED)
    annotation = Annotation(label, scans=Scans.of("aab"), scan_index=torch.tensor([4, 0]))
    constraint(torch.full((3, 2, 2, 2), 0.5), None, annotation)
    assert penalty.values[:, 1, 0, 0].tolist() == [1, 0, 0, 0, 3]


def test_bad_input() -> None:
    probs = torch.full((1, 3, 2, 2), 1 / 3)
    annotation = Annotation(torch.full((1, 2, 2), UNLABELLED), index=torch.tensor([0]))
    with pytest.raises(ValueError, match="step_size must be a number above 0, not 0"):
        Multipliers(step_size=0)
    with pytest.raises(ValueError, match="damping must be a number of 0 or more"):
        Multipliers(damping=-1.0)
    with pytest.raises(ValueError, match="say which these are, with Annotation"):
        Constraint(size, Fixed(0, 1), Multipliers(images=1, regions=2))(probs)
    with pytest.raises(ValueError, match="multipliers of 1 regions and 1 components for violations of 2 and 1"):
        Constraint(size, Fixed(0, 1), Multipliers(images=1))(probs, None, annotation)


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_they_take_the_same_steps() -> None:
    torch._dynamo.reset()
    logits = 4 * random(2, 3, 5, 6, dtype=torch.float32)
    label = torch.full((2, 5, 6), UNLABELLED)
    found = []
    for compiled in (False, True):
        penalty = Multipliers(images=3, regions=2)
        supervise = Supervision(constraints=[Constraint(size, Fixed(3, 4), penalty)])

        def loss(z: torch.Tensor, index: torch.Tensor, supervise: Supervision = supervise) -> torch.Tensor:
            return supervise(z, None, Annotation(label, index=index)).total

        run = torch.compile(loss, fullgraph=True, backend="aot_eager") if compiled else loss
        gradients = []
        for index in ([0, 2], [2, 1], [0, 2]):
            z = logits.clone().requires_grad_()
            gradients.append(torch.autograd.grad(run(z, torch.tensor(index)), z)[0])
        found.append((*gradients, penalty.values))
    assert found[0][-1].gt(0).any()
    for eager, traced in zip(*found, strict=True):
        torch.testing.assert_close(traced, eager)


@pytest.mark.skipif(importlib.util.find_spec("cooper") is None, reason="cooper-optim is not installed")
def test_cooper_takes_the_same_steps() -> None:
    """The plain Lagrangian of cooper with simultaneous updates: as many steps, the same multiplier at each of them."""
    import cooper

    target = (3 * random(1, 2, 4, 5, dtype=torch.float32)).log_softmax(dim=1)
    bound, lr, step_size, steps = 4.0, 0.05, 0.3, 200

    class Problem(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            self.multiplier = cooper.multipliers.DenseMultiplier(num_constraints=1)
            self.upper = cooper.Constraint(
                multiplier=self.multiplier,
                constraint_type=cooper.ConstraintType.INEQUALITY,
                formulation_type=cooper.formulations.Lagrangian,
            )

        def compute_cmp_state(self, free: torch.Tensor) -> object:
            mine = free.log_softmax(dim=1)
            violation = (mine.exp()[:, 1].sum() - bound).reshape(1)
            observed = {self.upper: cooper.ConstraintState(violation=violation)}
            return cooper.CMPState(loss=(mine.exp() * (mine - target)).sum(), observed_constraints=observed)

    problem = Problem()
    theirs = target.clone().requires_grad_()
    primal = torch.optim.SGD([theirs], lr=lr)
    dual = torch.optim.SGD(problem.dual_parameters(), lr=step_size, maximize=True)
    optimiser = cooper.optim.SimultaneousOptimizer(cmp=problem, primal_optimizers=primal, dual_optimizers=dual)
    penalty = Multipliers(step_size=step_size, damping=0, images=1)
    constraint = Constraint(size, Fixed(None, bound), penalty, scale="typical", typical=1.0)
    annotation = Annotation(torch.full((1, 4, 5), UNLABELLED), index=torch.tensor([0]))
    ours = target.clone().requires_grad_()
    sgd = torch.optim.SGD([ours], lr=lr)
    for _ in range(steps):
        optimiser.roll(compute_cmp_state_kwargs={"free": theirs})
        sgd.zero_grad()
        mine = ours.log_softmax(dim=1)
        ((mine.exp() * (mine - target)).sum() + constraint(mine.exp(), None, annotation)).backward()
        sgd.step()
        torch.testing.assert_close(penalty.values[0, 1, 0], problem.multiplier.weight.detach(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert penalty.values[0, 1] > 0.5
