/* page_agreement.c: the page's section on how close each configuration is to its baseline (sweep --baseline). */
#include "page/report_page.h"

#include "page/page.h"
#include "report/report_text.h"

static void agreement_show(struct text_buffer *out, const struct report *report, size_t group) {
    const struct table table = agreement_table(report->results, group);
    struct text_list notes = {NULL, 0};
    text_add_string(out, "<p>Compared with ");
    page_text(out, report_baseline(report->results, group));
    text_add_string(out, ", on the same samples. Brackets: 95 % intervals.</p>\n");
    page_table_of(out, "Agreement with the baseline", &table);
    agreement_notes(&notes, report->results, group);
    for (size_t i = 0; i < notes.count; i++) page_element(out, "p", notes.items[i]);
    text_list_free(&notes);
}
static int is_compared(const struct report *report, size_t group) {
    return report_baseline(report->results, group) != NULL;
}
void page_agreement(struct text_buffer *out, const struct report *report) {
    page_groups(out, report, "agreement", "Agreement with the baseline", is_compared, agreement_show);
}
