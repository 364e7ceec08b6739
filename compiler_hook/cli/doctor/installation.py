"""What of Torch-PIM itself is installed: plug-ins, the default model bundle, the cache folder."""

from __future__ import annotations

from collections.abc import Iterator

from torch_pim.compiler_hook.cache_folder import ENVIRONMENT_VARIABLE, find_cache_folder
from torch_pim.compiler_hook.cli.doctor.finding import Finding, State
from torch_pim.compiler_hook.errors import TorchPimError
from torch_pim.compiler_hook.registry import ALL_REGISTRIES, DISTRIBUTION, installed_version


def check_installation() -> Iterator[Finding]:
    """The distribution, the cache folder and the model bundle that ships with it."""
    yield _distribution()
    yield _cache()
    yield _bundle()


def check_plugins() -> Iterator[Finding]:
    """One finding per name in each registry, with the distribution that brings it; every one is imported."""
    for registry in ALL_REGISTRIES:
        origins = {provider.name: provider.distribution for provider in registry.providers()}
        for name, origin in origins.items():
            section = f"{registry.kind} plug-ins"
            try:
                registry.load(name)
            except TorchPimError as error:
                # A broken plug-in of somebody else's stops nothing but itself.
                state: State = "problem" if origin.split()[0] == DISTRIBUTION else "note"
                yield Finding(section, name, state, "cannot be used", str(error))
            else:
                yield Finding(section, name, "ok", origin)


def _distribution() -> Finding:
    version = installed_version()
    if version is None:
        return Finding("installation", DISTRIBUTION, "problem", "imported from a folder", "pip install -e .")
    return Finding("installation", DISTRIBUTION, "ok", version)


def _cache() -> Finding:
    found = find_cache_folder()
    if found.problem is None:
        return Finding("installation", "cache folder", "ok", f"{found.path} (writable)")
    advice = f"set {ENVIRONMENT_VARIABLE} to a folder that can be written; until then nothing is kept between runs"
    return Finding("installation", "cache folder", "note", f"{found.path}: {found.problem}", advice)


def _bundle() -> Finding:
    from torch_pim.models.artifacts import default_bundle_path
    from torch_pim.models.errors import ModelError
    from torch_pim.models.learned.bundle import Bundle

    path = default_bundle_path()
    try:
        bundle = Bundle.load(path)
    except ModelError as error:
        advice = (
            "policy 'learned' gives way to 'cost-model'; reinstall torch-pim, or make a bundle with 'torch-pim train'"
        )
        return Finding("installation", "default model", "note", f"cannot be used: {error}", advice)
    return Finding("installation", "default model", "ok", f"version {bundle.manifest.version} ({path})")
