"""Every policy on the language models that were held out, over machines, with and without profiles."""
