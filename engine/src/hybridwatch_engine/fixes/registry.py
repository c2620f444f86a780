"""Every fix there is."""

from typing import Final

from hybridwatch_engine.fixes import (
    all_cache_spec_decode,
    draft_max_seq_len,
    dummy_run_padding,
    one_token_prompt,
    padded_rows_prefilling,
    single_token_extend,
    stale_block_table,
)
from hybridwatch_engine.fixes.fix import Fix

FIXES: Final[dict[str, Fix]] = {
    fix.header.id: fix
    for fix in (
        padded_rows_prefilling.FIX,
        single_token_extend.FIX,
        draft_max_seq_len.FIX,
        all_cache_spec_decode.FIX,
        stale_block_table.FIX,
        stale_block_table.FINISHED_ROWS,
        stale_block_table.VACATED_ROWS,
        dummy_run_padding.FIX,
        one_token_prompt.FIX,
    )
}
