/* page_agreement.c: the page's section on how close each configuration is to its baseline (sweep --baseline). */
#include "page/report_page.h"

#include "page/page.h"
#include "report/report_text.h"

static void agreement_show(struct text_buffer *out, const struct results *results, size_t group) {
    const struct table table = agreement_table(results, group);
    struct text_list notes = {NULL, 0};
    text_add_string(out, "<p>Compared with ");
    page_text(out, report_baseline(results, group));
    text_add_string(out, ", on the same samples. Brackets: 95 % intervals.</p>\n");
    page_table_of(out, "Agreement with the baseline", &table);
    agreement_notes(&notes, results, group);
    for (size_t i = 0; i < notes.count; i++) page_element(out, "p", notes.items[i]);
    text_list_free(&notes);
}
void page_agreement(struct text_buffer *out, const struct report *report) {
    const struct results *results = report->results;
    size_t count = 0;
    for (size_t group = 0; group < results->group_count; group++) count += report_baseline(results, group) != NULL;
    if (!count) return;
    page_section_open(out, "agreement", "Agreement with the baseline");
    for (size_t group = 0; group < results->group_count; group++) {
        if (!report_baseline(results, group)) continue;
        page_set_open(out, results, group);
        agreement_show(out, results, group);
        text_add_string(out, "</div>\n");
    }
    page_section_close(out);
}
