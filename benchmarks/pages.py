"""Every number in README and docs that comes from `benchmarks/results`, and the figure of growth, made anew.

python benchmarks/pages.py
"""

from __future__ import annotations

import json
from pathlib import Path

from inbounds.experiments.experiment import TIMING, paper
from inbounds.reports.bench import filled
from inbounds.reports.figures import COLOURS, DASHED, SOFT, figure, fingerprint
from inbounds.writing import file_aside

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"

Points = list[tuple[int, float]]


def growth(file: Path) -> tuple[Points, Points]:
    """Seconds of an epoch's steps by images, at the largest batch; and ms per image by batch, for the same images."""
    rows = [row for row in json.loads(file.read_text(encoding="utf-8"))["rows"] if row["section"] == "growth"]
    largest = max((row["batch"] for row in rows), default=0)
    images = sorted((row["images"], row["ms"] / 1000) for row in rows if row["batch"] == largest)
    middle = images[len(images) // 2][0] if images else 0
    return images, sorted((row["batch"], row["ms_per_image"]) for row in rows if row["images"] == middle)


def draw(stem: Path, images: Points, batches: Points) -> None:
    """Both curves; dashed, a straight line through the origin and the longest epoch."""
    with figure(stem, fingerprint((images, batches)), (7.2, 2.8), 1, 2) as axes:
        left, right = axes[0]
        most, longest = images[-1]
        left.plot([0, most], [0, longest], color=SOFT, linewidth=1.1, linestyle=DASHED)
        left.plot(*zip(*images, strict=True), color=COLOURS[0], marker="o")
        left.set(title="Steps of an epoch", xlabel="images", ylabel="seconds", xlim=(0, None), ylim=(0, None))
        right.plot(*zip(*batches, strict=True), color=COLOURS[1], marker="o")
        right.set(title="An image, by batch", xlabel="images a batch", ylabel="ms", ylim=(0, None))
        right.set_xticks([size for size, _ in batches])


def main() -> None:
    """Write what changed."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        old = page.read_text(encoding="utf-8")
        new = filled(old, RESULTS, paper(TIMING))
        if new != old:
            with file_aside(page) as part:
                part.write_text(new, encoding="utf-8")
            print(f"{page}: written")
    file = RESULTS / "cpu.json"
    if file.is_file() and growth(file)[0]:
        draw(ROOT / "docs" / "growth", *growth(file))


if __name__ == "__main__":
    main()
