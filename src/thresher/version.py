"""The version of this library, and of the packages that its numbers depend on."""

from __future__ import annotations

__version__ = "0.2.0"

NEEDED = ("numpy", "numba", "scipy", "scikit-learn", "pyarrow")
OPTIONAL = ("pandas", "polars", "dask", "opendp", "dp-accounting")


def versions() -> str:
    """Lines for a problem report: the versions of this library, Python and important packages.

    Packages that are not installed are left out if they are optional.

    Examples
    --------
    >>> print(versions().splitlines()[0] == f"thresher {__version__}")
    True
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    lines = [f"thresher {__version__}", f"python {platform.python_version()}"]
    for name in (*NEEDED, *OPTIONAL):
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            if name in NEEDED:
                lines.append(f"{name} missing")
    return "\n".join(lines)
