"""The rooms of the package: imports go one way, no ring, nothing of the laboratory; and every file has its test."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "inbounds"
ORDER = [
    "errors",
    "reading",
    "described",
    "stopping",
    "memory",
    "locks",
    "writing",
    "progress",
    "ranks",
    "regions",
    "annotations",
    "constraints",
    "regularisers",
    "losses",
    "supervision",
    "scans",
    "sources",
    "store",
    "batches",
    "networks",
    "config",
    "runs",
    "inference",
    "evaluation",
    "training",
    "nnunet",
    "reports",
    "jobs",
    "studio",
    "cli",
    "__main__",
]
WITHOUT_TWIN = {
    "__main__.py": "one call; tests/test_cli.py runs it as a module",
    "cli/__init__.py": "tests/test_cli.py",
    "cli/data.py": "tests/test_cli.py, tests/store/test_annotate.py and tests/store/test_verify.py run its commands",
    "cli/job.py": "tests/studio/test_training.py runs, stops and resumes it",
    "cli/nnunet.py": "tests/nnunet/test_facts.py runs the command",
    "cli/prepare.py": "tests/sources and tests/store/test_prepare.py run its commands",
    "cli/runs.py": "tests/training, tests/inference and tests/reports run its commands",
    "cli/studio.py": "tests/studio/test_serve.py runs the command",
    "cli/shared.py": "options that the commands share, tested with them",
    "losses/ascent.py": "tests/losses/test_proposals.py has proposals and both ways of projecting",
    "losses/ascent_triton.py": "runs on a GPU alone: tests/test_cuda.py",
    "losses/projection.py": "tests/losses/test_proposals.py",
    "jobs/__main__.py": "tests/jobs/test_on_local.py runs it, kills it and stops it",
    "jobs/engine.py": "tests/jobs/test_on_local.py, test_on_slurm.py and test_on_ray.py go through it",
    "jobs/status.py": "tests/jobs/test_work.py and test_on_local.py",
    "jobs/training.py": "tests/jobs/test_work.py and tests/reproduction/test_reproduce.py train through it",
    "cli/sweep.py": "tests/jobs/test_on_local.py runs the command",
    "scans/dicom.py": "tests/scans/test_scan.py reads and writes every format through the same door",
    "scans/format.py": "tests/scans/test_scan.py",
    "scans/gdcm_child.py": "the other side of gdcm.py: tests/scans/test_gdcm.py",
    "scans/segmentation_child.py": "the other side of segmentation.py: tests/scans/test_segmentation.py",
    "scans/itk.py": "tests/scans/test_scan.py",
    "scans/metaimage.py": "tests/scans/test_scan.py",
    "scans/nifti.py": "tests/scans/test_scan.py",
    "sources/source.py": "tests/sources/test_folder.py goes through it with every kind of file",
    "store/measure.py": "tests/store/test_annotate.py and tests/batches/test_fact_tensors.py",
    "store/record.py": "a row of numbers; tests/store/test_store.py reads it",
    "networks/layers.py": "two layers, tested within tests/networks/test_enet.py and test_unet.py",
    "runs/checkpoint.py": "tests/training/test_loop.py kills and resumes runs",
    "runs/machine.py": "what run.json and pages say of it: tests/reports/test_page.py",
    "runs/trial.py": "tests/training/test_refusals.py and tests/networks/test_needs.py try what cannot work",
    "runs/bundle.py": "tests/inference/test_bundle.py writes, moves and spoils bundles",
    "inference/card.py": "tests/inference/test_bundle.py reads the card",
    "runs/model.py": "tests/training/test_loop.py and tests/inference/test_predictor.py",
    "inference/prediction.py": "tests/inference/test_predictor.py",
    "evaluation/evaluate.py": "tests/training/test_loop.py compares it with what the run measured",
    "config/read.py": "tests/config/test_settings.py and tests/config/test_build.py",
    "training/selection.py": "tests/training/test_promises.py",
    "training/data.py": "tests/training/test_train_many.py and test_loop.py",
    "training/step.py": "tests/training/test_stream.py and test_loop.py",
    "studio/actions.py": "tests/studio/test_server.py and its neighbours send every kind, and what cannot be",
    "studio/project.py": "tests/studio/test_scan_labels.py, test_classes.py, test_facts.py and test_database.py",
    "studio/studio.py": "tests/studio/test_pictures.py and test_shelf.py",
    "studio/results.py": "tests/studio/test_server.py",
    "studio/job.py": "tests/studio/test_training.py runs, stops and resumes it",
    "studio/standing.py": "tests/studio/test_training.py and test_preview.py",
    "studio/tables.py": "tests/studio/test_training.py reads them",
    "studio/rows.py": "tests/studio/test_server.py compares what is told with what was done",
    "nnunet/loader.py": "tests/nnunet/test_trainer.py compares what it says of patches with what their labels show",
    "nnunet/looks.py": "tests/nnunet/test_trainer.py compares what it finds with what the network finds by itself",
    "nnunet/trainers/nnUNetTrainerInbounds.py": "one import; tests/nnunet/test_trainer.py has it found",
    "reports/cases.py": "tests/reports/test_page.py",
    "reports/comparison.py": "tests/reports/test_page.py",
    "reports/curves.py": "tests/reports/test_page.py",
    "reports/pictures.py": "tests/reports/test_page.py",
    "reports/provenance.py": "tests/reports/test_page.py",
    "reports/terminal.py": "tests/store/test_verify.py and tests/training/test_loop.py print them",
}
"""Files that have no test file of their own name, and where they are tested instead."""


def imported(file: Path) -> set[str]:
    """The modules that a file imports, those that only type checkers see and those inside functions included."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_imports_go_one_way() -> None:
    against = []
    for file in SOURCE.rglob("*.py"):
        room = room_of(file)
        if room == "__init__":
            continue
        assert room in ORDER, f"{room} is a new room: give it its place"
        used = {name.split(".")[1] for name in imported(file) if name.startswith("inbounds.")} & set(ORDER)
        later = [other for other in used if ORDER.index(other) > ORDER.index(room)]
        against += [f"{file.relative_to(SOURCE)} uses {other}" for other in later]
    assert against == []


def test_the_package_knows_nothing_of_the_laboratory() -> None:
    for file in SOURCE.rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(file)} & {
            "reproduction",
            "benchmarks",
            "torture",
            "release",
        }, file


def test_every_file_has_a_twin_or_a_reason() -> None:
    files = {str(file.relative_to(SOURCE).as_posix()): file for file in SOURCE.rglob("*.py")}
    content = {name: file for name, file in files.items() if file.name != "__init__.py" or name.startswith("cli/")}
    tests = ROOT / "tests"
    missing = [
        name for name, file in content.items() if not (tests / Path(name).parent / f"test_{file.name}").is_file()
    ]
    assert sorted(missing) == sorted(WITHOUT_TWIN)
    for name, reason in WITHOUT_TWIN.items():
        named = [word.strip(",.:;`") for word in reason.split() if word.startswith("tests/")]
        assert all((ROOT / path).exists() for path in named), f"{name}: {reason}"
