"""Grammars of answers, read by xgrammar apart from the engine.

vLLM compiles grammars by the same package. What it then makes of them shares nothing with this:
masks, their rows in a batch of drafts, and how far the grammar of a request has come.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

Outputs = Mapping[str, Any]
"""``structured_outputs`` of a request: ``regex``, ``json`` (a schema) or ``choice``."""


class GrammarReader:
    """Reads answers token by token, in the tokens of one folder's tokenizer."""

    def __init__(self, tokenizer: str, vocabulary: int) -> None:
        import xgrammar
        from transformers import AutoTokenizer

        known = AutoTokenizer.from_pretrained(tokenizer)
        info = xgrammar.TokenizerInfo.from_huggingface(known, vocab_size=vocabulary)
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self._vocabulary = vocabulary
        self._xgrammar = xgrammar

    def find_break(self, outputs: Outputs, tokens: Sequence[int], length: int) -> int | None:
        """Find where an answer leaves its grammar.

        Args:
            outputs: The grammar.
            tokens: Ids of the answer, with the end-of-text token if it has one.
            length: Tokens at which the answer is cut.

        Returns:
            Place of the first token that the grammar refuses; the number of tokens, if the answer
            ended by itself before its grammar did; None for an answer that obeys.
        """
        matcher = self._matcher(outputs)
        for at, token in enumerate(tokens):
            if not matcher.accept_token(token):
                return at
        return None if matcher.is_terminated() or len(tokens) >= length else len(tokens)

    def mask(self, logits: Any, answer: Sequence[int], outputs: Outputs) -> Any:
        """Shut out of logits, a row for each token of an answer, what the grammar refuses there.

        Rows behind a token that it refuses, or behind its end, stay as they are.
        """
        masked, matcher = logits.clone(), self._matcher(outputs)
        bits = self._xgrammar.allocate_token_bitmask(1, self._vocabulary)
        for row, token in zip(masked, answer, strict=True):
            matcher.fill_next_token_bitmask(bits, 0)
            self._xgrammar.apply_token_bitmask_inplace(row[None], bits)
            if not matcher.accept_token(token) or matcher.is_terminated():
                break
        return masked

    def _matcher(self, outputs: Outputs) -> Any:
        ((kind, what),) = outputs.items()
        if kind == "regex":
            grammar = self._compiler.compile_regex(what)
        elif kind == "json":
            grammar = self._compiler.compile_json_schema(json.dumps(what))
        else:
            grammar = self._compiler.compile_grammar(
                f"root ::= {' | '.join(map(json.dumps, what))}"
            )
        return self._xgrammar.GrammarMatcher(grammar)


@cache
def grammar_reader(tokenizer: str, vocabulary: int) -> GrammarReader:
    """The one of a process."""
    return GrammarReader(tokenizer, vocabulary)
