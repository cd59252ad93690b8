/* report_page.c: the report as an HTML page: its head, findings, table, glossary and provenance. The sections with
 * plots are in page_latency.c, page_tradeoff.c and page_load.c. The page needs no network and no library. Texts
 * from files are added only by page_text, which leaves nothing in them that a browser would treat as markup. The
 * colours are those of Okabe and Ito, which people with colour blindness can distinguish. */
#include "page/report_page.h"

#include "base/document.h"
#include "measure/noise.h"
#include "page/page.h"
#include "report/report_text.h"
#include "results/metrics.h"
#include "results/result_read.h"

#include <math.h>

void page_groups(struct text_buffer *out, const struct report *report, const char *id, const char *title,
                 int (*has)(const struct report *, size_t),
                 void (*show)(struct text_buffer *, const struct report *, size_t)) {
    int is_open = 0;
    for (size_t group = 0; group < report->results->group_count; group++) {
        if (!has(report, group)) continue;
        if (!is_open++) page_section_open(out, id, title);
        page_set_open(out, report->results, group);
        show(out, report, group);
        text_add_string(out, "</div>\n");
    }
    if (is_open) page_section_close(out);
}

/* ---- glossary and tables */
enum { TABLE_ROWS_OPEN = 24 }; /* a longer table is folded */
static void page_table(struct text_buffer *out, const struct report *report) {
    page_folded_open(out, "table", "All configurations", "One row each. Click a column header to sort.",
                     report->results->count <= TABLE_ROWS_OPEN);
    page_add(out, "<p class=\"soft\">Times are medians over the %s in ms, except P95. Accuracy is the mean. Brackets: "
                  "95 %% intervals.</p>\n", report->loads.count ? "requests under load" : "samples");
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct table table = latency_table(report, group, 1);
        page_set_open(out, report->results, group);
        page_table_of(out, "All configurations", &table);
        text_add_string(out, "</div>");
    }
    page_folded_close(out);
}
/* The text that the files have at an offset of struct result_file; if they differ, the first three. */
static void provenance_text(struct text_buffer *out, const struct results *results, const char *name, size_t offset) {
    struct text_buffer texts = {NULL, 0, 0};
    const char *seen[4];
    size_t count = 0;
    for (size_t i = 0; i < results->count && count < 4; i++) {
        const char *text = *(char *const *)(const void *)((const char *)&results->files[i] + offset);
        size_t known = 0;
        while (text && known < count && strcmp(seen[known], text)) known++;
        if (text && known == count) seen[count++] = text;
    }
    if (!count) return;
    for (size_t i = 0; i < count && i < 3; i++) {
        if (i) text_add_string(&texts, "; ");
        text_add_string(&texts, seen[i]);
    }
    if (count > 3) text_add_string(&texts, "; and others");
    page_list_item(out, name, texts.data);
    free(texts.data);
}
/* The number that the first file has at an offset of struct result_file, with a note if others differ. */
static void provenance_number(struct text_buffer *out, const struct results *results, const char *name, size_t offset) {
    int64_t first, other;
    int differ = 0;
    char text[48];
    memcpy(&first, (const char *)&results->files[0] + offset, sizeof first);
    for (size_t i = 1; i < results->count; i++) {
        memcpy(&other, (const char *)&results->files[i] + offset, sizeof other);
        differ |= other != first;
    }
    snprintf(text, sizeof text, "%lld%s", (long long)first, differ ? " (others differ)" : "");
    if (first >= 0 || differ) page_list_item(out, name, text);
}
/* The earliest and the latest time, compared as texts, because ISO 8601 sorts by time. */
static void provenance_times(struct text_buffer *out, const struct results *results) {
    const char *first = NULL, *last = NULL;
    char text[LINE_BYTES];
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        if (file->measured_from && (!first || strcmp(file->measured_from, first) < 0)) first = file->measured_from;
        if (file->measured_to && (!last || strcmp(file->measured_to, last) > 0)) last = file->measured_to;
    }
    snprintf(text, sizeof text, "%s to %s", first ? first : "", last ? last : "");
    if (first && last) page_list_item(out, "measured", text);
}
static void page_provenance(struct text_buffer *out, const struct report *report) {
    static const struct { const char *name; size_t offset;
    } texts[] = {{"data set", offsetof(struct result_file, dataset_name)},
                 {"data", offsetof(struct result_file, data)},
                 {"data hash", offsetof(struct result_file, data_hash)},
                 {"accuracy by", offsetof(struct result_file, accuracy_metric)},
                 {"scores from", offsetof(struct result_file, accuracy_from)},
                 {"model", offsetof(struct result_file, model)},
                 {"weights", offsetof(struct result_file, knobs.of[KNOB_WEIGHTS].text)},
                 {"importance scores", offsetof(struct result_file, importance)},
                 {"endpoint", offsetof(struct result_file, knobs.of[KNOB_ENDPOINT].text)},
                 {"server", offsetof(struct result_file, server)},
                 {"device", offsetof(struct result_file, device)},
                 {"host", offsetof(struct result_file, host)},
                 {"vlmprof", offsetof(struct result_file, version)},
                 {"timing", offsetof(struct result_file, timing)},
                 {"status", offsetof(struct result_file, status)},
                 {"command", offsetof(struct result_file, command)}};
    static const struct { const char *name; size_t offset;
    } numbers[] = {{"seed", offsetof(struct result_file, seed)},
                   {"minimum runs per sample", offsetof(struct result_file, num_runs_per_sample)},
                   {"maximum new tokens", offsetof(struct result_file, max_new_tokens)},
                   {"experts", offsetof(struct result_file, expert_count)},
                   {"decoder blocks", offsetof(struct result_file, total_blocks)}};
    const struct result_file *file = &report->results->files[0];
    char text[200];
    page_list_open(out, "source", "Provenance", "Data, model, machine and settings.");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        provenance_text(out, report->results, texts[i].name, texts[i].offset);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        provenance_number(out, report->results, numbers[i].name, numbers[i].offset);
    provenance_times(out, report->results);
    if (isfinite(file->cost.bare_difference_share)) {
        const struct field_range range = file->cost.bare_difference_share_interval;
        const vp_estimate tool = {100 * file->cost.bare_difference_share, 100 * range.low, 100 * range.high};
        if (is_cost_known(tool)) snprintf(text, sizeof text, "%s %% of T_total", number_cost(tool).text);
        else say_unknown_cost(text, sizeof text, tool, (size_t)file->cost.bare_pairs, "pairs of runs");
        page_list_item(out, "cost of timing stages", text);
    }
    snprintf(text, sizeof text, "vlmprof %s, %zu resamples, seed %d", VLMPROF_VERSION, report->settings.resamples,
             BOOTSTRAP_SEED);
    page_list_item(out, "report by", text);
    page_list_close(out);
}

/* ---- the page */
/* The subject of the page: data sets, model, device and date. */
static void page_name(struct text_buffer *out, const struct report *report) {
    const struct result_file *file = &report->results->files[0];
    const char *date = NULL;
    for (size_t i = 0; i < report->results->group_count && i < 3; i++) {
        if (i) text_add_string(out, ", ");
        page_text(out, report->results->files[report->results->groups[i].first].dataset_name);
    }
    if (report->results->group_count > 3) page_add(out, " and %zu more", report->results->group_count - 3);
    if (file->model) {
        text_add_string(out, ": ");
        page_text(out, file->model);
    }
    if (file->device) {
        text_add_string(out, file->model ? " on " : ": ");
        page_text(out, file->device);
    }
    for (size_t i = 0; i < report->results->count; i++) {
        const char *from = report->results->files[i].measured_from;
        if (from && (!date || strcmp(from, date) < 0)) date = from;
    }
    if (date) {
        text_add_string(out, ", ");
        page_day(out, date);
    }
}
/* Explains the name of a configuration by the example of the first one. */
static void page_example(struct text_buffer *out, const struct result_file *file) {
    char name[80];
    const int64_t top_k = knob_number(&file->knobs, KNOB_TOP_K), blocks = knob_number(&file->knobs, KNOB_BLOCKS);
    char size[KNOB_TEXT_BYTES];
    if (file->is_served || file->is_foreign) return;
    text_add_string(out, "<p class=\"soft\">&ldquo;");
    page_text(out, setting_text(file, name));
    text_add_string(out, "&rdquo; reads: ");
    if (knob_is_set(&file->knobs, KNOB_TOKENS) && !knob_is_set(&file->knobs, KNOB_TIER))
        page_add(out, "images of %lld vision tokens", (long long)knob_number(&file->knobs, KNOB_TOKENS));
    else {
        text_add_string(out, knob_is_set(&file->knobs, KNOB_TIER) ? "image tier " : "images ");
        page_text(out, knob_size_text(&file->knobs, size)[0] ? size : "unchanged");
    }
    page_add(out, ", %lld expert%s per token (top_k), %lld decoder block%s. Brackets: 95 %% intervals. All <a "
                  "href=\"#words\">terms</a> are explained below.</p>\n", (long long)top_k, plural_s((int64_t)top_k),
             (long long)blocks, plural_s((int64_t)blocks));
}
static void page_findings(struct text_buffer *out, const struct report *report) {
    page_section_open(out, "findings", "In short");
    page_items(out, &report->findings, 0, report->stage_findings);
    page_example(out, &report->results->files[0]);
    page_warnings(out, &report->warnings);
    page_section_close(out);
}
static void page_terms(struct text_buffer *out, const struct report *report) {
    const int is_served = are_all_served(report->results);
    char meaning[LINE_BYTES];
    static const char *const words[][2] = {
        {"configuration", "one setting of the knobs: image size, top_k and blocks"},
        {"tier", "image size: low, medium and high allow progressively more crops of an image"},
        {"k, top_k", "experts that each token is sent to"},
        {"b, blocks", "active decoder blocks"},
        {"P50, P95, P99", "percentiles over samples, or requests under load: half, 95 %, 99 % of them took no longer"},
        {"[low, high]", "95 % interval"},
        {"Pareto front", "the configurations that no other configuration beats in both latency and accuracy"},
        {"member", "share of the resamples in which a configuration is on the front"},
        {"run spread", "standard deviation / mean over the runs of a sample; the median over the samples"}};
    page_list_open(out, "words", "Words", "What the names on this page mean.");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const int is_of_engine = words[i][0][1] == ',';
        if (!is_served || !is_of_engine) page_list_item(out, words[i][0], words[i][1]);
    }
    for (int i = 0; i < TERM_COUNT; i++) {
        if (is_served
            && (i == METRIC_VISION || i == METRIC_PREFILL || i == METRIC_UNACCOUNTED || i == METRIC_CLOSURE)) continue;
        int is_known = i != METRIC_ENERGY && i != METRIC_TOKEN_ENERGY;
        for (size_t k = 0; i < METRIC_STAGE && k < report->results->count; k++)
            is_known |= isfinite(report->items[k].mean[i]);
        if (!is_known) continue;
        snprintf(meaning, sizeof meaning, "%s%s%s", is_served ? served_meaning(i) : TERMS[i].meaning,
                 *TERMS[i].unit ? ", " : "", TERMS[i].unit);
        page_list_item(out, TERMS[i].key, meaning);
    }
    page_list_close(out);
}
void report_page_write(const struct report *report, struct text_buffer *out) {
    static const struct page_link links[] = {{"findings", "In short"}, {"load", "Load"}, {"front", "Pareto front"},
        {"pruning", "Pruning"}, {"agreement", "Agreement"}, {"categories", "Categories"}, {"knobs", "Knobs"},
        {"stages", "Stages"}, {"table", "Table"}, {"scaling", "Scaling"}, {"words", "Words"}, {"source", "Provenance"},
        {NULL, NULL}};
    struct page page = {0};
    size_t samples = 0;
    for (size_t i = 0; i < report->results->count; i++)
        if (report->results->files[i].count > samples) samples = report->results->files[i].count;
    page_name(&page.heading, report);
    page_add(&page.subtitle, "%zu configuration%s, up to %zu sample%s each", report->results->count,
             plural_s((int64_t)report->results->count), samples, plural_s((int64_t)samples));
    page_findings(&page.body, report);
    page_loads(&page.body, report);
    page_fronts(&page.body, report);
    page_pruning(&page.body, report);
    page_agreement(&page.body, report);
    page_categories(&page.body, report);
    page_knobs(&page.body, report);
    page_stages(&page.body, report);
    page_table(&page.body, report);
    page_scaling(&page.body, report);
    page_terms(&page.body, report);
    page_provenance(&page.body, report);
    page_write(&page, links, out);
}
