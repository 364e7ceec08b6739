"""The `doctor` command: collects the findings and prints them as a table or as JSON."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from torch_pim.compiler_hook.cli.doctor.finding import Finding

_MARKS = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


@dataclass(frozen=True, slots=True)
class DoctorCommand:
    """Reports versions, processor, counters, installation and plug-ins; changes nothing but the cache folder."""

    name: str = "doctor"
    help: str = "show what this machine and this installation offer, and how to mend what is missing"
    description: str = """\
Shows versions and whether they are the tested ones, the processor and its caches, whether hardware counters can be
read, the cache folder, the default model bundle, and every plug-in with the distribution that brings it.
Exit code 1 if there is a problem that stops models from compiling.

examples:
  torch-pim doctor
  torch-pim doctor --json > doctor.json
"""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print a list of findings as JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        findings = tuple(collect())
        print(as_json(findings) if arguments.json else as_table(findings))
        return int(any(finding.state == "problem" for finding in findings))


def collect() -> Iterator[Finding]:
    """All findings, section by section."""
    # Listing the commands must not import what the checks need.
    from torch_pim.compiler_hook.cli.doctor.counters import check_counters
    from torch_pim.compiler_hook.cli.doctor.installation import check_installation, check_plugins
    from torch_pim.compiler_hook.cli.doctor.processor import check_processor
    from torch_pim.compiler_hook.cli.doctor.versions import check_versions

    yield from check_versions()
    yield from check_processor()
    yield from check_counters()
    yield from check_installation()
    yield from check_plugins()


def as_json(findings: Sequence[Finding]) -> str:
    """A JSON list with one object per finding: section, name, state, value, advice."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)


def as_table(findings: Sequence[Finding]) -> str:
    """Findings under the headings of their sections; advice stands below what it mends."""
    width = max(len(finding.name) for finding in findings)
    lines: list[str] = []
    for section, members in itertools.groupby(findings, key=lambda finding: finding.section):
        lines += ["", section] if lines else [section]
        for finding in members:
            lines.append(f"  {_MARKS[finding.state]:<8}{finding.name:<{width}}  {finding.value}")
            if finding.advice:
                lines.append(f"  {'':<8}{'':<{width}}  -> {finding.advice}")
    problems = sum(finding.state == "problem" for finding in findings)
    verdict = "Models can be compiled." if not problems else f"{problems} problem(s) stop models from compiling."
    return "\n".join([*lines, "", verdict])


COMMAND = DoctorCommand()
