# A sweep's result files as a table: awk -f samples/table.awk build/demo/*imgsize*.json
# The top-level keys of a file stand alone on their lines with one space in front, aggregate_stats with two.
function number(text, format) { return text == "null" || text == "" ? "-" : sprintf(format, text) } # nothing measured is no zero
function row() {
    printf "%-8s %5s %6s %13s %9s %10s %9s %9s %9s\n", tier, top_k, blocks, number(tokens, "%.1f"), number(vision, "%.2f"),
        number(prefill, "%.2f"), number(token, "%.3f"), number(total, "%.2f"), number(accuracy, "%.4f")
    tier = top_k = blocks = tokens = vision = prefill = token = total = accuracy = ""
}
BEGIN {
    FS = "\": |,$"
    printf "%-8s %5s %6s %13s %9s %10s %9s %9s %9s\n", "tier", "top_k", "blocks", "vision tokens", "vision ms", "prefill ms", "ms/token", "total ms", "accuracy"
}
FNR == 1 && NR > 1 { row() }
FNR == 1 { in_stats = 0 }
/^ "tier": / { tier = $2; gsub(/"/, "", tier) }
/^ "top_k": / { top_k = $2 }
/^ "num_active_blocks": / { blocks = $2 }
/^ "accuracy": / { accuracy = $2 }
/^ "actual_vision_tokens_mean": / { tokens = $2 }
/^ "aggregate_stats": / { in_stats = 1 }
/^ }/ { in_stats = 0 }
in_stats && /"T_vision_total_p50"/ { vision = $2 }
in_stats && /"T_LLM_prefill_p50"/ { prefill = $2 }
in_stats && /"T_decode_per_token_p50"/ { token = $2 }
in_stats && /"T_total_p50"/ { total = $2 }
END { if (NR) row() }
