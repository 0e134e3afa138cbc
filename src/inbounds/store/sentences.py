"""Facts from sentences of reports, "LV EDV 142 ml, ESV 61 ml": what fits a pattern whole is read, the rest is named.

A sentence is taken apart at commas, semicolons, full stops and "and". A part says one thing:

    [CLASS] [EDV | ESV | volume | size | area] [of | is | : | =] NUMBER UNIT
    no CLASS   |   CLASS is absent | not seen | present | seen

`CLASS` is a class of the store, or a word that stands for one; where a part has none, it is of the class before it.
`NUMBER` may be a range, `140-150` or `140 to 150`, `120 +/- 10`, or have `at least`, `>`, `up to`, `<`, `about` in
front. `UNIT` is ml, cc, cm3, mm3, l, or of a slice mm2, cm2. EDV and ESV are of the patient's scan at end-diastole and
at end-systole. A part that has any other word is left out: nobody guesses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inbounds.errors import BadInput, nearest
from inbounds.store.facts import Fact, Facts, fact_of, known_columns
from inbounds.store.record import Record
from inbounds.store.table_reader import Row, read_table

NUMBER = r"\d+(?:[.,]\d+)?"
UNITS = {
    **dict.fromkeys(("ml", "cc", "cm3", "cm\u00b3"), ("volume_ml", 1.0)),
    **dict.fromkeys(("mm3", "mm\u00b3"), ("volume_ml", 1e-3)),
    "l": ("volume_ml", 1e3),
    **dict.fromkeys(("mm2", "mm\u00b2"), ("size_mm2", 1.0)),
    **dict.fromkeys(("cm2", "cm\u00b2"), ("size_mm2", 100.0)),
}
"""What a unit gives, and its numbers in the unit of that column."""
LOWER, UPPER = r"at least|more than|above|over|>=|\u2265|>", r"at most|up to|less than|below|under|<=|\u2264|<"
MEASURED = re.compile(
    rf"(?P<least>{LOWER})?(?P<most>{UPPER})?\s*(?:about|approximately|approx\.?|ca\.?|~)?\s*"
    rf"(?P<one>{NUMBER})\s*(?:(?P<to>-|\u2013|to|\+/-|\u00b1)\s*(?P<two>{NUMBER})\s*)?"
    rf"(?P<unit>{'|'.join(sorted(UNITS, key=len, reverse=True))})(?![\w/\u00b2\u00b3])",
    re.IGNORECASE,
)
PHASES = {
    "ED": r"EDV|end[- ]diastolic(?: volume)?|(?:volume )?(?:at|in) (?:end[- ])?diastole",
    "ES": r"ESV|end[- ]systolic(?: volume)?|(?:volume )?(?:at|in) (?:end[- ])?systole",
}
PRESENCE = (
    (r"(?:no|without|absent)", r"", False),
    (r"", r"(?:is |was )?(?:absent|not (?:seen|present|visible))", False),
    (r"", r"(?:is |was )?(?:present|seen|visible)", True),
)
FILLERS = re.compile(r"\b(?:the|of|is|was|measures|measured|has|a|an|volume|size|area|total)\b|[:=]", re.IGNORECASE)
PARTS = re.compile(r";|[,.](?=\s|$)|\band\b", re.IGNORECASE)


@dataclass(frozen=True)
class Heard:
    """A part of a sentence, and the fact that it gives, or why it gives none."""

    where: str
    part: str
    fact: Fact | None = None
    reason: str = ""


@dataclass(frozen=True)
class Sentences:
    """The facts of all sentences, and part for part what was understood."""

    facts: Facts
    heard: tuple[Heard, ...]

    @property
    def not_understood(self) -> list[Heard]:
        """The parts that gave no fact."""
        return [one for one in self.heard if one.fact is None]


def read_sentences(
    path: Path, classes: Sequence[str], cases: Mapping[str, Record], words: Mapping[str, str] | None = None
) -> Sentences:
    """Read a table with the columns `case`, a scan or a patient, and `report`; and maybe `slice`.

    Args:
        path: The table.
        classes: Of the store, background first.
        cases: The scans by name.
        words: What else classes are called, such as `{"left ventricle": "LV"}`.
    """
    named = {name.lower(): name for name in classes[1:]}
    for word, klass in (words or {}).items():
        if klass not in classes[1:]:
            raise BadInput(f"the word {word!r} stands for no class {klass!r}; {nearest(klass, classes[1:])}")
        named[word.lower()] = klass
    lines, ignored = read_table(path, ("case", "slice", "report"), ("case", "report"))
    rows: dict[object, Fact] = {}
    heard = []
    for line in lines:
        klass = ""
        for part in filter(None, map(str.strip, PARTS.split(line.cells["report"]))):
            try:
                klass, cells = _meaning(part, klass, named)
                fact = _fact(line, cells, classes, cases)
                before = rows.get(fact.key)
                if before is not None:
                    fact = _together(before, fact)
            except BadInput as error:
                heard.append(Heard(line.where, part, reason=str(error)))
                continue
            rows[fact.key] = fact
            heard.append(Heard(line.where, part, replace(fact, known=_said(fact, cells))))
    return Sentences(Facts(tuple(rows.values()), tuple(classes), ignored), tuple(heard))


def _meaning(part: str, before: str, named: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The class that a part is of, and what it says of it as the cells of a table; its phase is a cell too."""
    found = [word for word in named if re.search(rf"\b{re.escape(word)}\b", part, re.IGNORECASE)]
    word = max(found, key=len, default="")
    klass = named[word] if word else before
    rest = re.sub(rf"\b{re.escape(word)}\b", "\0", part, count=1, flags=re.IGNORECASE) if word else part
    if word:
        for ahead, after, there in PRESENCE:
            if re.fullmatch(rf"{ahead}\s*\0\s*{after}", rest.strip(), re.IGNORECASE):
                return klass, {"class": klass, "present": str(int(there))}
    measured = MEASURED.search(rest)
    if measured is None:
        raise BadInput("no number with a unit that is known")
    if not klass:
        raise BadInput(f"no class is named; there are: {', '.join(dict.fromkeys(named.values()))}")
    rest = rest[: measured.start()] + " " + rest[measured.end() :]
    cells, phases = {"class": klass} | _numbers(measured), []
    for phase, pattern in PHASES.items():
        rest, times = re.subn(rf"\b(?:{pattern})\b", " ", rest, flags=re.IGNORECASE)
        phases += [phase] * times
    left = FILLERS.sub(" ", rest.replace("\0", " ")).split()
    if left or len(phases) > 1:
        raise BadInput(f"nothing is known of {' '.join(left) or 'two phases at once'!r}")
    return klass, cells | ({"phase": phases[0]} if phases else {})


def _numbers(found: re.Match[str]) -> dict[str, str]:
    """The number, or the ends of the range, by column."""
    column, factor = UNITS[found["unit"].lower()]
    one, two = (
        None if text is None else float(text.replace(",", ".")) * factor for text in (found["one"], found["two"])
    )
    assert one is not None
    low: float | None
    high: float | None
    if two is not None:
        low, high = (one - two, one + two) if found["to"] in ("+/-", "\u00b1") else (one, two)
    elif found["least"] or found["most"]:
        low, high = (one, None) if found["least"] else (None, one)
    else:
        return {column: f"{one:.9g}"}
    ends = {f"{column}_min": low, f"{column}_max": high}
    return {name: f"{number:.9g}" for name, number in ends.items() if number is not None}


def _fact(line: Row, cells: Mapping[str, str], classes: Sequence[str], cases: Mapping[str, Record]) -> Fact:
    """A fact as a table's line would give it, with all that is refused there."""
    told = dict.fromkeys(("case", "slice", "class", "present", *known_columns()), "")
    told |= {name: text for name, text in cells.items() if name != "phase"}
    told |= {"case": _scan(line.cells["case"], cells.get("phase", ""), cases).name, "slice": line.cells["slice"]}
    try:
        return fact_of(Row(line.where, told, comma=False), classes, cases)
    except BadInput as error:
        raise BadInput(str(error).removeprefix(f"{line.where}: ")) from None


def _scan(name: str, phase: str, cases: Mapping[str, Record]) -> Record:
    """The scan that is meant by its name, or by its patient's, and by the phase."""
    one = cases.get(name)
    if one is not None and not phase:
        return one
    patient = name if one is None else one.patient
    scans = [record for record in cases.values() if record.patient == patient]
    if not scans:
        raise BadInput(f"no case {name!r}; {nearest(name, cases)}")
    meant = [record for record in scans if not phase or _phase(record) == phase]
    if len(meant) != 1:
        which = f"of {len(scans)} scans of {patient} {len(meant) or 'none'} "
        raise BadInput(which + (f"is known to be at {phase}" if phase else "could be meant; name the scan"))
    return meant[0]


def _phase(record: Record) -> str:
    """ED or ES, as the source says or as the name does."""
    found = re.search(r"(?:^|[\W_])(ED|ES)(?:$|[\W_])", record.name.removeprefix(record.patient), re.IGNORECASE)
    return record.phase or (found[1].upper() if found else "")


def _said(fact: Fact, cells: Mapping[str, str]) -> dict[str, float]:
    return {column: number for column, number in fact.known.items() if column in cells}


def _together(before: Fact, fact: Fact) -> Fact:
    """What two parts say of the same region."""
    if None not in (before.present, fact.present) and before.present != fact.present:
        raise BadInput("it was said to be there, and not to be")
    if changed := [name for name in before.known.keys() & fact.known if before.known[name] != fact.known[name]]:
        raise BadInput(f"{changed[0]} was said to be {before.known[changed[0]]:g} before")
    present = before.present if fact.present is None else fact.present
    if present is False and (before.known or fact.known):
        raise BadInput("it was said to be absent, and to have a size")
    return replace(fact, present=present, known={**before.known, **fact.known})
