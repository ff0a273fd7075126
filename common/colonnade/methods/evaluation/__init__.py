"""A finished model's accuracy on held-out people, as one differentially private release."""
