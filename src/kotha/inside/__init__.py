"""Model inspection: traces, attention maps, the logit lens, head studies and the ledger of every number."""
