"""The `profile` command: one host profile per unique nest of a model, measured or simulated."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch_pim.experiments.commands.machine_arguments import DEFAULTS
from torch_pim.experiments.commands.model_argument import MODEL_HELP, add_model_argument, model_options


@dataclass(frozen=True, slots=True)
class ProfileCommand:
    """Profiles the nests of a model one by one and writes the profiles as JSON lines."""

    name: str = "profile"
    help: str = "write host profiles of a model's nests, measured or simulated"
    description: str = f"""\
Writes one host profile per unique nest of a model, for --profile of torch-pim plan and compare and for the option
'profile' of torch.compile. --origin wall runs every nest alone, on made-up data, on this machine: its profiles carry
this CPU's identity, so that no placement for one of the host presets uses them: they are for reading and for
comparing with modelled times. --origin simulated takes counters from the emulator for a host
specification, with 5 % noise. The file appears whole or not at all.

{MODEL_HELP}

examples:
  torch-pim profile mlp --origin simulated --host cpu-16c -o profile.jsonl
  torch-pim profile llama-small --phase decode --origin wall --warm -o here.jsonl
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_model_argument(parser)
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="JSON lines to write")
        parser.add_argument(
            "--origin",
            choices=("simulated", "wall"),
            default="simulated",
            help="simulated for a host specification (default), or measured here",
        )
        parser.add_argument(
            "--host", help=f"host of simulated profiles, preset or TOML file (default: {DEFAULTS.host})"
        )
        caches = parser.add_mutually_exclusive_group()
        caches.add_argument(
            "--cold", dest="warm", action="store_false", help="flush the caches before each run (default)"
        )
        caches.add_argument("--warm", action="store_true", help="repeat on the same buffers; only for --origin wall")
        parser.set_defaults(warm=False)
        parser.add_argument("--seed", type=int, default=DEFAULTS.seed, help="of made-up data and noise (default: 0)")
        parser.add_argument("--json", action="store_true", help="print a summary as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        summary = _profile(arguments)
        if arguments.json:
            print(json.dumps(summary, indent=2))
        else:
            origin, model = summary["origin"], summary["model"]["title"]
            print(f"{summary['output']}: {summary['profiles']} {origin} profiles of {model}")
            print(f"  host {summary['host_id']}, digest {summary['digest'][:12]}")
        return 0


def _profile(arguments: argparse.Namespace) -> dict[str, Any]:
    from torch_pim.compiler_hook.cache_folder import cache_folder
    from torch_pim.compiler_hook.errors import OptionError
    from torch_pim.compiler_hook.options import CompileOptions
    from torch_pim.compiler_hook.protocols import Profiler
    from torch_pim.experiments.commands.notes import collected_notes, print_notes
    from torch_pim.experiments.commands.progress import Steps
    from torch_pim.experiments.lowered_model import lower_reference
    from torch_pim.experiments.process_usage import UsageMeter
    from torch_pim.experiments.profiling import profile_nests, simulated_profiler, wall_profiler
    from torch_pim.experiments.provenance import versions
    from torch_pim.features.profile_io import digest, write_profiles
    from torch_pim.features.specs import load_host
    from torch_pim.pim_emulator.timing_model import EmulatorTimingModel

    if not arguments.output.absolute().parent.is_dir():
        raise OptionError(f"--output {str(arguments.output)!r}: its folder does not exist; create it first")
    if arguments.output.is_dir():
        raise OptionError(f"--output {str(arguments.output)!r} is a folder: expected the name of a file")
    if arguments.origin == "wall" and arguments.host is not None:
        raise OptionError("--host is for simulated profiles: wall time is measured on this machine")
    if arguments.origin == "simulated" and arguments.warm:
        raise OptionError("--warm is for wall time: simulated profiles are of cold runs")
    options = CompileOptions(host=arguments.host or DEFAULTS.host, seed=arguments.seed)
    meter, steps = UsageMeter(), Steps()
    with collected_notes() as notes:
        host = load_host(options.host)
        steps(f"lowering {arguments.model}")
        model = lower_reference(arguments.model, model_options(arguments))
        nests = model.lowered.concrete_nests()
        profiler: Profiler
        if arguments.origin == "wall":
            profiler = wall_profiler(arguments.warm, options.seed)
        else:
            timing = EmulatorTimingModel(seed=options.seed, cache_dir=cache_folder("labels") / "measurements")
            profiler = simulated_profiler(host, timing, options.seed)
        profiles = profile_nests(nests, profiler, lambda done, total: steps(f"profiled {done} of {total} nests"))
        write_profiles(arguments.output, profiles)
    print_notes(notes)
    steps(f"done, {meter.usage()}")
    return {
        "output": str(arguments.output),
        "model": model.to_json(),
        "origin": arguments.origin,
        "warm": arguments.warm,
        "host_id": ", ".join(sorted({profile.host_id for profile in profiles})),
        "profiles": len(profiles),
        "digest": digest(profiles),
        "seed": options.seed,
        "versions": versions(),
        "notes": notes,
        "process": asdict(meter.usage()),
    }


COMMAND = ProfileCommand()
