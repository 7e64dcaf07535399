"""How Sphinx builds the site: `make docs` writes it to docs/_build/html."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for extensions of our own
os.environ.setdefault("TQDM_DISABLE", "1")

import thresher

project = "Thresher"
author = "The Thresher developers"
project_copyright = author
version = release = thresher.__version__

templates_path = ["_templates"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_pages",
    "measured_pages",
    "reference_links",
    "site_checks",
]
exclude_patterns = ["_build", "examples", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
suppress_warnings = ["ref.python"]  # `values` of several results
default_role = "code"  # docstrings write `names` as Markdown does
highlight_options = {"python": {"stripnl": True}}  # doctests in pages end with an empty line
toc_object_entries_show_parents = "hide"  # the longer names of methods do not fit

myst_heading_anchors = 4  # [text](page.md#heading), as on GitHub
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]

autosummary_generate = True
# some disks take payout.html and Payout.html for the same file
autosummary_filename_map = {"thresher.Payout": "thresher.Payout_class"}
autodoc_typehints = "none"  # the text says what to pass
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    # scikit-learn's, and what only other modules call
    "exclude-members": "set_score_request, set_fit_request, set_predict_request, about, stored",
}
napoleon_google_docstring = False
napoleon_attr_annotations = False
napoleon_use_ivar = True
napoleon_use_param = False  # one entry for "X, y", not its text twice

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "min_reported_time": 60,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "capture_repr": (),  # figures and printed lines, not what a call returns
    "remove_config_comments": True,
}

copybutton_selector = ":not(.highlight-text, .sphx-glr-script-out) > .highlight pre"  # not output
copybutton_prompt_text = r">>> |\.\.\.(?: |$)|\$ "  # the button copies what one types
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_title = "Thresher"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["file_search.js"]
html_search_scorer = str(HERE / "search_order.js")
html_use_index = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_theme_options = {
    "logo": {"text": f"Thresher {version}"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "concepts": []}  # pages without others below
html_show_sourcelink = False
html_copy_source = False
