from __future__ import annotations

import subprocess
import sys

HEAVY = ("xgboost", "sklearn", "pandas", "mlflow", "scipy", "numba", "torch", "torch_mlir")


def test_policies_load_without_the_training_stack():
    """Fresh interpreter: what this process has imported says nothing."""
    code = f"""
import sys
import torch_pim.models.policies as policies
for name in ("host", "pim", "random", "analytic", "cost-model", "learned"):
    policies.registry.policy_factory(name)
print([m for m in {HEAVY} if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
