"""The `demo` command: plans and modelled times of real models, and a small one that really runs."""
