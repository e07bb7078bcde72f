"""How gates ask git."""
