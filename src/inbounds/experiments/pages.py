"""Files of tables and figures from collected results, and the pages that show them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from inbounds.errors import BadInput
from inbounds.experiments.drawings import draw
from inbounds.experiments.experiment import NAMES, TIMING, experiment, nearest, paper, presets
from inbounds.experiments.results import Collected, presets_of, read_all, rows_of, write_table
from inbounds.experiments.tables import choice_table, comparison, rivals_table, table, times_table
from inbounds.reports.bench import draw_growth, filled, markdown, read_benches, timing_lines
from inbounds.writing import file_aside

MARKED = re.compile(r"(<!-- results:([a-z-]+)(?::([a-z,-]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
TIMES = "times"
OF_THE_FIRST = {"choice": choice_table, "rivals": rivals_table}
"""Tables that the first experiment alone has, by the mark that asks for them."""

BENCH = "bench"
ALTS = {
    "curves": "DSC per volume by epoch",
    "sizes": "predicted over true size by epoch",
    "levels": "DSC per volume beside the paper's",
}


def write_results(folder: Path, name: str, preset: str, found: Sequence[Collected]) -> list[Path]:
    """Write `table.md`, `results.csv` and the figures of an experiment into a folder."""
    with file_aside(folder / "table.md") as part:
        part.write_text(table(name, preset, found), encoding="utf-8")
    write_table(folder / "results.csv", [run for runs in rows_of(name, preset, found).values() for run in runs])
    return [folder / "table.md", folder / "results.csv", *draw(folder, name, preset, found)]


def write_timing(folder: Path) -> Path:
    """Write the table of training times beside the benchmarks that it is made from."""
    benches = read_benches(folder)
    if not benches:
        raise BadInput(f"{folder}: no benchmark in it; put the JSON file that `inbounds bench` writes there")
    with file_aside(folder / "table.md") as part:
        part.write_text(markdown(timing_lines(list(benches.values()), paper(TIMING))) + "\n", encoding="utf-8")
    return folder / "table.md"


def rewrite(page: Path, root: Path, found: Sequence[Collected]) -> str:
    """The text of a page with everything between `<!-- results:... -->` and `<!-- end -->` as the results have it.

    Args:
        page: A Markdown file. Marks name an experiment, all presets of which are shown, or `experiment:preset`, or
            `experiment:preset,preset` for presets side by side. `times` is a table of its own, and so are `choice` and
            `rivals`, which may name presets too. Marks of benchmarks are those of `inbounds.reports.bench.filled`.
        root: The folder of results, with tables and figures in `experiment/preset`; benchmarks are in `bench`.
        found: What is in it.
    """

    def between(mark: re.Match[str]) -> str:
        start, name, named, end = mark.groups()
        if name not in (TIMES, *OF_THE_FIRST, *NAMES):
            raise BadInput(f"{page}: no results {name!r}; {nearest(name, (*NAMES, TIMES, *OF_THE_FIRST))}")
        about = NAMES[0] if name in OF_THE_FIRST else name
        wanted = _wanted(page, about, named, found)
        if name == TIMES:
            body = times_table(found)
        elif name in OF_THE_FIRST:
            body = OF_THE_FIRST[name](about, wanted, found)
        elif named and len(wanted) > 1:
            body = comparison(name, wanted, found)
        else:
            body = "\n".join(_shown(page, root, name, preset, found) for preset in wanted)
        return f"{start}\n{body}\n{end}"

    text = MARKED.sub(between, page.read_text(encoding="utf-8"))
    return filled(text, read_benches(root / BENCH), paper(TIMING))


def _wanted(page: Path, name: str, named: str | None, found: Sequence[Collected]) -> list[str]:
    """The presets that a mark names, else those under which the experiment was run."""
    run = presets_of(name, found)
    known = [*presets(), *run]
    for preset in named.split(",") if named else ():
        if preset not in known:
            raise BadInput(f"{page}: no preset {preset!r}; {nearest(preset, known)}")
    return named.split(",") if named else run or known[:1]


def _shown(page: Path, root: Path, name: str, preset: str, found: Sequence[Collected]) -> str:
    text = table(name, preset, found)
    for stem, alt in ALTS.items():
        file = root / name / preset / f"{stem}.svg"
        if file.is_file():
            text += f"\n![{experiment(name).title}: {alt}]({Path(os.path.relpath(file, page.parent)).as_posix()})\n"
    return text


def rebuild(root: Path, pages: Iterable[Path]) -> list[Path]:
    """Make every table and figure of a folder of results anew, and the pages that show them."""
    found = read_all(root)
    written = []
    for name in NAMES:
        for preset in presets_of(name, found):
            written += write_results(root / name / preset, name, preset, found)
    benches = read_benches(root / BENCH)
    written += [file for name, bench in benches.items() for file in draw_growth(root / BENCH / f"growth-{name}", bench)]
    for page in pages:
        text = rewrite(page, root, found)
        if text != page.read_text(encoding="utf-8"):
            with file_aside(page) as part:
                part.write_text(text, encoding="utf-8")
            written.append(page)
    return written
