"""`python -m torch_pim.compiler_hook.cli` is the `torch-pim` command."""

import sys

from torch_pim.compiler_hook.cli.main import main

sys.exit(main())
