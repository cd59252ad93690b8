/* report_page.c: the report as one page of HTML: its head, style, script, provenance and table.
 * The sections with plots are page_latency.c, page_tradeoff.c and page_prediction.c. The page needs no network and no
 * library. Texts of files are added by page_text alone, which leaves nothing in them that a browser would take for
 * markup. Colours are those of Okabe and Ito, which people with colour blindness can tell apart. */
#include "report/report_page.h"

#include "base/document.h"
#include "base/metrics.h"
#include "base/noise.h"
#include "report/page.h"
#include "report/page_latency.h"
#include "report/page_prediction.h"
#include "report/page_tradeoff.h"
#include "report/report_text.h"
#include "report/result_read.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- words and tables */
/* The point of a file in its data set's trade-off, or NULL. */
static const vp_bootstrap_point *boot_point(const struct report *report, size_t file, int *on_front) {
    *on_front = is_on_front(report, file);
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[group];
        for (size_t i = 0; tradeoff->points && i < tradeoff->config_count; i++)
            if (tradeoff->group->paired[i] == file) return &tradeoff->points[i];
    }
    return NULL;
}
/* HTML lets </td> and </tr> be left out. */
static void table_cell(struct text_buffer *out, struct number_text number) {
    text_add_string(out, "<td>");
    page_text(out, number.text);
}
/* A cell with a value, and its interval small behind it. */
static void table_range(struct text_buffer *out, vp_estimate estimate) {
    table_cell(out, number_short(estimate.value));
    if (isfinite(estimate.low) || isfinite(estimate.high))
        page_add(out, " <small>%s</small>", number_range(1, estimate.low, estimate.high).text);
}
static void table_row(struct text_buffer *out, const struct report *report, size_t index) {
    static const int metrics[] = {METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
    const struct decomposition *decomposition = &report->items[index];
    int on_front;
    const vp_bootstrap_point *point = boot_point(report, index, &on_front);
    char name[160];
    page_add(out, "<tr><th scope=\"row\" data-v=\"%zu\">", index);
    page_text(out, report_full_name(report->results, decomposition->file, name));
    page_add(out, "<td>%zu", decomposition->file->count);
    if (point) table_range(out, point_accuracy(point));
    else table_range(out, file_accuracy(decomposition->file));
    table_range(out, decomposition->p50[METRIC_TOTAL]);
    table_cell(out, number_short(decomposition->p95[METRIC_TOTAL]));
    for (int column = 0; column < 5; column++) table_cell(out, number_short(decomposition->p50[metrics[column]].value));
    table_cell(out, number_formatted("%.2f", 100 * decomposition->closure));
    table_cell(out, number_percent(decomposition->run_spread));
    table_cell(out, number_percent(decomposition->idle_share));
    page_add(out, "<td data-v=\"%d\">%s", on_front, on_front ? "yes" : "");
    table_cell(out, number_percent(point ? point->membership : (double)NAN));
    text_add_string(out, "\n");
}
static void page_table(struct text_buffer *out, const struct report *report) {
    static const char *const heads[] = {"configuration", "samples",    "accuracy",   "T_total P50, ms",
                                        "P95, ms",       "TTFT, ms",   "vision, ms", "prefill, ms",
                                        "decode, ms",    "TPOT, ms",   "closure, %", "run spread, %",
                                        "idle, %",       "front",      "member, %"};
    text_add_string(
        out,
        "<section id=\"table\"><h2>All configurations</h2><p>Times are medians over samples, P95 aside; accuracy is "
        "the mean; in brackets 95 % intervals; a click on a head sorts.</p>\n"
        "<div class=\"scroll\"><table class=\"sort\"><thead><tr>");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        page_add(out, "<th scope=\"col\"><button>%s</button>", heads[i]);
    text_add_string(out, "</thead><tbody>\n");
    for (size_t i = 0; i < report->results->count; i++) table_row(out, report, i);
    text_add_string(out, "</tbody></table></div><dl>\n");
    for (size_t i = 0; i < LATENCY_TERM_COUNT; i++) {
        const struct term *term = &TERMS[LATENCY_TERMS[i]];
        page_element(out, "dt", term->key);
        text_add_string(out, "<dd>");
        page_text(out, term->meaning);
        text_add_string(out, "</dd>\n");
    }
    text_add_string(out, "</dl></section>\n");
}
/* The text that the files have at an offset of struct result_file; where they differ, the first three. */
static void provenance_text(struct text_buffer *out, const struct results *results, const char *name, size_t offset) {
    const char *seen[4];
    size_t count = 0;
    for (size_t i = 0; i < results->count && count < 4; i++) {
        const char *text = *(char *const *)(const void *)((const char *)&results->files[i] + offset);
        size_t known = 0;
        while (text && known < count && strcmp(seen[known], text)) known++;
        if (text && known == count) seen[count++] = text;
    }
    if (!count) return;
    page_element(out, "dt", name);
    text_add_string(out, "<dd>");
    for (size_t i = 0; i < count && i < 3; i++) {
        if (i) text_add_string(out, "; ");
        page_text(out, seen[i]);
    }
    text_add_string(out, count > 3 ? "; and others</dd>\n" : "</dd>\n");
}
/* The number that the first file has at an offset of struct result_file, and whether others differ. */
static void provenance_number(struct text_buffer *out, const struct results *results, const char *name, size_t offset) {
    int64_t first, other;
    int differ = 0;
    memcpy(&first, (const char *)&results->files[0] + offset, sizeof first);
    for (size_t i = 1; i < results->count; i++) {
        memcpy(&other, (const char *)&results->files[i] + offset, sizeof other);
        differ |= other != first;
    }
    if (first >= 0 || differ)
        page_add(out, "<dt>%s</dt><dd>%lld%s</dd>\n", name, (long long)first, differ ? " (others differ)" : "");
}
/* The earliest and the latest time. They are compared as texts, because ISO 8601 sorts by time. */
static void provenance_times(struct text_buffer *out, const struct results *results) {
    const char *first = NULL, *last = NULL;
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        if (file->measured_from && (!first || strcmp(file->measured_from, first) < 0)) first = file->measured_from;
        if (file->measured_to && (!last || strcmp(file->measured_to, last) > 0)) last = file->measured_to;
    }
    if (!first || !last) return;
    text_add_string(out, "<dt>measured</dt><dd>");
    page_text(out, first);
    text_add_string(out, " to ");
    page_text(out, last);
    text_add_string(out, "</dd>\n");
}
static void page_provenance(struct text_buffer *out, const struct report *report) {
    static const struct { const char *name; size_t offset;
    } texts[] = {{"data set", offsetof(struct result_file, task)},
                 {"data", offsetof(struct result_file, data)},
                 {"data hash", offsetof(struct result_file, data_hash)},
                 {"accuracy by", offsetof(struct result_file, metric)},
                 {"model", offsetof(struct result_file, model)},
                 {"weights", offsetof(struct result_file, weights)},
                 {"importance scores", offsetof(struct result_file, importance)},
                 {"device", offsetof(struct result_file, device)},
                 {"host", offsetof(struct result_file, host)},
                 {"vlmprof", offsetof(struct result_file, version)},
                 {"timing", offsetof(struct result_file, timing)},
                 {"status", offsetof(struct result_file, status)}};
    static const struct { const char *name; size_t offset;
    } numbers[] = {{"seed", offsetof(struct result_file, seed)},
                   {"runs a sample, at least", offsetof(struct result_file, runs_per_sample)},
                   {"most new tokens", offsetof(struct result_file, max_new_tokens)},
                   {"experts", offsetof(struct result_file, expert_count)},
                   {"decoder blocks", offsetof(struct result_file, total_blocks)}};
    const struct result_file *file = &report->results->files[0];
    text_add_string(out, "<section id=\"source\"><h2>Provenance</h2><dl>\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        provenance_text(out, report->results, texts[i].name, texts[i].offset);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        provenance_number(out, report->results, numbers[i].name, numbers[i].offset);
    provenance_times(out, report->results);
    if (isfinite(file->cost_share)) {
        vp_estimate tool;
        tool.value = 100 * file->cost_share; tool.low = 100 * file->cost_low; tool.high = 100 * file->cost_high;
        char reason[200];
        say_unknown_cost(reason, sizeof reason, tool, (size_t)file->cost_pairs, "pairs of runs");
        if (is_cost_known(tool))
            page_add(out, "<dt>cost of stage times</dt><dd>%s %% of T_total</dd>\n", number_cost(tool).text);
        else page_add(out, "<dt>cost of stage times</dt><dd>%s</dd>\n", reason);
    }
    page_add(out, "<dt>report by</dt><dd>vlmprof %s, %zu resamples, seed %u</dd>\n", VLMPROF_VERSION,
             report->settings.resamples, (unsigned)report->settings.seed);
    text_add_string(out, "</dl></section>\n");
}
static void page_list(struct text_buffer *out, const char *id, const char *title, const struct text_list *items) {
    if (!items->count) return;
    page_add(out, "<section id=\"%s\"><h2>%s</h2><ul>\n", id, title);
    for (size_t i = 0; i < items->count; i++) {
        page_element(out, "li", items->items[i]);
        text_add_string(out, "\n");
    }
    text_add_string(out, "</ul></section>\n");
}

/* ---- the page */
static void page_style(struct text_buffer *out) {
    text_add_string(
        out,
        "<style>\n"
        ":root{color-scheme:light dark;--bg:#fff;--fg:#1a1c1f;--soft:#5a6068;--line:#dfe2e6;--box:#f5f6f8;"
        "--warn:#fdf3e3;--edge:#c77700}\n"
        "@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e8ea;--soft:#a3abb4;--line:#343a41;"
        "--box:#1f2328;--warn:#33281a;--edge:#e69f00}.s0{--c:#2487cb!important}}\n"
        "*{box-sizing:border-box}"
        "body{margin:0 auto;padding:1.2rem 1.5rem 4rem;max-width:1180px;background:var(--bg);color:var(--fg);"
        "font:15px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.6rem;margin:.2rem 0}"
        "h2{font-size:1.15rem;margin:2.2rem 0 .6rem;padding-top:.4rem;border-top:1px solid var(--line)}"
        "h3{font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.4rem 0}a{color:inherit}\n"
        "nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;color:var(--soft);font-size:.9rem;margin:.4rem 0 0}"
        ".soft{color:var(--soft)}\n"
        "#warnings{background:var(--warn);border-left:4px solid var(--edge);padding:.1rem 1rem .5rem;margin:1rem 0}"
        "#warnings h2{border:0;margin:.5rem 0 .2rem}ul{margin:.2rem 0;padding-left:1.2rem;overflow-wrap:anywhere}\n"
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0}"
        "@media(min-width:900px){dl{grid-template-columns:max-content 1fr max-content 1fr}}dt{color:var(--soft)}"
        "dd{margin:0;overflow-wrap:anywhere}\n");
    text_add_string(
        out,
        ".grid .wide{grid-column:1/-1}"
        ".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:1rem}"
        "figure{margin:0;padding:.8rem;background:var(--box);border-radius:6px;break-inside:avoid;min-width:0}"
        "figcaption{font-weight:600;font-size:.9rem;margin-bottom:.3rem}\n"
        "figcaption span{display:block;font-weight:400;font-size:.8rem;color:var(--soft)}\n"
        "svg{display:block;width:100%;height:auto;overflow:visible;font:11px system-ui,sans-serif;fill:var(--fg)}\n"
        ".legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.82rem;margin:.2rem 0 .5rem}"
        ".legend span{display:inline-flex;align-items:center;gap:.35rem}"
        ".legend svg{width:14px;height:12px;flex:none}\n"
        ".s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#009e73}.s3{--c:#e69f00}.s4{--c:#cc79a7}.s5{--c:#56b4e9}"
        ".s6{--c:#8c8c8c}.s7{--c:#f0e442}.s8{--c:var(--fg)}\n"
        ".m{fill:var(--c);stroke:var(--fg);stroke-width:.6;stroke-opacity:.55}"
        ".l{stroke:var(--c);stroke-width:1.8;fill:none}.w{stroke:var(--c);stroke-width:1.2;opacity:.8;fill:none}"
        ".b{fill:var(--c);stroke:var(--box);stroke-width:.5}.a{fill:var(--c)}.h{fill:transparent}"
        ".h:hover{fill:var(--fg);fill-opacity:.18}.g{stroke:var(--line);stroke-width:1}"
        ".t{stroke:var(--soft);stroke-width:.7;opacity:.35}"
        ".r{stroke:var(--soft);stroke-width:1.4;stroke-dasharray:5 4;fill:none}"
        ".d{stroke:var(--c);stroke-width:2.2;stroke-linecap:round;opacity:.55}.n{fill:var(--soft)}"
        ".o{paint-order:stroke;stroke:var(--box);stroke-width:3px;stroke-linejoin:round}.many .m{stroke-width:.25}"
        ".many .m:hover,.m:hover{stroke-width:2.5;stroke-opacity:1}\n");
    text_add_string(
        out,
        ".scroll{overflow-x:auto}"
        "table{border-collapse:collapse;font-size:.76rem;font-variant-numeric:tabular-nums;width:100%}"
        "td,th{padding:.2rem .32rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
        "tbody th{text-align:left;font-weight:500}"
        "thead th{white-space:normal;vertical-align:bottom;background:var(--box)}"
        "thead th:first-child{text-align:left}tbody tr:hover{background:var(--box)}small{color:var(--soft)}\n"
        "button{all:unset;cursor:pointer;font-weight:600}button:focus-visible{outline:2px solid var(--edge)}"
        "th[aria-sort=ascending] button::after{content:' \\25B2'}"
        "th[aria-sort=descending] button::after{content:' \\25BC'}\n"
        "@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--line:#ccc;--box:#fff;--warn:#fff;"
        "--edge:#000}body{max-width:none;padding:0;font-size:10pt}nav{display:none}.scroll{overflow:visible}"
        "table{font-size:6.5pt}td,th{padding:1pt 2pt}thead{display:table-header-group;break-inside:avoid}"
        "tr{break-inside:avoid}h2,h3,.soft{break-after:avoid}.grid{grid-template-columns:1fr 1fr}"
        "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
        "</style>\n");
}
/* Sorts a table by the column whose head is clicked: numbers by value, cells without a number last. */
static void page_script(struct text_buffer *out) {
    text_add_string(out,
        "<script>\nfor (const b of document.querySelectorAll('table.sort button')) b.onclick = () => {\n"
        "  const h = b.parentNode, body = h.closest('table').tBodies[0], i = h.cellIndex\n"
        "  const way = h.getAttribute('aria-sort') == 'ascending' ? -1 : 1\n"
        "  const value = r => parseFloat(r.cells[i].dataset.v ?? r.cells[i].textContent)\n"
        "  for (const other of h.parentNode.cells) other.removeAttribute('aria-sort')\n"
        "  h.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending')\n"
        "  const rows = [...body.rows].map(r => [value(r), r])\n"
        "  rows.sort((x, y) => isNaN(x[0]) - isNaN(y[0]) || way * (x[0] - y[0]) || 0)\n"
        "  body.append(...rows.map(x => x[1]))\n}\n</script>\n");
}
static void page_head(struct text_buffer *out, const struct report *report) {
    size_t samples = 0;
    for (size_t i = 0; i < report->results->count; i++)
        if (report->results->files[i].count > samples) samples = report->results->files[i].count;
    text_add_string(out,
                    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                         "<meta name=\"referrer\" content=\"no-referrer\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>vlmprof: ");
    page_text(out, report->results->files[0].task);
    page_add(out, ", %zu configurations</title>\n", report->results->count);
    page_style(out);
    text_add_string(out, "</head><body>\n<header><h1>");
    for (size_t i = 0; i < report->results->group_count && i < 3; i++) {
        if (i) text_add_string(out, ", ");
        page_text(out, report->results->files[report->results->groups[i].first].task);
    }
    if (report->results->group_count > 3) page_add(out, " and %zu more", report->results->group_count - 3);
    page_add(out, "</h1><p class=\"soft\">%zu configuration%s, up to %zu samples each", report->results->count,
             report->results->count == 1 ? "" : "s", samples);
    if (report->results->files[0].model) {
        text_add_string(out, ", model ");
        page_text(out, report->results->files[0].model);
    }
    if (report->results->files[0].device) {
        text_add_string(out, ", ");
        page_text(out, report->results->files[0].device);
    }
    text_add_string(
        out,
        "</p><nav><a href=\"#source\">Provenance</a><a href=\"#findings\">Findings</a>"
        "<a href=\"#e1\">Where time goes</a><a href=\"#e2\">What it buys</a><a href=\"#e3\">Predicted</a>"
        "<a href=\"#table\">All configurations</a></nav></header>\n");
}
void report_page_write(const struct report *report, struct text_buffer *out) {
    page_head(out, report);
    page_list(out, "warnings", "Warnings", &report->warnings);
    page_provenance(out, report);
    page_list(out, "findings", "Findings", &report->findings);
    page_latency(out, report);
    page_tradeoffs(out, report);
    page_predictions(out, report);
    page_table(out, report);
    page_script(out);
    text_add_string(out, "</body></html>\n");
}
