"""Errors that a user of the compiler meets. Each names the thing, what was expected, and the mend."""

from __future__ import annotations


class TorchPimError(Exception):
    """Base of all errors raised on purpose by Torch-PIM."""


class OptionError(TorchPimError, ValueError):
    """An unknown or ill-typed option, device, host or policy name."""


class FrontendError(TorchPimError):
    """A model could not be brought to linalg-on-tensors."""


class LoweringError(TorchPimError):
    """Linalg could not be brought to canonical loop nests."""


class CodegenError(TorchPimError):
    """A nest could not be compiled to machine code."""


class ShapeError(TorchPimError, ValueError):
    """Arguments at call time do not match what was compiled."""


class DeviceError(TorchPimError):
    """A device cannot run what it was given."""


class RegistryError(TorchPimError):
    """A plug-in is missing, or two providers claim one name."""


class NestAssertionError(TorchPimError, RuntimeError):
    """An assertion of a nest failed while it ran, e.g. an index that is out of range; its outputs are incomplete."""
