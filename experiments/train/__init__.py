"""From a table of labels to a model bundle: cost constants, classifier, residuals, calibration, card and run record."""
