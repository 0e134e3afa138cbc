"""Files of tables and figures from collected results, and the pages that show them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.tables import filled, markdown, paper_times, read_benches, timing_lines
from inbounds.errors import BadInput, nearest
from inbounds.writing import file_aside
from reproduction import parts
from reproduction.cells import CELLS, cells
from reproduction.drawings import draw
from reproduction.experiment import ABLATION, NAMES, experiment, paper, presets
from reproduction.figures import draw_growth, draw_pace
from reproduction.parts import LINES
from reproduction.results import Collected, presets_of, read_all, rows_of, write_table
from reproduction.tables import comparison, table

MARKED = re.compile(r"(<!-- results:([a-z-]+)(?::([a-z,-]+))?(?::(\w+(?:,\w+)*))? -->\n).*?(<!-- end -->)", re.DOTALL)

BENCH = "bench"
PACE = "pace"


def write_results(folder: Path, name: str, preset: str, collected: Sequence[Collected]) -> list[Path]:
    """Write `table.md`, `results.csv` and the figures of an experiment into a folder."""
    with file_aside(folder / "table.md") as part:
        part.write_text(table(name, preset, collected), encoding="utf-8")
    write_table(folder / "results.csv", [run for runs in rows_of(name, preset, collected).values() for run in runs])
    return [folder / "table.md", folder / "results.csv", *draw(folder, name, preset, collected)]


def write_timing(folder: Path) -> Path:
    """Write the tables of training times beside the benchmarks that it is made from."""
    benches = read_benches(folder)
    if not benches:
        raise BadInput(
            f"{folder}: no benchmark in it; put the JSON file that `python -m benchmarks --json FILE` writes there"
        )
    with file_aside(folder / "table.md") as part:
        tables = (timing_lines(list(benches.values()), paper_times(), batch) for batch in (1, 8))
        part.write_text("\n".join(f"{markdown(lines)}\n" for lines in tables if len(lines) > 1), encoding="utf-8")
    return folder / "table.md"


def rewrite(page: Path, root: Path, collected: Sequence[Collected]) -> str:
    """The text of a page with everything between `<!-- results:... -->` and `<!-- end -->` as the results have it.

    Args:
        page: A Markdown file. Marks name an experiment, all presets of which are shown, or `experiment:preset`, or
            `experiment:preset,preset` for presets side by side, of which `experiment:preset,preset:row,row` shows some
            rows, without figures; `ablation`; or `cells`, all of the paper's. Those of benchmarks are as
            `benchmarks.tables.filled` has them.
        root: The folder of results, with tables and figures in `experiment/preset`; benchmarks are in `bench`.
        collected: What is in it.
    """

    def between(mark: re.Match[str]) -> str:
        start, name, named, rows, end = mark.groups()
        if name == ABLATION:
            return f"{start}\n{parts.table(parts.read_lines(root / ABLATION / LINES))}\n{end}"
        if name == CELLS:
            return f"{start}\n{cells(collected, [*read_benches(root / BENCH).values()])}\n\n{end}"
        if name not in NAMES:
            raise BadInput(f"{page}: no results {name!r}; {nearest(name, (*NAMES, ABLATION, CELLS))}")
        shown = rows.split(",") if rows else []
        unknown = [row for row in shown if row not in experiment(name).rows]
        if unknown:
            raise BadInput(f"{page}: {name} has no row {unknown[0]!r}; {nearest(unknown[0], experiment(name).rows)}")
        wanted = _wanted(page, name, named, collected)
        if named and len(wanted) > 1:
            body = comparison(name, wanted, collected, shown)
        elif shown:
            body = "\n".join(table(name, preset, collected, shown) for preset in wanted)
        else:
            body = "\n".join(_shown(page, root, name, preset, collected) for preset in wanted)
        return f"{start}\n{body}\n{end}"

    text = MARKED.sub(between, page.read_text(encoding="utf-8"))
    return filled(text, read_benches(root / BENCH), paper_times())


def _wanted(page: Path, name: str, named: str | None, collected: Sequence[Collected]) -> list[str]:
    """The presets that a mark names, else those under which the experiment was run."""
    run = presets_of(name, collected)
    known = [*presets(), *run]
    for preset in named.split(",") if named else ():
        if preset not in known:
            raise BadInput(f"{page}: no preset {preset!r}; {nearest(preset, known)}")
    return named.split(",") if named else run or known[:1]


def _shown(page: Path, root: Path, name: str, preset: str, collected: Sequence[Collected]) -> str:
    text = table(name, preset, collected)
    about = experiment(name)
    alts = {"curves": "DSC per volume by epoch", "violations": "bounds that do not hold, by epoch"}
    beside = "beside the paper's" if paper(name) else "by {}"
    alts |= {one.stem: f"DSC per volume {beside.format(one.across)}" for one in about.levels}
    for stem, alt in alts.items():
        file = root / name / preset / f"{stem}.svg"
        if file.is_file():
            where = Path(os.path.relpath(file, page.parent)).as_posix()
            text += f"\n![{about.title}: {alt}]({where})\n"
    return text


def rebuild(root: Path, pages: Iterable[Path]) -> list[Path]:
    """Make every table and figure of a folder of results anew, and the pages that show them."""
    collected = read_all(root)
    written = []
    for name in NAMES:
        for preset in presets_of(name, collected):
            written += write_results(root / name / preset, name, preset, collected)
    if (root / ABLATION / LINES).is_file():
        written.append(parts.write_page(root / ABLATION))
    benches = read_benches(root / BENCH)
    written += [file for name, bench in benches.items() for file in draw_growth(root / BENCH / f"growth-{name}", bench)]
    for file in sorted((root / PACE).glob("*.json")):
        written += draw_pace(file.with_suffix(""), json.loads(file.read_text(encoding="utf-8")))
    for page in pages:
        text = rewrite(page, root, collected)
        if text != page.read_text(encoding="utf-8"):
            with file_aside(page) as part:
                part.write_text(text, encoding="utf-8")
            written.append(page)
    return written


def main(root: Path) -> None:
    """Rebuild what a checkout shows: every table and figure of README, docs and this folder."""
    from reproduction.illustrations import draw_levels_of_supervision, draw_penalty  # which need SciPy

    pages = [root / "README.md", *sorted((root / "docs").glob("*.md")), root / "reproduction" / "README.md"]
    try:
        written = rebuild(root / "reproduction" / "results", [page for page in pages if page.is_file()])
    except BadInput as error:
        sys.exit(f"Error: {error}")
    written += draw_penalty(root / "docs" / "penalty") + draw_levels_of_supervision(root / "docs" / "supervision")
    for file in written:
        print(f"{file}: written")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
