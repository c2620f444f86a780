"""A one-token prefill with prior state is a decode (vllm#42430)."""

from hybridwatch_engine.fixes.fix import Finding, Fix, Header
from hybridwatch_engine.source import SourceTree, calls, stores_into

HEADER = Header(
    id="single-token-extend",
    target="v1/attention/backends/mamba_attn.py "
    "BaseMambaAttentionMetadataBuilder._compute_common_metadata",
    why="A request that computes the last single token of its prompt has the shape of a decode, so "
    "the dispatcher replays a decode graph, while the Mamba builder calls it a prefill and leaves "
    "the graph's slots as they were. Seen on the decode side of a NIXL pair.",
    how="Rows of one token that have earlier state are handed on as decodes.",
    upstream="vllm#42430",
    present_from="0.22.0",
    switch="probe",
    scenario="none yet",
    remove_when="no supported release is older than 0.22.0 and the known-bad control is retired",
)


def probe(tree: SourceTree) -> Finding:
    """Look for rows whose prefilling flag is taken away before the batch is split."""
    path = "v1/attention/backends/mamba_attn.py"
    build = tree.function(path, "BaseMambaAttentionMetadataBuilder._compute_common_metadata")
    splits = calls(build, "split_decodes_and_prefills") if build else []
    by_flag = [
        call
        for call in splits
        if any(keyword.arg == "treat_short_extends_as_decodes" for keyword in call.keywords)
    ]
    if build is None or not by_flag:
        return Finding("not-applicable", f"{path} splits batches by length alone")
    stores = stores_into(build, "is_prefilling")
    if stores:
        return Finding(
            "present", f"{path}:{stores[0].lineno} hands one-token extends on as decodes"
        )
    return Finding("lacking", f"{path}:{by_flag[0].lineno} splits by the flags as they come")


FIX = Fix(HEADER, probe)
