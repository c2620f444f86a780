"""A tokenizer whose tokens are the 256 bytes, in their own order, and three special tokens.

Written as an ordinary `tokenizer.json`, so `AutoTokenizer` and vLLM read it with no code of ours.
Nothing is added to a prompt.
"""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from recipe.files import edit_json

PAD, BOS, EOS = 256, 257, 258
VOCABULARY_SIZE = 259
MAX_LENGTH = 1024
SPECIAL_TOKENS = {"<pad>": PAD, "<bos>": BOS, "<eos>": EOS}


def byte_symbols() -> list[str]:
    """Return the symbol that stands for each byte in the vocabulary file (GPT-2's table)."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def write_tokenizer(directory: Path) -> None:
    """Write the tokenizer's files into a model directory, named as every release reads them."""
    vocabulary = {symbol: byte for byte, symbol in enumerate(byte_symbols())} | SPECIAL_TOKENS
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{name}_token": f"<{name}>" for name in ("pad", "bos", "eos")},
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_LENGTH,
    ).save_pretrained(directory)
    edit_json(
        directory / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "backend": None},
    )
