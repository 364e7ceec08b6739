"""How reasons write times, sizes and counts."""

from __future__ import annotations


def duration(time_ns: float) -> str:
    """Three significant digits with a unit, e.g. `12.1 us`."""
    for limit, divisor, unit in ((1e3, 1.0, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if time_ns < limit:
            return f"{_three(time_ns / divisor)} {unit}"
    return f"{_three(time_ns / 1e9)} s"


def times(host_ns: float, device_ns: float) -> str:
    """Both times, e.g. `12.1 us on host, 3.04 us on PIM`."""
    return f"{duration(host_ns)} on host, {duration(device_ns)} on PIM"


def against_threshold(score: float, threshold: float) -> str:
    """E.g. `score 0.97 >= 0.50`, with as many digits as it takes to tell them apart."""
    sign = ">=" if score >= threshold else "<"
    for digits in range(2, 17):
        left, right = f"{score:.{digits}f}", f"{threshold:.{digits}f}"
        if left != right or score == threshold:
            break
    return f"score {left} {sign} {right}"


def nbytes(count: float) -> str:
    """Three significant digits with a binary unit, e.g. `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{_three(count)} {unit}"
        count /= 1024
    return f"{_three(count)} GiB"


def _three(value: float) -> str:
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text
