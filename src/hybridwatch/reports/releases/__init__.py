"""What each release and model runner breaks, from cells that are kept as they are measured."""
