"""What is made ready for a machine with a GPU, before anybody is there."""
