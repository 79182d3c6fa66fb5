"""Settings of the site: ``python -m sphinx -W -b html docs site`` builds it; ``pip install -e ".[docs]"`` before."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT), str(ROOT / "scheduler")]

from _parts import figures, operations, pages, recording, reference  # noqa: E402
from jinja2 import FileSystemLoader  # noqa: E402
from jinja2.sandbox import SandboxedEnvironment  # noqa: E402
from numpydoc import docscrape_sphinx  # noqa: E402

import reactgrad as rg  # noqa: E402

pages.take()
reference.write()
operations.write()
figures.write()

# numpydoc compiles its template for each of 5,000 docstrings anew, which is a fifth of the build.
_templates = Path(docscrape_sphinx.__file__).parent / "templates"
_environment = SandboxedEnvironment(loader=FileSystemLoader([str(_templates)]))
docscrape_sphinx.SandboxedEnvironment = lambda **_: _environment  # type: ignore[assignment]

project = "reactgrad"
author = "The reactgrad authors"
copyright = "The reactgrad authors"
version = release = rg.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
]
root_doc = "index"
exclude_patterns = ["_parts", "**.ipynb_checkpoints"]

# Notebooks are shown as they are committed: tests execute them, and compare.
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist"]
# Anchors as a viewer of the repository makes them, which is what links are written for.
myst_heading_anchors = 4

autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
python_maximum_signature_line_length = 90
add_module_names = False

# An attribute in a docstring links by its last name, which other classes may have, too.
suppress_warnings = ["ref.python"]

EXTERNAL = re.compile(r'<a [^>]*href="(https?://[^"]+)"')

html_theme = "furo"
html_title = f"reactgrad {release}"
html_static_path = ["_static"]
html_extra_path = [str(recording.write())]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def _links(app: Any, docname: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md" and not page.is_relative_to(pages.MADE):
        source[0] = pages.links(source[0], page, page)
    if docname == root_doc:
        source[0] = pages.listed(source[0])


def _external(app: Any, failure: Exception | None) -> None:
    """List links that lead out of the site: a build has no network, so nobody fetches them here."""
    if failure is None and app.builder.name == "html":
        site = Path(app.outdir)
        found = {
            link
            for page in site.rglob("*.html")
            for link in EXTERNAL.findall(page.read_text(encoding="utf-8"))
        }
        (site / "external_links.txt").write_text("\n".join(sorted(found)) + "\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _links)
    app.connect("build-finished", _external)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
