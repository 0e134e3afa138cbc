"""The manual as HTML: `make docs`, or `sphinx-build -W --keep-going -b html docs out/docs`.

The pages are plain Markdown that reads as well in a repository's browser, so two things are done here instead of there.
"""

from __future__ import annotations

import re

project = "inbounds"
author = "The inbounds developers"
extensions = ["myst_parser"]
exclude_patterns = ["*.py"]

myst_heading_anchors = 3  # links to headings are checked
highlight_language = "none"  # but for blocks that name theirs

html_theme = "furo"
html_title = "inbounds"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

PAGE = re.compile(r"\]\(([a-z-]+)\.md\)")
OUTSIDE = re.compile(r"\[([^]]+)\]\((\.\./[^)#]+\.(?:md|ipynb))(?:#[\w-]*)?\)")


def read(_: object, name: str, source: list[str]) -> None:
    """Complete a page: the index is the table of contents, and files outside this folder come along as downloads.

    Both are checked: a page that the index lacks and a file that is not there are warnings.
    """
    if name == "index":
        pages = "\n".join(dict.fromkeys(PAGE.findall(source[0])))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    source[0] = OUTSIDE.sub(r"{download}`\1 <\2>`", source[0])


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("source-read", read)  # type: ignore[attr-defined]
