"""The `plan` command: what of a model would run where, and why."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from torch_pim.experiments.commands.machine_arguments import DEFAULTS, add_bundle, add_machines
from torch_pim.experiments.commands.model_argument import MODEL_HELP, add_model_argument, model_options

GROUPS = 40
"""Lines of decisions that are printed unless `--all` is given."""


@dataclass(frozen=True, slots=True)
class PlanCommand:
    """Lowers a model and places its loop nests; runs and measures nothing."""

    name: str = "plan"
    help: str = "show what of a model would run on PIM, and why"
    description: str = f"""\
Lowers a model to loop nests and places each of them on the host or on PIM, as torch.compile would with these options.
Nothing runs. Prints counts and one line per group of equal decisions; --json has every call with its reason, the
machines with their assumed values, versions, and the fingerprint of the plan.

{MODEL_HELP}

examples:
  torch-pim plan gemv
  torch-pim plan llama-7b --phase decode --context 2048 --policy cost-model
  torch-pim plan gemm --set rows=1024 --device ndp-hmc-128 --json > plan.json
  torch-pim plan model.pt2 --profile profile.jsonl --all
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_model_argument(parser)
        add_machines(parser)
        parser.add_argument("--policy", default=DEFAULTS.policy, help="who decides (default: %(default)s)")
        add_bundle(parser)
        parser.add_argument("--profile", type=Path, metavar="FILE", help="host profiles of torch-pim profile")
        parser.add_argument(
            "--seed", type=int, default=DEFAULTS.seed, help="of the policy random (default: %(default)s)"
        )
        parser.add_argument("--all", action="store_true", help=f"print all groups of decisions, not only {GROUPS}")
        parser.add_argument("--json", action="store_true", help="print the whole plan as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        from torch_pim.compiler_hook.options import CompileOptions
        from torch_pim.compiler_hook.report.render import render_plan
        from torch_pim.experiments.commands.notes import collected_notes, print_notes
        from torch_pim.experiments.lowered_model import lower_reference
        from torch_pim.experiments.planning import plan_model
        from torch_pim.experiments.process_usage import UsageMeter

        meter = UsageMeter()
        options = CompileOptions.from_mapping(
            {name: getattr(arguments, name) for name in ("device", "host", "policy", "bundle", "profile", "seed")}
            | {"on_model_error": arguments.on_model_error}
        )
        with collected_notes() as notes:
            planned = plan_model(options, lambda: lower_reference(arguments.model, model_options(arguments)))
        if arguments.json:
            result = {**planned.to_json(), "notes": notes, "process": asdict(meter.usage())}
            print(json.dumps(result, indent=2, allow_nan=False))
            return 0
        print(render_plan(planned.plan, None if arguments.all else GROUPS))
        print_notes(notes)
        print(f"planned in {meter.usage()}", file=sys.stderr)
        return 0


COMMAND = PlanCommand()
