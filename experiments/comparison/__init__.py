"""Policies compared on modelled times: plan times, regrets, tables and JSON. Nothing here is measured."""
