"""Tables as spreadsheets and people write them, gone wrong; through the commands that read tables."""

from __future__ import annotations

import random
from pathlib import Path

from torture import mutate
from torture.bad import LONG, WORDS, Bad
from torture.process import Place

ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7")
PHASES = ("ED", "ES")
PATIENTS = {"phantom001": "train", "phantom002": "train", "phantom003": "validation"}
SPLIT = "case,split\n" + "".join(
    f"{name}_{phase},{part}\n" for name, part in PATIENTS.items() for phase in ("ED", "ES")
)


def make(rng: random.Random, place: Place) -> Bad:
    """A table, and the command that reads it."""
    kind = rng.choice(("clicks", "sizes", "split"))
    table = place.here / "table.csv"
    text = SPLIT if kind == "split" else (place.here / "hearts" / f"{kind}.csv").read_text(encoding="utf-8")
    table.write_text(text, encoding="utf-8")
    whole = (_encoded, _separated, _long, mutate.kind_of, mutate.file_of)
    way = rng.choice((*[_cell] * 4, *[_line] * 2, *whole))
    what = way(rng, table)
    words = {
        "clicks": ["annotate", "bare", "--name", "new", "--points", "table.csv"],
        "sizes": ["facts", "bare", "--name", "new", "--import", "table.csv"],
        "split": ["prepare", "folder", "hearts/scans", "made", "--classes", "background,a", "--split", "table.csv"],
    }[kind]
    if kind == "clicks" and rng.randrange(3) == 0:
        words += rng.choice((["--radius", "10000"], ["--radius", "3.5"], ["--absent-elsewhere"]))
    return Bad(words, ("table.csv",), f"{kind}, {what}")


def _lines(file: Path) -> list[list[str]]:
    return [line.split(",") for line in file.read_text(encoding="utf-8").splitlines()]


def _write(file: Path, lines: list[list[str]], separator: str = ",") -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write("".join(separator.join(line) + "\n" for line in lines))


def _cell(rng: random.Random, file: Path) -> str:
    """Some cells, of the head too, that say something else."""
    lines, said = _lines(file), []
    for _ in range(rng.choice((1, 1, 1, 3))):
        line = rng.choice((0, *range(len(lines))))
        column, text = rng.randrange(len(lines[line])), rng.choice(WORDS["cells"] + LONG)
        lines[line][column] = text
        said.append(f"line {line + 1}, cell {column + 1}: {text[:40]!r}")
    _write(file, lines)
    return ", ".join(said)


def _line(rng: random.Random, file: Path) -> str:
    """Lines that are too long, too short, twice, none, or in another order; columns too."""
    lines = _lines(file)
    number = rng.randrange(1, len(lines))
    column = rng.randrange(len(lines[0]))
    way = rng.choice(("longer", "shorter", "twice", "blank", "none but the head", "a column twice", "no such column"))
    if way == "longer":
        lines[number] += rng.choice((["x"], [""], ["1"] * 500))
    elif way == "shorter":
        lines[number] = lines[number][: rng.randrange(len(lines[number]))]
    elif way == "twice":
        lines.insert(number, list(lines[number]))
    elif way == "blank":
        lines[number:number] = [[""], [" "], ["", "", ""], ["\t"]]
    elif way == "none but the head":
        del lines[1:]
    elif way == "a column twice":
        lines = [[*line, line[min(column, len(line) - 1)]] for line in lines]
    else:
        lines = [[cell for n, cell in enumerate(line) if n != column] for line in lines]
    _write(file, lines)
    return f"line {number + 1}: {way}"


def _encoded(rng: random.Random, file: Path) -> str:
    """In another encoding, with a letter that not all of them have."""
    name = rng.choice(ENCODINGS)
    text = file.read_text(encoding="utf-8") + rng.choice(("", "phantom001_ED,é,0,0,LV\n", "# \u2713\n"))
    content = text.encode(name, errors="replace")
    file.write_bytes(rng.choice((content, b"\xef\xbb\xbf" + content, content + b"\0", content.replace(b"\n", b"\r"))))
    return f"in {name}"


def _separated(rng: random.Random, file: Path) -> str:
    """By other separators, or several of them, quoted or not."""
    separator = rng.choice((";", "\t", "|", " ", ";;", ", ", '","'))
    lines = _lines(file)
    if rng.random() < 0.5:
        lines = [[f'"{cell}"' for cell in line] for line in lines]
    _write(file, lines, separator)
    return f"separated by {separator!r}"


def _long(rng: random.Random, file: Path) -> str:
    """Far too large in one way."""
    text = file.read_text(encoding="utf-8")
    ways = {
        "a cell of 3 MB": text + '"' + "x" * 3_000_000 + '"\n',
        "a line of 300,000 cells": text + "," * 300_000 + "\n",
        "300,000 blank lines": text + "\n" * 300_000,
        "100,000 columns": text.replace("\n", "," + ",".join(f"c{n}" for n in range(100_000)) + "\n", 1),
        "one line without an end": text.replace("\n", " ") * 50,
        "50,000 lines": text + "".join(text.split("\n", 1)[1] for _ in range(50_000 // text.count("\n"))),
    }
    what = rng.choice(list(ways))
    file.write_text(ways[what], encoding="utf-8")
    return what
