"""How a model runs: what of the peak it uses, its blocks and layers, as a report and on the screen."""
