"""Settings of Sphinx. Everything that a page loads is in the site: no fonts or scripts of other machines."""

from __future__ import annotations

project = "rushlight"
author = "the rushlight contributors"
copyright = "the rushlight contributors"

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# Changelogs repeat their headings, and their levels follow the versions.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = "rushlight"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "navigation_depth": 3,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navbar_persistent": ["search-button-field"],
    "logo": {"text": "rushlight"},
}
html_sidebars: dict[str, list[str]] = {"index": []}

python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
pygments_style = "default"
