"""Random inputs for everything that reads what others wrote, and the invariants that must hold for each of them."""
