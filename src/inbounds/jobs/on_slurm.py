"""Tasks as an array of Slurm's, by submitit: each is stopped before its time is up, and queued again to go on.

What travels is a pickle of paths and numbers, in a folder that only its owner can look into. Results do not: they
are where the lines say.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput
from inbounds.jobs.cluster import Cluster
from inbounds.jobs.task import Task

FOLDER = "slurm"
ARRAY = 1000
"""Tasks in one array: Slurm takes 1,001 unless it is told otherwise."""
AGAIN = 10_000
"""So often a task may be queued again; lines give up by themselves before that."""
POLL = 5.0


class Lines:
    """What Slurm runs: submitit calls it, and its `checkpoint` before the job is queued again."""

    def __init__(self) -> None:
        self.task: Task | None = None

    def __call__(self, folder: str, numbers: Sequence[int], here: str) -> None:
        """Do the lines."""
        self.task = task = Task(Path(folder), numbers, here)
        known = getattr(signal, "SIG" + os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2"))  # which submitit hears

        def hear(number: int, _: object) -> None:
            if not task.stopped and number == signal.SIGTERM and not _goes_on():
                task.stop()
            elif not task.stopped:
                signal.raise_signal(known)

        for number in {signal.SIGUSR1, signal.SIGTERM} - {known}:
            signal.signal(number, hear)
        task.run()

    def checkpoint(self, folder: str, numbers: Sequence[int], here: str) -> Any:
        """Stop; every finished epoch is kept, and another job goes on from there."""
        assert self.task is not None
        self.task.stop()
        return _submitit().helpers.DelayedSubmission(Lines(), folder, numbers, here)


def pack(folder: Path, cluster: Cluster) -> int:  # noqa: ARG001
    """So many lines in a task."""
    return cluster.slurm.pack


def hand(folder: Path, groups: Sequence[Sequence[int]], cluster: Cluster, look: Callable[[], object]) -> None:
    """Submit tasks, unless earlier ones are still queued, and wait until none is."""
    if not queued(folder):
        submit(folder, groups, cluster)
    while queued(folder):
        look()
        time.sleep(POLL)


def submit(folder: Path, groups: Sequence[Sequence[int]], cluster: Cluster) -> list[str]:
    """Submit tasks as arrays; the names of their jobs."""
    submitit, asked = _submitit(), cluster.slurm
    if queued(folder):
        raise BadInput(f"{folder}: Slurm has tasks of it still; wait for them, or leave --no-wait out")
    logs = folder.resolve() / FOLDER
    logs.mkdir(mode=0o700, exist_ok=True)
    executor = submitit.SlurmExecutor(logs, max_num_timeout=AGAIN)
    options = {
        "job_name": name_of(folder),
        "time": asked.minutes,
        "cpus_per_task": asked.cpus,
        "srun_args": [f"--cpus-per-task={asked.cpus}"],  # which no longer follows from the job's
        "gpus_per_node": asked.gpus or None,
        "mem": None if asked.memory_gb is None else f"{round(asked.memory_gb * 1024)}MB",
        "partition": asked.partition,
        "account": asked.account,
        "array_parallelism": asked.at_once,
        "signal_delay_s": asked.notice,
        "setup": asked.setup or None,
        "additional_parameters": {"requeue": True, **asked.more},
    }
    executor.update_parameters(**{name: value for name, value in options.items() if value is not None})
    jobs: list[Any] = []
    for first in range(0, len(groups), ARRAY):
        some = groups[first : first + ARRAY]
        try:
            jobs += executor.map_array(Lines(), [str(folder)] * len(some), some, [str(Path.cwd())] * len(some))
        except submitit.core.utils.FailedJobError as error:
            said = (str(error).strip() or "sbatch failed").splitlines()[-1]
            raise BadInput(f"--on slurm: it was not accepted ({said}); correct what [slurm] asks for") from None
    return [job.job_id for job in jobs]


def queued(folder: Path) -> bool:
    """Whether Slurm has a job of this folder, in whatever state; while it does not answer, it may."""
    if shutil.which("sbatch") is None:
        raise BadInput("--on slurm: there is no `sbatch` here; log in to a machine of the cluster")
    command = ["squeue", "--noheader", f"--name={name_of(folder)}", f"--user={os.getuid()}", "--format=%i"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return True
    return answer.returncode != 0 or bool(answer.stdout.strip())


def _goes_on() -> bool:
    """Whether the job that this process is of runs, as it does no longer once somebody has cancelled it."""
    command = ["squeue", "--noheader", f"--jobs={os.environ['SLURM_JOB_ID']}", "--format=%T"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return False
    return answer.stdout.strip() == "RUNNING"


def name_of(folder: Path) -> str:
    """What the jobs of a folder are called."""
    return f"inbounds-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]}"


def _submitit() -> Any:
    try:
        return importlib.import_module("submitit")
    except ImportError:
        raise BadInput("--on slurm needs submitit: pip install 'inbounds[slurm]'") from None
