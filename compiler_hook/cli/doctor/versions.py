"""Which versions are installed, and whether they are the tested ones."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version

from torch_pim.compiler_hook.cli.doctor.finding import Finding

SECTION = "versions"
TESTED_PYTHON = "3.11"
TESTED: Mapping[str, str] = {
    "torch": "2.13.0",
    "torch-mlir": "20261001",
    "numpy": "2.4.6",
    "ml_dtypes": "0.6.0",
    "numba": "0.68.1",
    "platformdirs": "4.14.9",
    "scipy": "1.17.1",
    "transformers": "5.24.0",
    "xgboost": "3.2.0",
    "scikit-learn": "1.9.1",
    "mlflow": "3.17.2",
    "pandas": "3.1.1",
    "pyarrow": "25.0.1",
    "matplotlib": "3.11.2",
}
"""The versions of constraints.txt; a test keeps the two equal."""

EXTRAS: Mapping[str, str] = {
    "transformers": "models",
    "xgboost": "train",
    "scikit-learn": "train",
    "mlflow": "train",
    "pandas": "train",
    "pyarrow": "train",
    "matplotlib": "train",
}
"""Distribution -> the extra that brings it; the others are always needed."""

_COMPILER = {"torch": ("torch",), "torch-mlir": ("torch_mlir.ir", "torch_mlir.extras.fx_importer")}
"""Modules that must import, not just be there: both hold native code that other libraries can break."""


def check_versions() -> Iterator[Finding]:
    """One finding per distribution that Torch-PIM uses."""
    yield _python(platform.python_version())
    for name, tested in TESTED.items():
        yield check_distribution(name, tested)


def check_distribution(name: str, tested: str) -> Finding:
    """Whether one distribution is there, is the tested one, and (for the compiler's own) imports."""
    extra = EXTRAS.get(name)
    try:
        found = version(name)
    except PackageNotFoundError:
        if extra is None:
            return Finding(SECTION, name, "problem", "missing", f"pip install '{name}=={tested}'")
        return Finding(SECTION, name, "note", "not installed", f"pip install 'torch-pim[{extra}]'")
    for module in _COMPILER.get(name, ()):
        try:
            importlib.import_module(module)
        except (ImportError, OSError, RuntimeError) as error:
            return Finding(
                SECTION,
                name,
                "problem",
                f"{found}, but {module} does not import: {error}",
                f"pip install --force-reinstall '{name}=={tested}'",
            )
    # A local label such as +cpu names a build of the same sources.
    if found.partition("+")[0] == tested:
        return Finding(SECTION, name, "ok", found)
    return Finding(SECTION, name, "note", f"{found} (tested with {tested})", f"pip install '{name}=={tested}'")


def _python(found: str) -> Finding:
    if found.startswith(TESTED_PYTHON + "."):
        return Finding(SECTION, "python", "ok", found)
    return Finding(SECTION, "python", "note", f"{found} (tested with {TESTED_PYTHON})", f"use Python {TESTED_PYTHON}")
