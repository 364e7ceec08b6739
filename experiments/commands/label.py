"""The `label` command: emulated times of a corpus on presets and randomised machines, as one Parquet file."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_pim.experiments.commands.machine_arguments import comma_separated


@dataclass(frozen=True, slots=True)
class LabelCommand:
    """Lowers a corpus, checks samples against PyTorch, times every nest on every machine, writes the labels."""

    name: str = "label"
    help: str = "label the loop nests of a corpus with emulated times"
    description: str = """\
Lowers every entry of a corpus to loop nests, drops nests that resemble those of the held-out language models, checks a
sample of each operator family against PyTorch, and times every nest with the emulator on all presets and on randomised
machines. Writes one Parquet file, and beside it NAME.excluded.jsonl with everything that got no label and why.

Lowered nests and traces are cached: an interrupted run continues where it was, and more machines cost no new trace.

examples:
  torch-pim label --corpus nests-v0 --output labels.parquet
  torch-pim label --output small.parquet --every 20 --random-machines 4
  torch-pim label --output mine.parquet --device my-device.toml --host cpu-8c,cpu-16c
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--corpus", default="nests-v0", help="name of the corpus (default: %(default)s)")
        parser.add_argument("--output", type=Path, required=True, help="label file to write, NAME.parquet")
        parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th entry (default: all)")
        for name in ("host", "device"):
            parser.add_argument(
                f"--{name}", type=comma_separated, help="presets or TOML files, comma-separated (default: all presets)"
            )
        parser.add_argument(
            "--random-machines", type=int, default=36, metavar="N", help="randomised pairs (default: %(default)s)"
        )
        parser.add_argument("--seed", type=int, default=0, help="of traces, profiles and machines (default: 0)")
        parser.add_argument("--trace-budget", type=int, help="accesses traced per nest (default: the emulator's)")
        parser.add_argument(
            "--profile-noise", type=float, default=0.05, help="noise of simulated profiles (default: %(default)s)"
        )
        parser.add_argument("--cache", type=Path, help="folder of lowered nests and traces (default: the cache folder)")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        summary = _label(arguments)
        if arguments.json:
            print(json.dumps(summary, indent=2))
        else:
            causes = ", ".join(f"{count} {cause}" for cause, count in summary["excluded"].items()) or "none"
            print(
                f"{summary['output']}: {summary['nests']} nests on {summary['pairs']} pairs of machines, "
                f"{summary['rows']} rows, content {summary['content'][:12]}\n"
                f"{summary['checked']} entries checked against PyTorch; left out: {causes}; see {summary['exclusions']}"
            )
        return 0


def _label(arguments: argparse.Namespace) -> dict[str, Any]:
    from torch_pim.compiler_hook.cache_folder import cache_folder
    from torch_pim.compiler_hook.errors import OptionError
    from torch_pim.experiments.corpus.corpora import get_corpus
    from torch_pim.experiments.label.exclusions import count_causes, exclusions_path, write_exclusions
    from torch_pim.experiments.label.held_out_models import EVALUATED_RUNS, held_out_nests
    from torch_pim.experiments.label.lowering_cache import LoweringCache
    from torch_pim.experiments.label.machines import label_machines
    from torch_pim.experiments.label.parquet import write_labels
    from torch_pim.experiments.label.progress import ProgressLine
    from torch_pim.experiments.label.run import LabelSettings, run_labelling
    from torch_pim.features.machines import HostSpec
    from torch_pim.pim_emulator.device import EmulatedDevice
    from torch_pim.pim_emulator.profiler import SimulatedProfiler
    from torch_pim.pim_emulator.timing_model import DEFAULT_TRACE_BUDGET, EmulatorTimingModel

    if arguments.output.suffix != ".parquet":
        raise OptionError(f"--output {str(arguments.output)!r}: expected a name ending in .parquet")
    if arguments.every < 1:
        raise OptionError(f"--every {arguments.every}: expected at least 1")
    if arguments.random_machines < 0:
        raise OptionError(f"--random-machines {arguments.random_machines}: expected 0 or more")
    corpus = get_corpus(arguments.corpus).every(arguments.every)
    machines = label_machines(arguments.host, arguments.device, arguments.random_machines, arguments.seed)
    settings = LabelSettings(
        trace_budget=arguments.trace_budget if arguments.trace_budget is not None else DEFAULT_TRACE_BUDGET,
        seed=arguments.seed,
        profile_noise=arguments.profile_noise,
    )
    cache = arguments.cache if arguments.cache is not None else cache_folder("labels")
    timing = EmulatorTimingModel(settings.trace_budget, settings.seed, cache / "measurements")

    def profiler(host: HostSpec) -> SimulatedProfiler:
        return SimulatedProfiler(host, settings.seed, settings.profile_noise, timing)

    run = run_labelling(
        corpus,
        held_out_nests(),
        "; ".join(run.name for run in EVALUATED_RUNS),
        machines,
        timing,
        profiler,
        EmulatedDevice(machines.devices[0]),
        settings,
        LoweringCache(cache / "lowered").lower,
        ProgressLine(),
    )
    path = write_labels(run.labels, arguments.output)
    write_exclusions(run.exclusions, exclusions_path(path))
    return {
        "output": str(path),
        "exclusions": str(exclusions_path(path)),
        "content": run.labels.content,
        "corpus": run.labels.header.corpus,
        "emulator_version": run.labels.header.emulator_version,
        "nests": len(run.labels.nests),
        "pairs": len(run.labels.pairs),
        "rows": len(run.labels.nests) * len(run.labels.pairs),
        "checked": run.checked_entries,
        "excluded": count_causes(run.exclusions),
    }


COMMAND = LabelCommand()
