"""Policies compared on modelled times: isolated times, regrets, tables and JSON."""
