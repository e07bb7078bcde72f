"""What people see of hooks under review: lists, definitions, changes, earlier runs."""
