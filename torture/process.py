"""A command of the package in a process forked from this one, in which everything heavy is imported already."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import multiprocessing.process
import os
import pkgutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import inbounds
from inbounds.errors import BadInput
from torture.watch import Stop, Watch

HEAVY = (
    *("torch", "torch._dynamo", "torch.export", "torch.utils.tensorboard", "lightning.fabric", "lightning_fabric"),
    *("SimpleITK", "nibabel", "monai.networks.nets", "PIL.Image", "matplotlib.pyplot", "jinja2", "pydicom"),
    *("onnx.reference", "onnxscript", "torch.onnx._internal.exporter._core"),
)
"""What commands import beside the modules of the package, where it is installed."""
ONE_THREAD = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "ITK_GLOBAL_DEFAULT")
LIMIT = 60.0
"""Seconds for a command that nobody said more of."""
LINGERS = 15.0
"""Seconds in which what a command has started should have ended too; importing what training needs takes some."""
LARGEST = 4 * 2**30
"""Bytes that a file, or the memory of a process beyond what it begins with, may have: a guard for this machine."""
CRASHED = 70
commands: list[Command] = []
"""Those that were started from here."""


@dataclass(frozen=True)
class Place:
    """The folder of a case: where its commands run, and what stands in for the rest of the computer."""

    root: Path

    @property
    def here(self) -> Path:
        """Where its commands run and what they are about."""
        return self.root / "here"

    @property
    def temporary(self) -> Path:
        """The system's folder for temporary files."""
        return self.root / "tmp"

    def made(self) -> Place:
        """The same, when its folders are there."""
        for folder in (self.here, self.temporary, self.root / "home"):
            folder.mkdir(parents=True, exist_ok=True)
        return self


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: What it exited with; below 0, the signal that ended it.
        seconds: How long it took.
        memory: By how many MB it grew at most.
        out: What it printed.
        err: What it said beside.
        changes: How often it changed files.
        notes: What no command should do, in words.
        late: It was ended because it took too long.
        orphans: A process that it started was still there afterwards.
    """

    code: int
    seconds: float
    memory: float
    out: str
    err: str
    changes: int
    notes: tuple[str, ...] = ()
    late: bool = False
    orphans: bool = False


def warm_up() -> None:
    """Import everything once, so that each command starts within milliseconds; one thread, as forks need it."""
    if not hasattr(os, "fork"):
        raise BadInput("the campaigns fork processes, which this system cannot do; run them on Linux or macOS")
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ONE_THREAD} | {"CUDA_VISIBLE_DEVICES": ""}
    os.environ["ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS"] = "1"
    found = [module.name for module in pkgutil.walk_packages(inbounds.__path__, "inbounds.")]
    for name in (*HEAVY, *(name for name in found if not name.endswith(("__main__", "_triton")))):
        with suppress(ImportError):
            importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # so that a child does not touch, and so copy, what it never uses


@dataclass
class Command:
    """A command that runs.

    Attributes:
        process: Its number, which is that of its group too.
        place: Where it runs.
        label: How the files are called that take what it says.
        begun: When it did.
        status: As the system gave it when it had ended.
        memory: By how many MB it grew at most.
    """

    process: int
    place: Place
    label: str
    begun: float
    status: int | None = None
    memory: float = 0.0
    seconds: float = field(default=0.0, init=False)

    def running(self) -> bool:
        """Whether it has not ended, be it that it stands still."""
        self.stopped()
        return self.status is None

    def stopped(self) -> bool:
        """Whether it has stood still since this was asked last."""
        if self.status is not None:
            return False
        process, status, used = os.wait4(self.process, os.WNOHANG | os.WUNTRACED)
        if process and os.WIFSTOPPED(status):
            return True
        if process:
            self.status, self.seconds = status, time.monotonic() - self.begun
            self.memory = _megabytes(used.ru_maxrss)
        return False

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send it, and if need be all that it started, a signal."""
        if self.running():
            (os.killpg if group else os.kill)(self.process, number)

    def ended(self, limit: float = LIMIT, *, after: Stop | None = None) -> Ended:
        """Wait for its end, stop it on the way if need be, and say how it ended."""
        late = False
        while self.running():
            time.sleep(0.002)
            passed = time.monotonic() - self.begun
            if after is not None and after.after and passed > after.after and self._file("notes").stat().st_size:
                self.signal(after.signal, group=after.group)
                after = None
            if passed > limit:
                late = True
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGKILL)
        orphans = _left(self.process)
        said = [json.loads(line) for line in self._file("notes").read_text().splitlines()]
        numbers = {kind: what for line in said for kind, what in line.items() if kind in ("changes", "began")}
        assert self.status is not None
        return Ended(
            os.waitstatus_to_exitcode(self.status),
            round(self.seconds, 3),
            round(max(0.0, self.memory - numbers.get("began", self.memory)), 1),
            self._file("out").read_text(errors="replace"),
            self._file("err").read_text(errors="replace"),
            numbers.get("changes", 0),
            tuple(f"{kind}: {what}" for line in said for kind, what in line.items() if kind not in numbers),
            late,
            orphans,
        )

    def _file(self, kind: str) -> Path:
        return self.place.root / f"{self.label}.{kind}"


def start(words: Sequence[object], place: Place, stop: Stop | None = None) -> Command:
    """`inbounds` with these words, in a process of its own; if need be it stops itself at an event."""
    label = f"command-{len(list(place.root.glob('*.notes'))):02d}"
    files = [os.open(place.root / f"{label}.{kind}", os.O_RDWR | os.O_CREAT) for kind in ("out", "err", "notes")]
    begun = time.monotonic()
    process = os.fork()
    if process:
        for file in files:
            os.close(file)
        commands.append(Command(process, place, label, begun))
        return commands[-1]
    try:
        code = _inside([str(word) for word in words], place, stop, *files)
    except BaseException:
        os.write(files[1], traceback.format_exc().encode())
        code = CRASHED
    os._exit(code)


def run(words: Sequence[object], place: Place, stop: Stop | None = None, limit: float = LIMIT) -> Ended:
    """The same, to its end."""
    return start(words, place, stop).ended(limit, after=stop)


def apart(work: Callable[[], object]) -> None:
    """Do something in a process of its own: it may start threads, after which this one could not fork."""
    process = os.fork()
    if not process:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        raise RuntimeError("it broke off; see above")


def _inside(words: list[str], place: Place, stop: Stop | None, out: int, err: int, notes: int) -> int:
    """What the new process does: it becomes a program of its own, and calls the package."""
    import resource

    from inbounds import cli

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(place.here)
    for target, file in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        os.dup2(file, target)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(os.fdopen(n, "rb" if n == 0 else "wb"), encoding="utf-8", line_buffering=n == 2)
        for n in range(3)
    )
    os.environ |= {"TMPDIR": str(place.temporary), "HOME": str(place.root / "home"), "COLUMNS": "200", "TERM": "dumb"}
    tempfile.tempdir = None
    multiprocessing.process.ORIGINAL_DIR = str(place.here)  # type: ignore[attr-defined]
    sys.dont_write_bytecode = True
    sys.modules["__main__"] = ModuleType("__main__")
    sys.argv = ["inbounds", *words]
    for kind, most in ((resource.RLIMIT_FSIZE, LARGEST), (resource.RLIMIT_AS, _address_space() + LARGEST)):
        resource.setrlimit(kind, (most, most))
    watch = Watch(place.root, _readable(), notes, stop)
    watch.note("began", _peak())
    watch.begin()
    code = _called(cli.run)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what Python says of it at its own end is not the package's
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    watch.note("changes", watch.changes)
    return code


def _called(program: Callable[[], object]) -> int:
    """The exit code that Python would have given."""
    try:
        program()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        return 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _readable() -> tuple[str, ...]:
    """Where a command may read: Python, its packages, the package itself, and what the system tells of itself."""
    ours = Path(inbounds.__file__).resolve().parents[2]
    roots = [sys.prefix, sys.base_prefix, *filter(None, sys.path), ours]
    system = ["/dev/null", "/dev/urandom", "/proc/", "/sys/", "/usr/lib", "/usr/share", "/lib", "/System/"]
    return (*(os.path.realpath(str(root)) for root in roots), *system)


def _address_space() -> int:
    import resource

    file = Path("/proc/self/statm")
    return int(file.read_text().split()[0]) * resource.getpagesize() if file.exists() else 2**40


def _peak() -> float:
    import resource

    return _megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _megabytes(maximum: int) -> float:
    return maximum / (2**20 if sys.platform == "darwin" else 2**10)


def _left(group: int) -> bool:
    """Whether any process of a group is still there a while after its first has ended."""
    for _ in range(round(LINGERS / 0.02)):
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    return True


def faults(ended: Ended, codes: set[int], when: str) -> list[str]:
    """What is wrong with how a command ended."""
    wrong = []
    if ended.code not in codes:
        last = (ended.err.strip().splitlines() or [""])[-1]
        wrong.append(f"{when}, it ended with {ended.code}, not with {' or '.join(map(str, sorted(codes)))}: {last}")
    if "Traceback (most recent call last)" in ended.err:
        wrong.append(f"{when}, it showed a traceback: {ended.err.strip().splitlines()[-1]}")
    if ended.late:
        wrong.append(f"{when}, it did not end within {ended.seconds:.0f} s")
    if ended.orphans:
        wrong.append(f"{when}, it left a process behind that still ran")
    return wrong + [f"{when}, {note}" for note in ended.notes]
