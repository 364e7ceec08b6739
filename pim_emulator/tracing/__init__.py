"""Addresses of the loads and stores that compiled nests make."""
