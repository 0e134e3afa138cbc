"""Processes that train together: who they are, what a dead one means, and who may begin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from inbounds.errors import BadInput
from inbounds.runs.checkpoint import standing
from inbounds.runs.run import Run
from inbounds.store.store import Store
from inbounds.training.group import SILENT, first_of, variables
from inbounds.training.loop import Trainer
from together import begin, ended
from training_runs import SMALL, kept, start

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
AT = {"MASTER_ADDR": "node7", "MASTER_PORT": "29500"}
SRUN = {
    "SLURM_JOB_ID": "12",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
}


def words(store: Store, *changes: str) -> list[str]:
    settings = [word for change in [*SMALL, *changes] for word in ("--set", change)]
    return ["-m", "inbounds", "train", "tags", "--store", str(store.path), "--annotation", "disc", *settings]


def test_torchrun_and_srun_say_who_a_process_is() -> None:
    assert variables({**TORCHRUN, **AT}) == {**TORCHRUN, **AT}
    said = variables(SRUN)
    assert said is not None
    assert {name: said[name] for name in TORCHRUN} == TORCHRUN
    assert said["MASTER_ADDR"] == "gpu07"
    assert said["MASTER_PORT"] != variables({**SRUN, "SLURM_STEP_ID": "1"})["MASTER_PORT"]
    assert {**variables({**SRUN, **AT}), **TORCHRUN} == {**TORCHRUN, **AT}


def test_a_batch_script_and_a_lone_task_are_alone() -> None:
    assert variables({}) is None
    assert variables({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "12"}) is None
    assert variables({**SRUN, "SLURM_STEP_NUM_TASKS": "1"}) is None
    assert variables({"RANK": "3", "WORLD_SIZE": "4"}) is None
    with pytest.raises(BadInput, match="--ntasks-per-node"):
        variables({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "3,1"})


def test_the_first_machine_of_a_list() -> None:
    lists = {"gpu[07-09,12],login": "gpu07", "a,b": "a", "node-3": "node-3", "n[5,7]": "n5"}
    assert {text: first_of(text) for text in lists} == lists


def test_processes_begun_by_torchrun_train_one_run(tmp_path: Path, hearts: Store) -> None:
    """The command as it stands; torchrun itself takes no `--run`, so the folder has a second name."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = tmp_path / "run"
    done = subprocess.run(
        [*command, *words(hearts, "training.epochs=2"), "--classes", "LV", "--out", str(run)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("finished") == 1
    assert done.stderr.count("epoch 2/2") == 1
    alone = start(tmp_path / "alone", hearts, "tags", "training.epochs=2")
    Trainer(alone).fit()
    assert kept(Run.open(run)).keys() == kept(alone).keys()


def test_a_run_goes_on_with_another_number_of_devices(tmp_path: Path, hearts: Store) -> None:
    """From two to one and the reverse: schedule and order of batches are those of a run that was never stopped."""
    changes = [
        "augment.rotate=20",
        "training.schedule=cosine",
        "network.settings={spatial_dims=2,channels=[4,8],strides=[2],bias=false}",
    ]
    runs = {
        name: start(tmp_path / name, hearts, "volume", "training.epochs=3", *changes)
        for name in ("whole", "down", "up")
    }
    Trainer(runs["whole"]).fit()
    for name, numbers in (("down", (2, 1)), ("up", (1, 2))):
        for number, stop in zip(numbers, (1, 3), strict=True):
            ended(begin(number, ["-c", UNTIL, runs[name].path, stop]))
        assert runs[name].checkpoint is not None
        assert runs[name].checkpoint.name == "0003"
        assert_close(runs["whole"], runs[name])


UNTIL = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from inbounds.runs.run import Run
from inbounds.training.group import part_ways
from inbounds.training.loop import Trainer
trainer, last = Trainer(Run.open(Path(sys.argv[1]))), int(sys.argv[2])
epoch = trainer._epoch
def until(*told):
    if trainer.state.epoch == last:
        raise KeyboardInterrupt
    return epoch(*told)
trainer._epoch = until
try:
    trainer.fit(resume=True)
except KeyboardInterrupt:
    pass
part_ways()
"""


def assert_close(one: Run, other: Run) -> None:
    assert one.checkpoint is not None
    assert other.checkpoint is not None
    for file in ("last.safetensors", "optimiser.safetensors"):
        here, there = load_file(one.checkpoint / file), load_file(other.checkpoint / file)
        assert here.keys() == there.keys()
        for name, tensor in here.items():
            if "generator" in name:
                assert torch.equal(tensor, there[name]), name
            else:
                torch.testing.assert_close(there[name], tensor, rtol=1e-4, atol=1e-5, equal_nan=True, msg=name)
    assert standing(one.checkpoint).lr == standing(other.checkpoint).lr


@pytest.mark.parametrize("how", ["killed", pytest.param("silent", marks=pytest.mark.slow)])
def test_where_one_process_is_gone_the_others_stop_with_one_sentence(tmp_path: Path, hearts: Store, how: str) -> None:
    """Killed, or stopped without a word; and the run goes on with `--resume`."""
    run, command = tmp_path / "run", words(hearts, "training.epochs=60")
    processes = begin(2, [*command, "--classes", "LV", "--run", run])
    while not list(run.glob("checkpoints/0*/state.json")):
        assert all(process.poll() is None for process in processes), ended(processes)
        time.sleep(0.2)
    begun = time.monotonic()
    processes[1].send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    (said,) = ended(processes[:1], code=1, seconds=SILENT + 30)
    assert time.monotonic() - begun < 30
    lines = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    assert "another of the 2 processes that train together has ended" in lines[0]
    assert "--resume" in lines[0]
    assert "Traceback" not in said
    processes[1].kill()
    processes[1].communicate()
    opened = Run.open(run)
    before = int(opened.checkpoint.name)
    going = Trainer(opened).steps(resume=True)
    while int(opened.checkpoint.name) == before:
        next(going)
    going.close()


def test_one_process_of_our_own_that_is_killed_ends_the_command(tmp_path: Path, hearts: Store) -> None:
    """`training.devices=2` starts two; a second command on the run is refused while they train."""
    run, command = tmp_path / "run", words(hearts, "training.epochs=60", "training.devices=2")
    (process,) = begin(1, [*command, "--classes", "LV", "--run", run])
    while not list(run.glob("checkpoints/0*/state.json")):
        assert process.poll() is None, ended([process])
        time.sleep(0.2)
    (said,) = ended(begin(1, [*command, "--classes", "LV", "--run", run, "--resume"]), code=2)
    assert "in use by process" in said
    together = ended(begin(2, [*command, "--classes", "LV", "--run", run, "--resume"]), code=2)
    assert sum("in use by process" in one for one in together) == 1
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        pytest.skip("this system does not tell the children of a process")
    spawned = [int(number) for number in children.read_text().split()]
    trains = [number for number in spawned if b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes()]
    assert len(trains) == 2
    begun = time.monotonic()
    os.kill(trains[-1], signal.SIGKILL)
    (said,) = ended([process], code=1, seconds=60)
    assert time.monotonic() - begun < 30
    lines = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, said
    assert "--resume" in lines[0]
