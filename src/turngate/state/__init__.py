"""Files in the state folder: paths, safe file operations, the journal."""
