"""Integers that may depend on symbolic dimensions: polynomials with integer coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class UnboundSymbolError(KeyError):
    """A symbolic extent was evaluated without a value for one of its symbols."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Sum of `coefficient * product(symbols)`; terms are sorted, so equal values compare equal."""

    terms: tuple[tuple[tuple[str, ...], int], ...]

    @staticmethod
    def symbol(name: str) -> Polynomial:
        return Polynomial((((name,), 1),))

    def at(self, bindings: Mapping[str, int]) -> int:
        """Value for the given symbols; raises UnboundSymbolError for a missing one."""
        total = 0
        for symbols, coefficient in self.terms:
            for name in symbols:
                if name not in bindings:
                    raise UnboundSymbolError(f"no value for symbolic dimension {name!r}")
                coefficient *= bindings[name]
            total += coefficient
        return total

    def symbols(self) -> frozenset[str]:
        return frozenset(name for names, _ in self.terms for name in names)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        return " + ".join("*".join([str(c), *names]) for names, c in self.terms)


Extent = int | Polynomial


def _terms(value: Extent) -> dict[tuple[str, ...], int]:
    if isinstance(value, int):
        return {(): value} if value else {}
    return dict(value.terms)


def _normal(terms: Mapping[tuple[str, ...], int]) -> Extent:
    kept = {names: c for names, c in terms.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Polynomial(tuple(sorted(kept.items())))


def add(left: Extent, right: Extent) -> Extent:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    terms = _terms(left)
    for names, coefficient in _terms(right).items():
        terms[names] = terms.get(names, 0) + coefficient
    return _normal(terms)


def multiply(left: Extent, right: Extent) -> Extent:
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    terms: dict[tuple[str, ...], int] = {}
    for a, ca in _terms(left).items():
        for b, cb in _terms(right).items():
            names = tuple(sorted(a + b))
            terms[names] = terms.get(names, 0) + ca * cb
    return _normal(terms)


def subtract(left: Extent, right: Extent) -> Extent:
    return add(left, multiply(-1, right))


def evaluate(value: Extent, bindings: Mapping[str, int]) -> int:
    return value if isinstance(value, int) else value.at(bindings)


def symbols_of(value: Extent) -> frozenset[str]:
    return frozenset() if isinstance(value, int) else value.symbols()


def concrete(value: Extent) -> int:
    """The integer itself; raises UnboundSymbolError when the value is symbolic."""
    if isinstance(value, int):
        return value
    raise UnboundSymbolError(f"extent {value} is symbolic; call LoopNest.at(bindings) first")


def divide_exactly(value: Extent, divisor: int) -> Extent | None:
    """The quotient where every coefficient is a multiple of the divisor; else None."""
    terms = _terms(value)
    if divisor == 0 or any(coefficient % divisor for coefficient in terms.values()):
        return None
    return _normal({names: coefficient // divisor for names, coefficient in terms.items()})
