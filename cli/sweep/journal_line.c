/* journal_line.c: what one line of a journal must contain. The rows of results/fields.h check each member; this file
 * checks them against each other. A new member that is mandatory even for old lines needs a new schema. */
#include "sweep/journal_line.h"

#include "base/json.h"
#include "results/fields.h"
#include "results/knobs.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has_only(const vp_json *json, uint32_t object, const struct fields *fields) {
    return fields_fit(json, object, fields, 0);
}
/* ---- checking members against each other */
/* Returns 1 if the name is valid for a result file. It becomes a path. */
static int is_result_name(const char *name) { return name && !strchr(name, '/') && strstr(name, "_imgsize"); }
/* block_count: the model's; 0 for a server. */
static int is_configuration(const vp_json *json, uint32_t node, int64_t set_count, int64_t block_count) {
    if (!fields_fit(json, node, &CONFIGURATION, -1) || node_int(json, node, "set", -1) >= set_count) return 0;
    char *name = node_text(json, vp_json_get(json, node, "file_name"));
    int good = is_result_name(name) && knob_is_journal(json, node, CONFIGURATION.count, block_count);
    free(name);
    return good;
}
static int is_data(const vp_json *json, uint32_t node) {
    char *metric = node_text(json, vp_json_get(json, node, "metric"));
    vp_score_metric known;
    int good = has_only(json, node, &DATA) && vp_score_metric_find(metric, &known) == VP_OK;
    free(metric);
    return good;
}
static int is_list_of_texts(const vp_json *json, uint32_t list) {
    for (uint32_t i = list + 1; i < json->nodes[list].end; i = json->nodes[i].end) {
        char *text = node_text(json, i);
        free(text);
        if (!text) return 0;
    }
    return 1;
}
static int is_head(const vp_json *json) {
    uint32_t data = vp_json_get(json, 0, "data"), configs = vp_json_get(json, 0, "configs");
    uint32_t server = vp_json_get(json, 0, "server");
    if (!has_only(json, 0, &HEAD)
        || (server != VP_JSON_NONE
            && !(is_list_of_texts(json, vp_json_get(json, server, "endpoints"))
                 && is_list_of_texts(json, vp_json_get(json, server, "endpoint_models"))))
        || (server != VP_JSON_NONE) != (node_int(json, 0, "num_total_blocks", 0) == 0)
        || !vp_json_equals(json, vp_json_get(json, 0, "schema"), JOURNAL_SCHEMA))
        return 0;
    if (json->nodes[vp_json_get(json, 0, "plan")].bytes > LINE_PLAN_BYTES_MAX || !json->nodes[data].count) return 0;
    if (node_int(json, 0, "rank", 0) >= node_int(json, 0, "world_size", 0)) return 0;
    for (uint32_t i = data + 1; i < json->nodes[data].end; i = json->nodes[i].end)
        if (!is_data(json, i)) return 0;
    for (uint32_t i = configs + 1; i < json->nodes[configs].end; i = json->nodes[i].end)
        if (!is_configuration(json, i, json->nodes[data].count, node_int(json, 0, "num_total_blocks", 0))) return 0;
    return 1;
}
static int is_sample(const vp_json *json) {
    static const char *const keys[] = {"question", "answers", "image_id", "id"}; /* keys of all metadata */
    uint32_t metadata = vp_json_get(json, 0, "metadata");
    if (!has_only(json, 0, &SAMPLE)) return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (vp_json_get(json, metadata, keys[i]) == VP_JSON_NONE) return 0;
    return 1;
}
static int is_stage_key(const vp_json *json, uint32_t key) {
    for (int i = 0; i < VP_STAGE_COUNT; i++)
        if (vp_json_equals(json, key, vp_stage_name((vp_stage)i))) return 1;
    return 0;
}
static int is_run(const vp_json *json) {
    uint32_t steps = vp_json_get(json, 0, "step_ns"), tokens = vp_json_get(json, 0, "tokens");
    const int has_energy = vp_json_get(json, 0, "energy_j") != VP_JSON_NONE;
    int64_t sum = 0, value = 0;
    /* older runs lack energy */
    if (!has_only(json, 0, &RUN) || has_energy != (vp_json_get(json, 0, "energy_resolution_j") != VP_JSON_NONE))
        return 0;
    for (uint32_t i = steps + 1; i < json->nodes[steps].end && sum <= LINE_NS_MAX; i++)
        if (vp_json_to_int(json, i, &value) == VP_OK) sum += value;
    return sum <= LINE_NS_MAX && json->nodes[tokens].count
           && (!json->nodes[steps].count || json->nodes[steps].count + 1 == json->nodes[tokens].count);
}
/* The pieces of an answer are in order of time, and none is after the end of the run. */
static int is_served_run(const vp_json *json) {
    uint32_t served = vp_json_get(json, 0, "served"), pieces = vp_json_get(json, served, "piece_ns");
    int64_t total = node_int(json, 0, "total_ns", 0), before = 0, value = 0;
    if (!has_only(json, 0, &SERVED_RUN)
        || json->nodes[pieces].count != json->nodes[vp_json_get(json, served, "piece_bytes")].count
        || node_int(json, served, "first_ns", -1) > total)
        return 0;
    for (uint32_t i = pieces + 1; i < json->nodes[pieces].end; i++, before = value)
        if (vp_json_to_int(json, i, &value) != VP_OK || value < before || value > total) return 0;
    return 1;
}
/* Returns 1 if all sizes of the image are present, or none. Several images have no tiling. */
static int are_sizes(const vp_json *json, uint32_t object) {
    static const char *const keys[] = {"target_vision_tokens",      "target_crops",      "theoretical_num_crops",
                                       "theoretical_vision_tokens", "actual_num_crops",  "actual_vision_tokens",
                                       "theoretical_tiling",        "theoretical_image_size", "actual_tiling",
                                       "actual_image_size"};
    const int is_several = vp_json_get(json, object, "vision_tokens_of_images") != VP_JSON_NONE;
    const int wanted = (int)(sizeof keys / sizeof *keys) - (is_several ? 4 : 0);
    int count = 0;
    if (vp_json_get(json, object, "sent_image") != VP_JSON_NONE)
        return has_only(json, object, &SERVED_SIZES);
    if (!has_only(json, object, &SIZES)) return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) count += has_value(json, object, keys[i]);
    return (!count && !is_several) || count == wanted;
}
static int are_kernels(const vp_json *json, uint32_t object) {
    uint32_t stages = vp_json_get(json, object, "stages");
    if (!has_only(json, object, &KERNELS)) return 0;
    for (uint32_t key = stages + 1; key < json->nodes[stages].end; key = json->nodes[key + 1].end) {
        uint32_t parts = vp_json_get(json, key + 1, "parts");
        if (!is_stage_key(json, key) || !has_only(json, key + 1, &KERNEL_STAGE)) return 0;
        for (uint32_t part = parts + 1; part < json->nodes[parts].end; part = json->nodes[part + 1].end)
            if (!node_is(json, part + 1, VP_JSON_NUMBER)) return 0;
    }
    return 1;
}

/* The kind of a line that has "config": a line of a point. */
static line_kind point_kind(const vp_json *json) {
    if (vp_json_get(json, 0, "run") != VP_JSON_NONE)
        return (vp_json_get(json, 0, "served") == VP_JSON_NONE ? is_run(json) : is_served_run(json)) ? LINE_RUN
                                                                                                    : LINE_DAMAGED;
    if (vp_json_get(json, 0, "bare") != VP_JSON_NONE)
        return has_only(json, 0, &BARE) ? LINE_BARE : LINE_DAMAGED;
    if (vp_json_get(json, 0, "twins") != VP_JSON_NONE)
        return has_only(json, 0, &TWINS)
                       && json->nodes[vp_json_get(json, vp_json_get(json, 0, "twins"), "pairs")].count <= LINE_RUNS_MAX
                   ? LINE_TWINS
                   : LINE_DAMAGED;
    if (vp_json_get(json, 0, "fidelity") != VP_JSON_NONE)
        return has_only(json, 0, &FIDELITY_LINE) ? LINE_FIDELITY : LINE_DAMAGED;
    if (!are_sizes(json, vp_json_get(json, 0, "sizes"))) return LINE_DAMAGED;
    if (has_only(json, 0, &DONE)) return LINE_DONE;
    return has_only(json, 0, &FAILED) ? LINE_FAILED : LINE_DAMAGED;
}
line_kind journal_line_kind(const vp_json *json) {
    uint32_t node;
    if (!node_is(json, 0, VP_JSON_OBJECT)) return LINE_DAMAGED;
    if (vp_json_get(json, 0, "config") != VP_JSON_NONE) return point_kind(json);
    if (vp_json_get(json, 0, "sample") != VP_JSON_NONE) return is_sample(json) ? LINE_SAMPLE : LINE_DAMAGED;
    if (vp_json_get(json, 0, "plan") != VP_JSON_NONE) return is_head(json) ? LINE_HEAD : LINE_DAMAGED;
    if (json->nodes[0].count != 1) return LINE_DAMAGED;
    if ((node = vp_json_get(json, 0, "session")) != VP_JSON_NONE)
        return fields_fit(json, node, vp_json_get(json, node, "servers") == VP_JSON_NONE ? &SESSION : &SERVED_SESSION,
                          -1)
                   ? LINE_SESSION
                   : LINE_DAMAGED;
    if ((node = vp_json_get(json, 0, "kernels")) != VP_JSON_NONE)
        return are_kernels(json, node) ? LINE_KERNELS : LINE_DAMAGED;
    if ((node = vp_json_get(json, 0, "noise")) != VP_JSON_NONE)
        return has_only(json, node, &NOISE_LINE) ? LINE_NOISE : LINE_DAMAGED;
    return node_is(json, vp_json_get(json, 0, "finished"), VP_JSON_TRUE) ? LINE_FINISHED : LINE_DAMAGED;
}

/* ---- the checksum */
static const char SEAL[] = ", \"sum\": \"";
enum { SEAL_START = sizeof SEAL - 1, SEAL_DIGITS = 16, SEAL_BYTES = SEAL_START + SEAL_DIGITS + 2 };
void journal_seal(struct text_buffer *line) {
    char digits[SEAL_DIGITS + 3];
    line->bytes--; /* the last brace */
    snprintf(digits, sizeof digits, "%016llx\"}", (unsigned long long)hash_bytes(HASH_START, line->data, line->bytes));
    text_add(line, SEAL, SEAL_START);
    text_add(line, digits, SEAL_DIGITS + 2);
}
line_seal journal_unseal(char *line, size_t *bytes) {
    size_t before = *bytes;
    char digits[SEAL_DIGITS + 3];
    while (before && line[before - 1] == ' ') before--;
    before = before > SEAL_BYTES ? before - SEAL_BYTES : 0;
    if (!before || memcmp(line + before, SEAL, SEAL_START) != 0) return SEAL_NONE;
    snprintf(digits, sizeof digits, "%016llx\"}", (unsigned long long)hash_bytes(HASH_START, line, before));
    if (memcmp(line + before + SEAL_START, digits, SEAL_DIGITS + 2) != 0) return SEAL_BROKEN;
    line[before] = '}';
    *bytes = before + 1;
    return SEAL_GOOD;
}
