"""How `make docs` builds the web site; the pages are Markdown, the reference comes from the docstrings."""

from importlib.metadata import version as installed_version

project = "secateur"
copyright = "the secateur maintainers"
version = release = installed_version("secateur")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
exclude_patterns: list[str] = []
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
# The highlighter knows no braces in SQL, which are STRUCT and MAP values of the dialect.
suppress_warnings = ["misc.highlighting_failure"]

autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_custom_sections = [("Source", "Notes")]

html_theme = "furo"
html_title = "secateur"
