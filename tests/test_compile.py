"""Under `torch.compile(fullgraph=True)` nothing breaks the graph, and losses and gradients stay what they were."""

from __future__ import annotations

import pytest
import torch

from cases import BOUNDS, PENALTIES, PLANE, STATISTICS, VOLUME, batch, constraint, related
from inbounds import Annotation, Constraint, Exact, Individual, Regulariser, Supervision, log_barrier, recipes, size
from inbounds.regularisers import regularisers

# What torch's own modules warn of while they are imported is not ours to mend.
pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def compiles(loss, logits: torch.Tensor, backend: str = "aot_eager"):
    """The eager and the compiled loss agree, gradients too; returns the compiled function."""
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    results = []
    for run in (loss, compiled):
        z = logits.clone().requires_grad_()
        value = run(z)
        results.append((value.detach(), *torch.autograd.grad(value, z)))
    for eager, traced in zip(*results, strict=True):
        assert eager.isfinite().all()
        torch.testing.assert_close(traced, eager)
    return compiled


@pytest.mark.parametrize("name", recipes)
def test_recipes(name) -> None:
    logits, image, annotation = batch(3, PLANE)
    supervise = recipes[name]()
    compiles(lambda z: supervise(z, image, annotation).total, logits)


def test_exact_proposals_of_one_class() -> None:
    logits, image, annotation = batch(3, PLANE)
    supervise = recipes["proposals_individual"](project=Exact(), harden=False, classes=[1])
    compiles(lambda z: supervise(z, image, annotation).total, logits)


def test_named_terms() -> None:
    logits, image, annotation = batch(3, PLANE)
    supervise = recipes["centroid"]()
    named = torch.compile(supervise, fullgraph=True, backend="aot_eager")(logits, image, annotation).named
    for name, term in supervise(logits, image, annotation).named.items():
        torch.testing.assert_close(named[name], term)


@pytest.mark.parametrize(
    ("space", "scope"),
    [(PLANE, "image"), (PLANE, "volume"), pytest.param(VOLUME, "image", marks=pytest.mark.slow)],
    ids=["2d", "scans", "3d"],
)
def test_statistics_together(space, scope) -> None:
    logits, image, annotation = batch(3, space)
    bounds = Individual(relative=0.01)
    supervise = Supervision(constraints=[constraint(n, space, bounds, scope=scope, name=n) for n in STATISTICS])
    compiles(lambda z: supervise(z, image, annotation).total, logits)


@pytest.mark.parametrize(("penalty", "scope"), [*((p, "image") for p in PENALTIES), ("quadratic", "volume")])
def test_bounds_and_penalties(penalty, scope) -> None:
    logits, image, annotation = batch(3, PLANE)
    every = [Constraint(size, bounds, PENALTIES[penalty], scope=scope, name=name) for name, bounds in BOUNDS.items()]
    supervise = Supervision(constraints=every)
    compiles(lambda z: supervise(z, image, annotation).total, logits)


@pytest.mark.parametrize("name", regularisers)
@pytest.mark.parametrize("space", [PLANE, pytest.param(VOLUME, marks=pytest.mark.slow)], ids=["2d", "3d"])
def test_regularisers(space, name) -> None:
    logits, image, _ = batch(3, space)
    term = regularisers[name]
    compiles(lambda z: term(z.softmax(1), image).sum(), logits)
    supervise = Supervision(regularisers=[Regulariser(term)])
    known = Annotation(torch.zeros(4, *space, dtype=torch.long))
    compiles(lambda z: supervise(z, image, known).total, logits)


def test_classes_apart_and_violations() -> None:
    logits, image, annotation = batch(4, PLANE)
    wanted = Constraint(size, BOUNDS["individual"], classes=[3, 1])
    compiles(lambda z: wanted(z.softmax(1), image, annotation), logits)
    for hard in (False, True):
        compiled = torch.compile(wanted.violation, fullgraph=True, backend="aot_eager")
        probs = logits.softmax(1)
        torch.testing.assert_close(
            compiled(probs, image, annotation, hard=hard), wanted.violation(probs, image, annotation, hard=hard)
        )


@pytest.mark.parametrize("space", [PLANE, pytest.param(VOLUME, marks=pytest.mark.slow)], ids=["2d", "3d"])
def test_several_regions_at_once(space) -> None:
    logits, image, annotation = batch(3, space)
    supervise = Supervision(constraints=related())
    compiles(lambda z: supervise(z, image, annotation).total, logits)


def test_exact_proposals_of_several_classes_together() -> None:
    logits, image, annotation = batch(4, PLANE)
    supervise = recipes["proposals_individual"](project=Exact(), harden=False, classes=[(1, 2), 2, 3])
    compiles(lambda z: supervise(z, image, annotation).total, logits)


def test_a_schedule_changes_t_without_recompiling() -> None:
    logits, image, annotation = batch(2, PLANE)
    t = torch.tensor(2.0)
    wanted = Constraint(size, BOUNDS["fixed"], log_barrier(t))

    def loss(z: torch.Tensor) -> torch.Tensor:
        return wanted(z.softmax(1), image, annotation)

    compiled = compiles(loss, logits)
    before = compiled(logits)
    t.mul_(3)
    with torch.compiler.set_stance("fail_on_recompile"):
        after = compiled(logits)
    assert after != before
    torch.testing.assert_close(after, loss(logits))


@pytest.mark.slow
def test_default_backend() -> None:
    logits, image, annotation = batch(3, PLANE)
    supervise = recipes["centroid"]()
    compiles(lambda z: supervise(z, image, annotation).total, logits, backend="inductor")
