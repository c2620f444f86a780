"""Every fix there is."""

from typing import Final

from hybridwatch_engine.fixes import (
    all_cache_spec_decode,
    block_end_states,
    conv_anchor,
    cpu_speculative_states,
    draft_max_seq_len,
    draft_model_cache_group,
    dummy_run_padding,
    one_token_prompt,
    padded_rows_prefilling,
    prev_step_anchor,
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
        draft_max_seq_len.TARGET_HALF,
        draft_max_seq_len.DRAFT_HALF,
        all_cache_spec_decode.FIX,
        *all_cache_spec_decode.PARTS,
        stale_block_table.FIX,
        stale_block_table.FINISHED_ROWS,
        stale_block_table.VACATED_ROWS,
        dummy_run_padding.FIX,
        one_token_prompt.FIX,
        prev_step_anchor.FIX,
        prev_step_anchor.ACCEPTED_COUNTS,
        conv_anchor.FIX,
        block_end_states.FIX,
        cpu_speculative_states.FIX,
        draft_model_cache_group.FIX,
    )
}
