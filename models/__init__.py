"""How a decision is made: work filter, boundedness (analytic and learned), policies, bundles."""
