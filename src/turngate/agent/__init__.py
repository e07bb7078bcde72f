"""Works: the session, its loop, its tools and its transcript."""
