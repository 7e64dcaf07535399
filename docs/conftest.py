"""Pytest runs the pages here. The site runs the examples, tests/test_tutorials.py the tutorials."""

collect_ignore_glob = ["*.py"] + [
    f"{folder}/*" for folder in ("_build", "api", "examples", "gallery", "results", "tutorials")
]
