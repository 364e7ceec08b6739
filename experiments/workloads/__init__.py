"""Models to plan, run and compare: built-in workloads and the user's own."""

from torch_pim.experiments.workloads.registry import WORKLOADS, get_workload
from torch_pim.experiments.workloads.resolve import MODEL_HELP, ResolvedModel, resolve_model
from torch_pim.experiments.workloads.workload import Workload

__all__ = ["MODEL_HELP", "WORKLOADS", "ResolvedModel", "Workload", "get_workload", "resolve_model"]
