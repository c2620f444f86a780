"""How the tiny memory model is trained: rows of listings and questions, and the loop."""
