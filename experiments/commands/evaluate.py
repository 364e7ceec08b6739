"""The `evaluate` command: every policy on the held-out language models, over machines and profile settings."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from torch_pim.experiments.commands.machine_arguments import add_bundle, comma_separated

POLICIES = ("learned", "learned+residency", "cost-model", "analytic", "host", "pim")
DEVICES = ("ndp-hmc-32", "ndp-hmc-64", "ndp-hmc-128")
HOSTS = ("cpu-8c", "cpu-16c")


@dataclass(frozen=True, slots=True)
class EvaluateCommand:
    """Compares policies on GPT-J-6B and LLaMA-7B and prints regret, accuracy and speedups."""

    name: str = "evaluate"
    help: str = "measure policies against the best plan on the held-out language models"
    description: str = """\
Places GPT-J-6B and LLaMA-7B (prefill of 128 and 2048 tokens, decode with a cache of 2048) with every policy on every
pair of machines, once without profiles and once with simulated ones, and charges all plans by emulated times. None of
their nests, nor any of their shape, is in the training corpus. Regret is against the best plan under the same flush
model; accuracy is balanced, over nests whose better side means something and is free.

examples:
  torch-pim evaluate
  torch-pim evaluate --bundle bundle --policies learned,cost-model --json > evaluation.json
  torch-pim evaluate --device ndp-hmc-64 --host cpu-8c --layers 2
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--policies", type=comma_separated, default=POLICIES, help=f"(default: {','.join(POLICIES)})"
        )
        parser.add_argument("--device", type=comma_separated, default=DEVICES, help=f"(default: {','.join(DEVICES)})")
        parser.add_argument("--host", type=comma_separated, default=HOSTS, help=f"(default: {','.join(HOSTS)})")
        parser.add_argument("--flush", choices=("serial", "bandwidth"), default="serial", help="shown in the tables")
        parser.add_argument("--layers", type=int, metavar="N", help="shorten the models (default: their full depth)")
        parser.add_argument("--runs", type=comma_separated, help="only runs whose name contains one of these texts")
        parser.add_argument("--seed", type=int, default=0, help="of simulated profiles and traces (default: 0)")
        add_bundle(parser)
        parser.add_argument("--cache", type=Path, help="folder of traces (default: the cache folder)")
        parser.add_argument("--json", action="store_true", help="print all comparisons as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        from torch_pim.compiler_hook.cache_folder import cache_folder
        from torch_pim.compiler_hook.errors import OptionError
        from torch_pim.compiler_hook.options import CompileOptions
        from torch_pim.experiments.commands.notes import collected_notes, print_notes
        from torch_pim.experiments.commands.progress import Steps
        from torch_pim.experiments.comparison.settings import CompareSettings
        from torch_pim.experiments.evaluate.evaluation import evaluate, profile_settings, summarise
        from torch_pim.experiments.evaluate.render import evaluation_json, render_evaluation
        from torch_pim.experiments.label.held_out_models import EVALUATED_RUNS
        from torch_pim.pim_emulator.timing_model import DEFAULT_TRACE_BUDGET, EmulatorTimingModel

        wanted = arguments.runs or ("",)
        runs = [run for run in EVALUATED_RUNS if any(text in run.name for text in wanted)]
        if not runs:
            known = "; ".join(run.name for run in EVALUATED_RUNS)
            raise OptionError(f"--runs {','.join(wanted)}: no run has such a name; the runs are {known}")
        steps = Steps()
        cache = arguments.cache if arguments.cache is not None else cache_folder("labels")
        timing = EmulatorTimingModel(DEFAULT_TRACE_BUDGET, arguments.seed, cache / "measurements", steps.measuring)
        options = CompileOptions(bundle=arguments.bundle, on_model_error=arguments.on_model_error, seed=arguments.seed)
        with collected_notes() as notes:
            settings = CompareSettings.load(
                arguments.policies,
                arguments.host,
                arguments.device,
                profile_settings(arguments.seed),
                arguments.flush,
                options,
            )
            comparisons = evaluate(runs, settings, timing, arguments.layers, steps)
        summaries = summarise(comparisons)
        if arguments.json:
            print(json.dumps({**evaluation_json(comparisons, summaries), "notes": notes}, indent=1))
        else:
            print(render_evaluation(comparisons, summaries, arguments.flush))
            print_notes(notes)
        return 0


COMMAND = EvaluateCommand()
