"""The `compare` command: modelled plan times of one model under several policies and machines."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass

from torch_pim.experiments.commands.machine_arguments import DEFAULTS, add_bundle, add_machines, comma_separated
from torch_pim.experiments.commands.model_argument import MODEL_HELP, add_model_argument, model_options

POLICIES = ("host", "pim", "random", "analytic", "cost-model", "learned", "learned+residency")
"""Compared unless `--policies` is given; oracle and optimum always are."""


@dataclass(frozen=True, slots=True)
class CompareCommand:
    """Plans a model under several policies and models the time of every plan; runs nothing."""

    name: str = "compare"
    help: str = "compare policies on the modelled time of a model"
    description: str = f"""\
Plans a model under several policies on one or more pairs of host and device, and charges every plan by one function:
emulated isolated times of the nests, launches, switches between the sides, and the flush of every buffer that crosses.
Beside the policies stand the oracle (the faster side of every nest, transitions ignored) and the optimum (the fastest
whole plan): regrets say how far a policy is from them. No time is measured.

--profile says what policies may know of the host's times: nothing, simulated profiles with 5 % noise, or a file of
torch-pim profile. A comma-separated list gives one table each.

{MODEL_HELP}

examples:
  torch-pim compare gemv
  torch-pim compare llama-7b --phase decode --device ndp-hmc-32,ndp-hmc-64,ndp-hmc-128
  torch-pim compare mlp --policies learned,analytic --profile none --flush bandwidth --json > mlp.json
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_model_argument(parser)
        add_machines(parser, several=True)
        parser.add_argument(
            "--policies",
            type=comma_separated,
            default=POLICIES,
            metavar="NAME[,...]",
            help=f"policies to compare (default: {','.join(POLICIES)})",
        )
        add_bundle(parser)
        parser.add_argument(
            "--profile",
            type=comma_separated,
            default=("simulated", "none"),
            metavar="SETTING[,...]",
            help="simulated, none, or a file of profiles (default: simulated,none)",
        )
        parser.add_argument(
            "--flush",
            choices=("serial", "bandwidth"),
            default="serial",
            help="dirty lines are written back one by one, or as fast as the memory takes them (default: %(default)s; "
            "--json has both)",
        )
        parser.add_argument("--seed", type=int, default=DEFAULTS.seed, help="of traces, profiles and the policy random")
        parser.add_argument("--json", action="store_true", help="print everything, nest by nest, as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        from torch_pim.compiler_hook.cache_folder import cache_folder
        from torch_pim.compiler_hook.options import CompileOptions
        from torch_pim.experiments.commands.notes import collected_notes, print_notes
        from torch_pim.experiments.commands.progress import Steps
        from torch_pim.experiments.comparison.compare import compare
        from torch_pim.experiments.comparison.output import comparison_json
        from torch_pim.experiments.comparison.profile_settings import ProfileSetting
        from torch_pim.experiments.comparison.render import render_comparison
        from torch_pim.experiments.comparison.settings import CompareSettings
        from torch_pim.experiments.lowered_model import lower_reference
        from torch_pim.experiments.process_usage import UsageMeter
        from torch_pim.experiments.provenance import bundle_json
        from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

        meter, steps = UsageMeter(), Steps()
        with collected_notes() as notes:
            settings = CompareSettings.load(
                policies=arguments.policies,
                hosts=arguments.host,
                devices=arguments.device,
                profiles=tuple(ProfileSetting(source, arguments.seed) for source in arguments.profile),
                flush=arguments.flush,
                options=CompileOptions(
                    bundle=arguments.bundle, seed=arguments.seed, on_model_error=arguments.on_model_error
                ),
            )
            steps(f"lowering {arguments.model}")
            model = lower_reference(arguments.model, model_options(arguments))
            timing = EmulatorTimingModel(
                seed=arguments.seed, cache_dir=cache_folder("labels") / "measurements", progress=steps.measuring
            )
            comparison = compare(model, settings, timing, steps)
        if arguments.json:
            result = {
                **comparison_json(comparison),
                "seed": arguments.seed,
                "bundle": bundle_json(arguments.bundle),
                "notes": notes,
                "process": asdict(meter.usage()),
            }
            print(json.dumps(result, indent=2, allow_nan=False))
        else:
            print(render_comparison(comparison))
            print_notes(notes)
        steps(f"done, {meter.usage()}")
        return 0


COMMAND = CompareCommand()
