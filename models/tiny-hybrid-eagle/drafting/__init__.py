"""How drafts of the tiny hybrid model are made and measured: corpus, Eagle head, distillation."""
