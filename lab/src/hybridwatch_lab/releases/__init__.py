"""What a release of vLLM needs to become a build: its lock, its entries, a first look at it."""
