"""The page of `turngate serve`: what gates did, in a browser on this machine, or in one file."""
