"""How the tiny hybrid model is made: tokenizer, architecture, training batches and scan."""
