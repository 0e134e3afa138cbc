"""Lines that predict: each some scans, whose masks go where one process alone would write them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from inbounds.config.build import trust
from inbounds.described import Described, read_json
from inbounds.errors import BadInput
from inbounds.inference.files import Outcome, check_targets, conclude, to_write
from inbounds.inference.many import Asked as Job
from inbounds.inference.many import Found, segmented
from inbounds.inference.predictor import Predictor
from inbounds.jobs import chunks
from inbounds.jobs.chunks import Hands
from inbounds.jobs.manifest import Line, checked
from inbounds.jobs.status import Standing
from inbounds.locks import locked
from inbounds.scans.data_file import FOLLOW
from inbounds.scans.series import ANY, Wanted
from inbounds.writing import remove, write_json

progress = chunks.progress


class Asked(Described):
    """What of a prediction decides what each scan becomes.

    Attributes:
        runs: Their folders.
        model: Which network.
        device: Where it computes.
        largest: Keep the largest piece of each class only.
        doubt: Look for what speaks against each mask.
        follow: Read data files that a header names elsewhere.
        imports: Modules that the person named.
        codes: What classes are in DICOM, where masks become segmentation objects.
    """

    runs: list[str]
    model: str | None = None
    device: str = "auto"
    largest: bool = False
    doubt: bool = True
    follow: bool = False
    imports: list[str] = []  # noqa: RUF012 (pydantic copies it)
    codes: list[str] | None = None

    def predictor(self, device: str = "") -> Predictor:
        """The networks."""
        for module in self.imports:
            trust(module)
        return Predictor(self.runs, self.model, device or self.device, largest=self.largest, doubt=self.doubt)


class Scan(Described):
    """A scan of a chunk: its files, and where its mask and its probabilities go."""

    name: str
    files: list[str]
    target: str
    extra: str | None = None


class Chunk(Described):
    """What a line says.

    Attributes:
        asked: Of all scans.
        scans: Those of this chunk.
        stamps: Of the scans' files and of the networks.
    """

    asked: Asked
    scans: list[Scan]
    stamps: list[str]


class Part(Described):
    """What became of a chunk."""

    found: list[Found]


def work(folder: Path, lines: Mapping[int, Line], failed: Callable[[int, str], None]) -> None:
    """Segment the scans of some lines; one that cannot be read is told with the others, and fails no line."""
    for number, line in lines.items():
        chunk = checked(line, Chunk, folder)
        FOLLOW.set(chunk.asked.follow)
        try:
            predictor = chunk.asked.predictor()
        except BadInput as error:
            failed(number, str(error))
            continue
        scans = [
            Job(one.name, [*map(Path, one.files)], Path(one.target), Path(one.extra) if one.extra else None)
            for one in chunk.scans
        ]
        found: list[Found] = []
        with segmented(predictor, scans, chunk.asked.codes, found) as coming:
            deque(coming, maxlen=0)
        write_json(folder / line.place, json.loads(TypeAdapter(Part).dump_json(Part(found=found))))


def predict_on(
    hands: Hands,
    asked: Asked,
    inputs: Sequence[Path],
    out: Path,
    *,
    probabilities: bool = False,
    overwrite: bool = False,
    wanted: Wanted = ANY,
    codes: Sequence[str] | None = None,
    say: Callable[[str], object] = lambda _: None,
    heard: Callable[[list[Standing]], object] = lambda _: None,
) -> tuple[Outcome, Predictor]:
    """As `predict_files`, by others; begun again, it goes on with what is not done."""
    asked = asked.model_copy(update={"codes": None if codes is None else [*codes]})
    predictor = asked.predictor("cpu")  # whoever asks may be on a machine without the device
    cases, targets, extra = to_write(predictor, inputs, out, probabilities, codes, wanted, say)
    networks = chunks.stamp(run.weights(name) for run, name in zip(predictor.runs, predictor.models, strict=True))
    scans = [
        Scan(name=name, files=[*map(str, files)], target=str(targets[name]), extra=str(extra[name]) if extra else None)
        for name, files in cases.items()
    ]
    with locked(out, inside=True):
        pieces = [scans[first : first + hands.chunk] for first in range(0, len(scans), hands.chunk)]
        stamps = [[networks, *(chunks.stamp(cases[one.name]) for one in some)] for some in pieces]
        about = [
            Chunk(asked=asked, scans=some, stamps=its).model_dump() for some, its in zip(pieces, stamps, strict=True)
        ]
        lines = chunks.planned("predict", about)
        check_targets(cases, [*targets.values(), *extra.values()], out, overwrite or chunks.begun(out, lines))
        done = chunks.do(out, lines, hands, heard)
        parts = [read_json(file, Part, "remove it, and predict again") for file in done]
        outcome = conclude(predictor, [one for part in parts for one in part.found], targets, out)
        remove(chunks.folder_of(out))
    return outcome, predictor
