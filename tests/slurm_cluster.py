"""A Slurm of two nodes on this machine, with a munge of its own: everything lies in one folder, and ends with it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={root}/run/munge.sock,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
StateSaveLocation={root}/ctld
SlurmdSpoolDir={root}/d/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd.%n.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldTimeout=30
SlurmdTimeout=6
KillWait=5
JobRequeue=1
NodeName=n[0-1] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str:
    """Why there can be no Slurm here; nothing if there can."""
    if os.geteuid():
        return "Slurm is begun by root"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"Slurm is not installed: no {missing[0]} (Debian: slurm-wlm munge)" if missing else ""


@dataclass
class SlurmCluster:
    """Two nodes, n0 and n1, of two cores each.

    Attributes:
        root: Where all lies.
        daemons: By name.
    """

    root: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def begin(self, name: str, *command: str) -> None:
        with (self.root / "log" / f"{name}.out").open("wb") as log:
            self.daemons[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def begin_node(self, number: int) -> None:
        self.begin(f"n{number}", "slurmd", "-D", "-N", f"n{number}")

    def lose_node(self, number: int) -> None:
        """End a node and all that runs there, at once, as if its plug was pulled."""
        daemon = self.daemons.pop(f"n{number}")
        daemon.kill()
        for which in (self._is_step, self._is_job):
            for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]:
                with suppress(OSError):
                    if which(pid, number):
                        os.kill(pid, signal.SIGKILL)
        daemon.wait()

    def _is_step(self, pid: int, number: int) -> bool:
        """Whether a process looks after a step on a node: it writes into the node's log."""
        log = str(self.root / "log" / f"slurmd.n{number}.log")
        return log in [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]

    def _is_job(self, pid: int, number: int) -> bool:
        """Whether a process was begun by a job on a node."""
        told = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return {f"SLURMD_NODENAME=n{number}".encode(), f"SLURM_CONF={self.root / 'slurm.conf'}".encode()} <= set(told)

    def told(self, *command: str) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def jobs(self) -> list[str]:
        """Those that run, as `id node`."""
        return self.told("squeue", "--noheader", "--states=R", "--format=%i %N").split("\n")[:-1]

    def end(self) -> None:
        with suppress(subprocess.SubprocessError):
            subprocess.run(
                ["scancel", "--full", "--signal=KILL", "--user=root"], capture_output=True, timeout=10, check=False
            )
        for number in (0, 1):
            if f"n{number}" in self.daemons:
                self.lose_node(number)
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()


@contextmanager
def slurm_cluster(root: Path) -> Iterator[SlurmCluster]:
    """Begin it; programs find it by the environment."""
    for name in ("run", "log", "ctld", "d"):
        (root / name).mkdir(parents=True)
    host = socket.gethostname().partition(".")[0]
    (root / "slurm.conf").write_text(CONF.format(host=host, root=root, ports=_free_ports()))
    key = root / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    cluster, before = SlurmCluster(root), os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(root / "slurm.conf")
    try:
        names = {"socket": "run/munge.sock", "key-file": "munge.key", "log-file": "log/munge.log"}
        names |= {"pid-file": "run/munge.pid", "seed-file": "run/munge.seed"}
        cluster.begin("munged", "munged", "-F", "--force", *(f"--{name}={root / file}" for name, file in names.items()))
        cluster.begin("slurmctld", "slurmctld", "-D")
        cluster.begin_node(0)
        cluster.begin_node(1)
        for _ in range(150):
            with suppress(subprocess.SubprocessError):
                if cluster.told("sinfo", "--noheader", "--states=idle", "--format=%D").strip() == "2":
                    break
            time.sleep(0.2)
        else:
            raise RuntimeError(f"Slurm did not begin: {(root / 'log' / 'slurmctld.log').read_text()[-2000:]}")
        yield cluster
    finally:
        cluster.end()
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before


def _free_ports() -> list[int]:
    """Three in a row."""
    for first in range(26817 + secrets.randbelow(1000) * 3, 32000, 3):
        with suppress(OSError):
            for port in range(first, first + 3):
                with socket.socket() as free:
                    free.bind(("127.0.0.1", port))
            return list(range(first, first + 3))
    raise RuntimeError("no free ports")
