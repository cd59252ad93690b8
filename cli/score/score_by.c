/* score_by.c: scores by the value of a field, with one tally per category. */
#include "score/score_by.h"

#include <stdlib.h>
#include <string.h>

enum { BY_VALUES_MAX = 1000 };

static size_t index_of(struct score_groups_by *by, const char *name) {
    size_t i = 0;
    while (i < by->names.count && strcmp(by->names.items[i], name) != 0) i++;
    if (i < by->names.count) return i;
    if (i >= BY_VALUES_MAX && strcmp(name, "others") != 0) return index_of(by, "others");
    text_list_copy(&by->names, name);
    by->tallies = resize(by->tallies, i + 1, sizeof *by->tallies);
    memset(&by->tallies[i], 0, sizeof *by->tallies);
    return i;
}
void by_add(struct score_groups_by *by, const vp_json *json, const char *field, int is_binary, int is_empty,
            const vp_score_outcome *outcome) {
    uint32_t node = vp_json_get(json, 0, field);
    char *name = node_is(json, node, VP_JSON_NUMBER)
                     ? copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes)
                     : node_text(json, node);
    size_t index = index_of(by, name ? name : "-");
    struct tally *tally = &by->tallies[index];
    tally->is_binary = is_binary;
    tally->unread_count += outcome->is_unread != 0;
    tally_add(tally, outcome->score, outcome->is_unparsed, is_empty);
    free(name);
}
void by_put(vp_json_writer *writer, const struct score_groups_by *by, const char *metric, int is_tool) {
    PUT(writer, KEY_OBJECT("by"));
    for (size_t i = 0; i < by->names.count; i++) {
        PUT(writer, KEY_OBJECT(by->names.items[i]));
        tally_put(writer, &by->tallies[i], metric);
        if (is_tool) put_int(writer, "unread", by->tallies[i].unread_count);
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
}
void by_print(const struct score_groups_by *by) {
    for (size_t i = 0; i < by->names.count; i++) tally_print(&by->tallies[i], by->names.items[i]);
}
void by_free(struct score_groups_by *by) {
    text_list_free(&by->names);
    free(by->tallies);
}
