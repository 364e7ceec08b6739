"""The `demo` command: plans and modelled times of real models, and a small one that really runs."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Any

from torch_pim.experiments.commands.compare import POLICIES


@dataclass(frozen=True, slots=True)
class DemoCommand:
    """Shows on real models what would run on PIM, what that would gain, and that placed models compute right."""

    name: str = "demo"
    help: str = "show placements and modelled times of real models, and run a small one"
    description: str = """\
Plans a tensor operator, an MLP, an attention block, LLaMA-7B and GPT-J-6B at their real shapes, without their weights,
and models the time of every plan under every policy. Then runs a small LLaMA, with nests on the cores of the emulated
device, and compares its result with PyTorch eager. Takes a few minutes; no network is used.

examples:
  torch-pim demo
  torch-pim demo --json > demo.json
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print everything, nest by nest, as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        from torch_pim.experiments.commands.notes import collected_notes, print_notes

        with collected_notes() as notes:
            result = _demo(show=not arguments.json)
        if arguments.json:
            print(json.dumps({**result, "notes": notes}, indent=2, allow_nan=False))
        else:
            print_notes(notes)
        return 0


def _demo(show: bool) -> dict[str, Any]:
    from torch_pim.compiler_hook.cache_folder import cache_folder
    from torch_pim.compiler_hook.options import CompileOptions
    from torch_pim.experiments.commands.notes import collected_notes
    from torch_pim.experiments.commands.progress import Steps
    from torch_pim.experiments.comparison.output import comparison_json
    from torch_pim.experiments.demo.cases import CASES
    from torch_pim.experiments.demo.execution import run_small_model
    from torch_pim.experiments.demo.render import render_case, render_execution, render_summary
    from torch_pim.experiments.demo.run import compared_cases, demo_settings
    from torch_pim.experiments.process_usage import UsageMeter
    from torch_pim.experiments.provenance import bundle_json, versions
    from torch_pim.experiments.workloads.language_models import OptionalDependencyError
    from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

    def say(text: str) -> None:
        if show:
            print(text, end="\n\n", flush=True)

    meter, steps, options = UsageMeter(), Steps(), CompileOptions()
    timing = EmulatorTimingModel(cache_dir=cache_folder("labels") / "measurements", progress=steps.measuring)
    # The heading says what these notes would: whether there is a learned model, and who decides without one.
    with collected_notes():
        settings = demo_settings(POLICIES, options)
    bundle = bundle_json(None)
    say(_heading(options, timing.version, bundle))
    cases = []
    for case in compared_cases(CASES, settings, timing, steps):
        cases.append(case)
        say(render_case(case))
    say(render_summary(cases))
    steps("running a small LLaMA on host and emulated PIM cores")
    try:
        execution = run_small_model(options)
        say(render_execution(execution))
    except OptionalDependencyError as error:
        execution = None
        say(f"no model was run, because {error}")
    steps(f"done, {meter.usage()}")
    return {
        "cases": [
            {
                "label": case.case.label,
                "comparison": None if case.comparison is None else comparison_json(case.comparison),
                "left_out": case.left_out or None,
            }
            for case in cases
        ],
        "execution": None if execution is None else asdict(execution),
        "bundle": bundle,
        "versions": versions(),
        "process": asdict(meter.usage()),
    }


def _heading(options: Any, emulator_version: str, bundle: dict[str, Any]) -> str:
    model = (
        f"{bundle['name']} {bundle['version']}"
        if bundle["usable"]
        else f"none ({bundle['problem']}); the policies learned and learned+residency decide by the cost model instead"
    )
    return (
        f"Torch-PIM demo: host {options.host}, device {options.device}, f32, batch 1, emulator {emulator_version}\n"
        "Times are modelled on the specifications of the machines; none is measured. Speedups are over everything on "
        f"{options.host}.\nlearned model: {model}"
    )


COMMAND = DemoCommand()
