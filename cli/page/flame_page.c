/* flame_page.c: a profiled request as an HTML page. The page's script (flame.js) draws the chart from the data that
 * flame_data.c writes. Tables, glossary and provenance need no script. */
#include "page/flame.h"

#include "base/document.h"
#include "page/page.h"
#include "page/plot.h"

#include <math.h>

/* ---- stages: means over the recorded requests */
struct stage_row { const char *name; double ms, ops_ms; int is_host; };
enum { STAGE_ROWS_MOST = VP_STAGE_COUNT + 8 };

/* The total time of a host part over all requests, from its rows in the table. */
static double part_ns(const vp_ops *ops, const char *name) {
    double ns = 0;
    for (int64_t i = 0; i < ops->count; i++)
        if (!ops->rows[i].stage && !strcmp(ops->rows[i].name, name)) ns += (double)ops->rows[i].host_total_ns;
    return ns;
}
static size_t stage_rows(const struct flame *flame, struct stage_row rows[STAGE_ROWS_MOST]) {
    static const char *const before[] = {"load image", "tokenize", "preprocess"};
    const double scale = 1e6 * (double)flame->request_count;
    size_t count = 0;
    for (size_t i = 0; i < 4; i++) { /* the host's parts are before and after the engine's */
        const char *name = i < 3 ? before[i] : "detok";
        double ns = part_ns(flame->ops, name);
        for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE && i == 3; stage++) {
            struct stage_row row = {vp_stage_name((vp_stage)stage), flame->stage_ns[stage] / scale,
                                    flame->op_ns[stage] / scale, 0};
            if (flame->stage_ns[stage] > 0) rows[count++] = row;
        }
        struct stage_row row = {name, ns / scale, 0, 1};
        if (ns > 0) rows[count++] = row;
    }
    return count;
}
static double request_ms(const struct flame *flame) { return flame->total_ns / (double)flame->request_count / 1e6; }
static void stage_cells(struct text_buffer *out, double ms, double share) {
    page_add(out, "<td>%.4f<td>%s", ms, number_percent(share).text);
}
static void page_stage_table(struct text_buffer *out, const struct flame *flame) {
    struct stage_row rows[STAGE_ROWS_MOST];
    size_t count = stage_rows(flame, rows);
    double rest = request_ms(flame);
    page_section_open(out, "stages", "Stages");
    page_add(out, "<p class=\"soft\">Mean of %lld request%s.</p>\n", (long long)flame->request_count,
             plural_s((int64_t)flame->request_count));
    page_table_open(out, "Stages", 0);
    page_heads(out, HEAD_FIXED, "stage|ms|share, %|operations, ms|idle, ms|idle, %");
    text_add_string(out, "</thead><tbody>\n");
    for (size_t i = 0; i < count; i++) {
        page_add(out, "<tr><th scope=\"row\">%s", rows[i].name);
        stage_cells(out, rows[i].ms, rows[i].ms / request_ms(flame));
        if (rows[i].is_host) text_add_string(out, "<td>-<td>-<td>-\n");
        else {
            page_add(out, "<td>%.4f", rows[i].ops_ms);
            stage_cells(out, rows[i].ms - rows[i].ops_ms, (rows[i].ms - rows[i].ops_ms) / rows[i].ms);
            text_add_string(out, "\n");
        }
        rest -= rows[i].ms;
    }
    text_add_string(out, "<tr><th scope=\"row\">between them");
    stage_cells(out, rest, rest / request_ms(flame));
    text_add_string(out, "<td>-<td>-<td>-\n</tbody><tfoot><tr><th scope=\"row\">request");
    stage_cells(out, request_ms(flame), 1);
    text_add_string(out, "<td>-<td>-<td>-\n</tfoot></table></div>");
    page_section_close(out);
}

/* ---- the table of operations */
static int64_t self_ns(const struct flame *flame, const vp_op *op) {
    return flame->on_device ? op->device_self_ns : op->host_self_ns;
}
static int64_t total_ns(const struct flame *flame, const vp_op *op) {
    return flame->on_device ? op->device_total_ns : op->host_total_ns;
}
static int is_launch(const vp_op *op) { return op->part && op->stage; }
static void group_heads(struct text_buffer *out, uint32_t group_by) {
    static const struct { uint32_t flag; page_head kind; const char *head; } heads[] = {
        {VP_OPS_BY_STAGE, HEAD_TEXTS, "stage"},   {VP_OPS_BY_PART, HEAD_TEXTS, "part"},
        {VP_OPS_BY_BLOCK, HEAD_NUMBERS, "block"}, {VP_OPS_BY_STEP, HEAD_NUMBERS, "step"},
        {VP_OPS_BY_SHAPE, HEAD_TEXTS, "shape"},   {VP_OPS_BY_PLACE, HEAD_TEXTS, "place"}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (group_by & heads[i].flag) page_heads(out, heads[i].kind, heads[i].head);
}
static void text_cell(struct text_buffer *out, const char *text) {
    text_add_string(out, "<td class=\"x\">");
    page_text(out, text ? text : "");
}
static void number_cell(struct text_buffer *out, int32_t number) {
    if (number == VP_OP_SEVERAL) text_add_string(out, "<td>*");
    else if (number < 0) text_add_string(out, "<td>");
    else page_add(out, "<td>%d", number);
}
static void shape_cell(struct text_buffer *out, const vp_op *op) {
    text_add_string(out, "<td class=\"x\">");
    if (op->dimensions == VP_OP_SEVERAL) text_add_string(out, "*");
    for (int i = 0; i < op->dimensions; i++) page_add(out, "%s%d", i ? " &times; " : "", op->shape[i]);
}
static void group_cells(struct text_buffer *out, const vp_op *op, uint32_t group_by) {
    char place[300] = "";
    if (group_by & VP_OPS_BY_STAGE) text_cell(out, op->stage);
    if (group_by & VP_OPS_BY_PART) text_cell(out, op->part);
    if (group_by & VP_OPS_BY_BLOCK) number_cell(out, op->block);
    if (group_by & VP_OPS_BY_STEP) number_cell(out, op->step);
    if (group_by & VP_OPS_BY_SHAPE) shape_cell(out, op);
    if (op->file) snprintf(place, sizeof place, "%.250s:%d", op->file, op->line);
    if (group_by & VP_OPS_BY_PLACE) text_cell(out, place);
}
static void operation_row(struct text_buffer *out, const struct flame *flame, const vp_op *op, double self_sum) {
    const double count = (double)flame->request_count;
    const double calls = (double)op->calls / count, self_ms = (double)self_ns(flame, op) / count / 1e6,
                 total_ms = (double)total_ns(flame, op) / count / 1e6;
    vp_op_rates rates = vp_op_rate(op, flame->ops->clock, flame->ops->ceilings);
    page_add(out, "<tr><th scope=\"row\" class=\"x\"><i class=\"dot s%d\"></i>",
             is_launch(op) ? flame_kind(op->name) : (int)FLAME_HOST);
    page_text(out, op->name);
    group_cells(out, op, flame->ops->group_by);
    page_add(out, "<td>%.6g<td data-v=\"%lld\">%.4f<td>%s<td data-v=\"%lld\">%.4f<td>%.2f", calls,
             (long long)self_ns(flame, op), self_ms, number_percent((double)self_ns(flame, op) / self_sum).text,
             (long long)total_ns(flame, op), total_ms, 1e3 * total_ms / calls);
    if (flame->on_device)
        page_add(out, "<td data-v=\"%lld\">%.4f", (long long)op->host_self_ns, (double)op->host_self_ns / count / 1e6);
    page_add(out, "<td>%s<td>%s<td>%s<td>%s<td>%s\n",
             number_formatted("%.4f", op->flops ? (double)op->flops / count / 1e9 : (double)NAN).text,
             number_formatted("%.3f", op->bytes ? (double)op->bytes / count / 1e6 : (double)NAN).text,
             number_formatted("%.3f", rates.tflop_per_s).text, number_formatted("%.3f", rates.gb_per_s).text,
             number_formatted("%.1f", rates.ceiling_percent).text);
}
static int group_count(uint32_t group_by) {
    int count = 0;
    for (; group_by; group_by &= group_by - 1) count++;
    return count;
}
static void operation_sum(struct text_buffer *out, const struct flame *flame, const vp_op *sum) {
    const double count = (double)flame->request_count;
    page_add(out, "</tbody><tfoot><tr><th scope=\"row\">all operations");
    for (int i = group_count(flame->ops->group_by); i-- > 0;) text_add_string(out, "<td>");
    page_add(out, "<td>%.6g<td data-v=\"%lld\">%.4f<td>100.0<td><td>", (double)sum->calls / count,
             (long long)self_ns(flame, sum), (double)self_ns(flame, sum) / count / 1e6);
    if (flame->on_device) page_add(out, "<td>%.4f", (double)sum->host_self_ns / count / 1e6);
    page_add(out, "<td>%.4f<td>%.3f<td><td><td>\n</tfoot></table></div>\n", (double)sum->flops / count / 1e9,
             (double)sum->bytes / count / 1e6);
}
static void page_operations(struct text_buffer *out, const struct flame *flame, const vp_op *sum) {
    int64_t shown = flame->ops->count < FLAME_ROWS_MOST ? flame->ops->count : (int64_t)FLAME_ROWS_MOST;
    page_section_open(out, "table", "Operations");
    page_add(out,
             "<p>The table of <span class=\"day\">run --profile</span>, per request: mean of %lld request%s. "
             "Operations nest. Self times exclude nested operations, so they add up to %s. Click a column header to "
             "sort; the filter matches words in the text columns.</p>\n",
             (long long)flame->request_count, plural_s((int64_t)flame->request_count),
             flame->on_device ? "all work on the device" : "the request");
    page_table_open(out, "Operations", 1);
    page_heads(out, HEAD_TEXTS, "operation");
    group_heads(out, flame->ops->group_by);
    page_heads(out, HEAD_NUMBERS, flame->on_device ? "calls|device self, ms" : "calls|self, ms");
    page_heads(out, HEAD_NUMBERS, "self, %|total, ms|&micro;s per call");
    if (flame->on_device) page_heads(out, HEAD_NUMBERS, "host self, ms");
    page_heads(out, HEAD_NUMBERS, "GFLOP|MB|TFLOP/s|GB/s|% of ceiling");
    text_add_string(out, "</thead><tbody>\n");
    for (int64_t i = 0; i < shown; i++) operation_row(out, flame, &flame->ops->rows[i], (double)self_ns(flame, sum));
    operation_sum(out, flame, sum);
    if (shown < flame->ops->count)
        page_add(out, "<p>%lld more rows are not on this page; --profile_format csv prints all of them.</p>\n",
                 (long long)(flame->ops->count - shown));
    if (flame->ops->dropped_calls)
        page_add(out, "<p>%lld calls are missing: the table was full.</p>\n", (long long)flame->ops->dropped_calls);
    page_section_close(out);
}

/* ---- head, findings, words */
static const char *file_name(const char *path) { return name_in_path(path)[0] ? name_in_path(path) : path; }
enum { QUESTION_MOST = 100 }; /* number of letters in the title; the provenance has all of it */
static void page_name(struct text_buffer *out, const struct flame *flame) {
    char *question = resize(NULL, strlen(flame->question) + 4, 1);
    strcpy(question, flame->question);
    text_fit(question, text_px("m") * QUESTION_MOST);
    page_text(out, file_name(flame->model));
    text_add_string(out, ", ");
    page_text(out, flame->image ? file_name(flame->image) : "no image");
    text_add_string(out, ": &ldquo;");
    page_text(out, question);
    text_add_string(out, "&rdquo;");
    free(question);
}
/* The operation with the most self time, and its part of the model if the table distinguishes parts. Rows that differ
 * only in shapes, blocks or steps count as one. Its name is NULL if nothing was launched. */
static vp_op costliest(const struct flame *flame) {
    vp_op most = vp_op_default(), *rows = resize(NULL, (size_t)flame->ops->count, sizeof *rows);
    vp_ops merged;
    vp_ops_init(&merged, rows, flame->ops->count, flame->ops->group_by & VP_OPS_BY_PART, 0);
    vp_ops_merge(&merged, flame->ops);
    for (int64_t i = 0; i < merged.count; i++)
        if (is_launch(&rows[i]) && (!most.name || self_ns(flame, &rows[i]) > self_ns(flame, &most))) most = rows[i];
    free(rows);
    return most;
}
static void page_findings(struct text_buffer *out, const struct flame *flame, const vp_op *sum) {
    struct stage_row rows[STAGE_ROWS_MOST];
    size_t count = stage_rows(flame, rows), most = 0;
    const vp_op op = costliest(flame);
    for (size_t i = 1; i < count; i++) if (rows[i].ms > rows[most].ms) most = i;
    page_section_open(out, "findings", "In short");
    text_add_string(out, "<p>");
    if (count)
        page_add(out, "The stage %s takes %s %% of a request (%s of %s ms, from the image file to the text)",
                 rows[most].name, number_percent(rows[most].ms / request_ms(flame)).text,
                 number_short(rows[most].ms).text, number_short(request_ms(flame)).text);
    if (op.name) {
        vp_op_rates rates = vp_op_rate(&op, flame->ops->clock, flame->ops->ceilings);
        text_add_string(out, count ? "; the most expensive operation is <b>" : "The most expensive operation is <b>");
        page_text(out, op.name);
        text_add_string(out, "</b>");
        if (strcmp(op.part, "*")) { text_add_string(out, " of "); page_text(out, op.part); }
        page_add(out, " with %s %% of all %sself time in %.6g calls",
                 number_percent((double)self_ns(flame, &op) / (double)self_ns(flame, sum)).text,
                 flame->on_device ? "device " : "", (double)op.calls / (double)flame->request_count);
        if (isfinite(rates.ceiling_percent))
            page_add(out, ", at %.1f %% of the %s ceiling", rates.ceiling_percent,
                     rates.memory_bound ? "memory" : "arithmetic");
    }
    text_add_string(out, ".</p>\n<p class=\"soft\">Each operation is timed by two timestamps, which cost time, so "
                         "requests are slower than without --profile.</p>\n");
    page_warnings(out, flame->warnings);
    page_section_close(out);
}
static void page_chart(struct text_buffer *out, const struct flame *flame) {
    struct text_buffer data = {NULL, 0, 0};
    int64_t left_out = flame_data_write(flame, &data);
    char caption[120];
    snprintf(caption, sizeof caption, "%s%lld recorded request%s: %s ms",
             flame->request_count > 1 ? "The last of " : "", (long long)flame->request_count,
             flame->request_count > 1 ? "s" : "", number_short((double)flame->request.total_ns / 1e6).text);
    page_section_open(out, "flame", "Flame chart");
    figure_open(out, caption,
                "rows from the top: stages, passes of the image tower and decode steps, blocks, operations by kind", 1);
    legend_open(out);
    for (int kind = 0; kind < FLAME_KINDS; kind++)
        legend_item(out, COLOUR_SERIES, kind, 0, SIGN_BAR, FLAME_KIND_NAMES[kind]);
    legend_close(out);
    text_add_string(out,
                    "<svg class=\"flame\" role=\"group\" aria-label=\"Flame chart\"></svg>\n<noscript><p>The chart "
                    "needs JavaScript, which does not run here. The tables below are complete.</p></noscript>"
                    "</figure>\n");
    text_add_string(out,
                    "<p class=\"soft screen\">A click, or Enter, zooms to a stage, a pass, a step or a block. Views "
                    "and keys are those of speedscope: 1 Time Order, 2 Left Heavy (equal names together, the longest "
                    "first), 3 Sandwich (all calls of one name, with its callers and callees); + and - zoom, 0 shows "
                    "everything, A and D pan. Within the chart, the arrow keys move from box to box, and Backspace "
                    "goes back.</p>\n");
    if (left_out)
        page_add(out, "<p id=\"left\">To keep the page small, %lld of %lld operations are not drawn: those in boxes "
                      "with a dashed outline. The tables include them; --trace FILE writes each one.</p>\n",
                 (long long)left_out, (long long)(flame->request.launch_count + flame->request.lost_launches));
    text_add_string(out, "<script type=\"application/json\" id=\"data\">");
    text_add(out, data.data, data.bytes);
    text_add_string(out, "</script>");
    page_section_close(out);
    free(data.data);
}
static const char *const WORDS[][2] = {
    {"request", "from the image file to the answer's text; one step of the schedule"},
    {"stage", "vit: the image tower; connector: from its features to tokens; prefill: the decoder blocks over image "
              "and question; decode: one step per further token; h2d: copies of inputs to the device; embed, head, "
              "sample: before and after the blocks; preprocess, detok: pixels and text, on the host"},
    {"pass", "the image tower over one view of the image, or several at once"},
    {"step", "a decode step: one new token"},
    {"block", "one layer of the image tower or of the decoder"},
    {"operation", "a kernel, a matrix product or a copy: one launch of the engine"},
    {"part", "purpose of an operation: attention, router, experts ..; the same in prefill and decode"},
    {"self, total", "time without and with nested operations"},
    {"idle", "time of a stage during which none of its operations runs"},
    {"GFLOP, MB", "arithmetic and bytes that the shapes require per request, with each operand read or written once"},
    {"% of ceiling", "share of the memory or arithmetic roof, whichever is lower, as measured on this device. Above "
                     "100: operands stayed in a cache"}};
static void page_provenance(struct text_buffer *out, const struct flame *flame) {
    page_list_open(out, "source", "Provenance", "Model, machine and settings.");
    for (size_t i = 0; i + 1 < flame->facts.count; i += 2)
        page_list_item(out, flame->facts.items[i], flame->facts.items[i + 1]);
    page_list_close(out);
}
void flame_page_write(const struct flame *flame, struct text_buffer *out) {
    static const struct page_link links[] = {{"findings", "In short"}, {"flame", "Flame chart"}, {"stages", "Stages"},
        {"table", "Operations"}, {"words", "Words"}, {"source", "Provenance"}, {NULL, NULL}};
    struct page page = {0};
    vp_op sum = vp_op_default();
    vp_ops_total(flame->ops, &sum);
    page.is_titled_by_both = page.has_chart = 1;
    page_name(&page.heading, flame);
    page_text(&page.subtitle, flame->device);
    text_add_string(&page.subtitle, ", ");
    page_day(&page.subtitle, flame->date);
    page_findings(&page.body, flame, &sum);
    page_chart(&page.body, flame);
    page_stage_table(&page.body, flame);
    page_operations(&page.body, flame, &sum);
    page_words(&page.body, WORDS, sizeof WORDS / sizeof *WORDS);
    page_provenance(&page.body, flame);
    page_write(&page, links, out);
}
