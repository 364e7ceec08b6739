"""Minimum cut of a two-sided placement graph, by scipy's maximum flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

LARGEST_CAPACITY = 2**30
"""scipy's maximum flow computes in 32-bit integers and silently cuts off wider capacities."""

HOST, DEVICE = 0, 1
"""The two terminals. A node that is not on the device side of the cut is on the host."""


class CutGraph:
    """Collects costs of having one node on the host while another is on the device."""

    def __init__(self) -> None:
        self._capacity: dict[tuple[int, int], float] = {}
        self._advantage: dict[int, float] = {}
        self._nodes = 2

    def new_node(self) -> int:
        self._nodes += 1
        return self._nodes - 1

    def charge(self, on_host: int, on_device: int, cost: float) -> None:
        """Charges `cost` if the first node is on the host and the second on the device."""
        impossible = on_host in (on_device, DEVICE) or on_device == HOST
        constant = (on_host, on_device) == (HOST, DEVICE)
        if cost > 0 and not impossible and not constant:
            key = (on_host, on_device)
            self._capacity[key] = self._capacity.get(key, 0.0) + cost

    def charge_either_way(self, a: int, b: int, cost: float) -> None:
        self.charge(a, b, cost)
        self.charge(b, a, cost)

    def charge_once(self, producer: int, readers: Sequence[int], host_cost: float, device_cost: float) -> None:
        """Charges `host_cost` once if the producer is on the host and any reader on the device; vice versa.

        With several readers each direction has a node of its own, which such a reader pulls to its side. No more than
        the cost itself can flow through that node, so the cost serves as the infinite capacity of its pulling edges.
        """
        if len(readers) == 1:
            self.charge(producer, readers[0], host_cost)
            self.charge(readers[0], producer, device_cost)
            return
        to_device, to_host = self.new_node(), self.new_node()
        self.charge(producer, to_device, host_cost)
        self.charge(to_host, producer, device_cost)
        for reader in readers:
            self.charge(to_device, reader, host_cost)
            self.charge(reader, to_host, device_cost)

    def prefer_device(self, node: int, advantage: float) -> None:
        """Says what the node saves on the device; a negative number is what it saves on the host."""
        self._advantage[node] = self._advantage.get(node, 0.0) + advantage

    def device_side(self) -> frozenset[int]:
        """Nodes on the device in the cheapest assignment with the fewest of them (ties go to the host)."""
        self._add_advantages()
        if not self._capacity:
            return frozenset({DEVICE})
        pairs = sorted(self._capacity)
        cost = np.array([self._capacity[pair] for pair in pairs], dtype=np.float64)
        scaled = np.rint(cost * (LARGEST_CAPACITY / cost.max())).astype(np.int32)
        rows, columns = np.array(pairs, dtype=np.int32).T
        shape = (self._nodes, self._nodes)
        graph = csr_array((scaled, (rows, columns)), shape=shape)
        flow = maximum_flow(graph, HOST, DEVICE).flow
        residual = graph.astype(np.int64) - flow.astype(np.int64)
        residual.eliminate_zeros()
        reached = breadth_first_order(residual.T.tocsr(), DEVICE, return_predecessors=False)
        return frozenset(int(node) for node in reached)

    def _add_advantages(self) -> None:
        """Turns advantages into terminal edges, clipped where more cannot change the side.

        A node whose advantage exceeds everything charged around it is on its own best side in every optimum, so
        clipping keeps the optimum and leaves the 32 bits to the costs that matter.
        """
        around: dict[int, float] = {}
        for pair, cost in self._capacity.items():
            for node in pair:
                around[node] = around.get(node, 0.0) + cost
        for node, advantage in self._advantage.items():
            clipped = min(abs(advantage), 2.0 * around.get(node, 0.0) + 1.0)
            if advantage > 0:
                self.charge(node, DEVICE, clipped)
            else:
                self.charge(HOST, node, clipped)
