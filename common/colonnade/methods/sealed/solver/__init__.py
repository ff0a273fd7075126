"""From the releases of a sealed job to coefficients: steps that whoever has them can repeat."""
