"""How good a finished model is, on people who were kept out of its fit."""
