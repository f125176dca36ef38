"""Sphinx settings: Markdown through MyST, warnings are errors (`make docs`)."""

from importlib.metadata import version as installed

project = "lope"
author = "the lope authors"
copyright = "the lope authors, Apache-2.0"
version = release = installed("lope")
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"lope {release}"
nitpicky = True
