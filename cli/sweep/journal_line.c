/* journal_line.c: what one line of a journal must contain.
 * One table for each kind of line lists its members in the order in which sweep/sweep_point.c writes them. The tables
 * and the writers belong together: a new member that old lines may not lack is
 * a new schema. */
#include "sweep/journal_line.h"

#include "base/json.h"
#include "results/knobs.h"
#include "server/twins.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <stdlib.h>
#include <string.h>

/* TEXT_VALUE: a string without a NUL; BYTES: any string; PAIR: a list of two integers; INTEGERS: of any number. */
typedef enum value_type { INTEGER, NUMBER, TEXT_VALUE, BYTES, TRUTH, OBJECT, LIST, PAIR, INTEGERS } value_type;
/* A member of an object. */
struct member {
    const char *key;
    value_type type;
    int64_t least, most; /* of INTEGER, and of each number of PAIR and INTEGERS */
    int or_null;
};
#define INT(key, least, most) {key, INTEGER, least, most, 0}
#define INT_OR_NULL(key, most) {key, INTEGER, 0, most, 1}
#define PAIR_OR_NULL(key, most) {key, PAIR, 0, most, 1}
#define INTEGERS_TO(key, most) {key, INTEGERS, 0, most, 0}
#define OF(type, key) {key, type, 0, 0, 0}
#define OF_OR_NULL(type, key) {key, type, 0, 0, 1}
#define COUNT_OF(table) ((uint32_t)(sizeof(table) / sizeof *(table)))

enum { SIDE_MAX = 32767 }; /* rows and columns of a tiling */
#define UNIX_S_MAX (INT64_C(1) << 40)
#define WORK_MAX (INT64_C(1) << 58) /* launches, FLOPs and bytes of a stage */

#define POINT_MEMBERS OF(TEXT_VALUE, "config"), INT("sample_id", 0, INT64_MAX), INT("prev", -1, INT64_MAX)

static const struct member HEAD[] = {
    OF(TEXT_VALUE, "schema"), OF(TEXT_VALUE, "plan"), INT("rank", 0, INT32_MAX), INT("world_size", 1, INT32_MAX),
    OF(TEXT_VALUE, "model"), OF(TRUTH, "synthetic"), OF(TEXT_VALUE, "timing"), OF(TRUTH, "ignore_eos"),
    INT("num_runs_per_sample", 1, INT32_MAX), INT("num_total_blocks", 0, INT32_MAX), INT("bare_every", 0, INT32_MAX),
    OF(OBJECT, "options"), OF(LIST, "data"), OF(LIST, "configs")};
/* of a sweep of servers; its configurations have a variant each, and neither experts nor blocks */
static const struct member SERVER[] = {
    OF(LIST, "endpoints"), OF(LIST, "endpoint_models"), OF(TEXT_VALUE, "endpoint_api"), OF(OBJECT, "request_knobs"),
    OF_OR_NULL(TEXT_VALUE, "family"), OF(OBJECT, "family_keys")};
/* of the model, as the checkpoint's config says it; a head that an older version wrote has none */
static const struct member MODEL_SHAPE[] = {
    INT("num_experts", 0, INT32_MAX), INT("top_k", 0, INT32_MAX), INT("d_model", 1, INT32_MAX),
    INT("n_heads", 1, INT32_MAX), INT("n_layers", 1, INT32_MAX), INT("expert_dim", 0, INT32_MAX),
    INT("vocab_size", 1, INT32_MAX), INT("vit_width", 0, INT32_MAX), INT("vit_layers", 0, INT32_MAX)};
static const struct member DATA[] = {
    OF(TEXT_VALUE, "task"), OF(TEXT_VALUE, "path"), OF(TEXT_VALUE, "metric"), INT("max_new_tokens", 0, INT32_MAX),
    INT("num_samples", 0, INT64_C(1) << 40), OF(TEXT_VALUE, "content_hash")};
/* besides its knobs */
static const struct member CONFIGURATION[] = {OF(TEXT_VALUE, "file_name"), INT("set", 0, INT32_MAX)};
static const struct member SESSION[] = {
    OF(TEXT_VALUE, "version"), OF(TEXT_VALUE, "build"), OF(TEXT_VALUE, "host"), OF(TEXT_VALUE, "date"),
    OF(TEXT_VALUE, "device"), INT("seed", INT64_MIN, INT64_MAX), OF(LIST, "argv"), OF(NUMBER, "stamp_cost_ns"),
    OF(OBJECT, "cold")};
/* of a client; what the servers say of themselves, and the first request to each */
static const struct member SERVED_SESSION[] = {
    OF(TEXT_VALUE, "version"), OF(TEXT_VALUE, "build"), OF(TEXT_VALUE, "host"), OF(TEXT_VALUE, "date"),
    OF(LIST, "argv"), OF(TEXT_VALUE, "client"), OF(LIST, "servers")};
static const struct member SAMPLE[] = {
    INT("sample", 0, INT64_MAX), INT("set", 0, INT32_MAX), OF(TEXT_VALUE, "prompt"),
    INT_OR_NULL("input_text_tokens", INT32_MAX), OF(OBJECT, "metadata")};
static const struct member RUN[] = {
    POINT_MEMBERS, INT("run", 0, LINE_RUNS_MAX - 1), INT("session", -1, INT64_MAX), INT("unix_s", 0, UNIX_S_MAX),
    INT("total_ns", 1, LINE_NS_MAX), INT("stamps", 0, INT64_C(1) << 40), OF(OBJECT, "stages"),
    INTEGERS_TO("step_ns", LINE_NS_MAX), INTEGERS_TO("tokens", INT32_MAX), OF(BYTES, "answer"),
    OF(TRUTH, "ended_by_eos"), OF(TRUTH, "throttled"), OF_OR_NULL(OBJECT, "telemetry")};
/* of a run on a GPU that counts it; older runs have none */
static const struct member RUN_ENERGY[] = {OF(NUMBER, "energy_j"), OF(NUMBER, "energy_resolution_j")};
static const struct member SERVED_RUN[] = {
    POINT_MEMBERS, INT("run", 0, LINE_RUNS_MAX - 1), INT("session", -1, INT64_MAX), INT("unix_s", 0, UNIX_S_MAX),
    INT("total_ns", 1, LINE_NS_MAX), OF(BYTES, "answer"), OF(OBJECT, "served")};
/* times count from the start of the request; -1: it did not come to that */
static const struct member SERVED[] = {
    INT("sent_ns", -1, LINE_NS_MAX), INT("headers_ns", -1, LINE_NS_MAX), INT("end_ns", -1, LINE_NS_MAX),
    INT("first_ns", -1, LINE_NS_MAX), INT("first_output_ns", -1, LINE_NS_MAX), INTEGERS_TO("piece_ns", LINE_NS_MAX),
    INTEGERS_TO("piece_bytes", INT64_MAX), OF(OBJECT, "usage"), OF_OR_NULL(TEXT_VALUE, "model"),
    OF_OR_NULL(TEXT_VALUE, "finish_reason"), OF_OR_NULL(BYTES, "reasoning"), OF_OR_NULL(OBJECT, "timings"),
    OF(TRUTH, "is_streamed"), OF(TRUTH, "is_new_connection"), INT("http_status", 0, 999),
    INT("attempts", 1, INT32_MAX)};
static const struct member USAGE[] = {
    INT_OR_NULL("prompt_tokens", INT32_MAX), INT_OR_NULL("completion_tokens", INT32_MAX),
    INT_OR_NULL("image_tokens", INT32_MAX), INT_OR_NULL("cached_tokens", INT32_MAX),
    INT_OR_NULL("reasoning_tokens", INT32_MAX)};
static const struct member BARE[] = {POINT_MEMBERS, OF(OBJECT, "bare"), INT("session", -1, INT64_MAX)};
static const struct member BARE_PAIR[] = {
    INT("bare_total_ns", 1, LINE_NS_MAX), INT("staged_total_ns", 1, LINE_NS_MAX), OF(TRUTH, "bare_first")};
static const struct member TWINS[] = {POINT_MEMBERS, OF(OBJECT, "twins"), INT("session", -1, INT64_MAX)};
/* reason: why there are no pairs, or fewer than asked for; tokens are 0 where it did not come to that */
static const struct member TWINS_OBJECT[] = {
    OF(TEXT_VALUE, "method"), OF_OR_NULL(TEXT_VALUE, "reason"), INT("prompt_tokens", 0, INT32_MAX),
    INT("image_tokens", -INT32_MAX, INT32_MAX), OF(LIST, "pairs")};
static const struct member DONE[] = {
    POINT_MEMBERS, INT("done", 1, LINE_RUNS_MAX), OF(TEXT_VALUE, "stop"), INT("retries", 0, INT32_MAX),
    OF(OBJECT, "sizes")};
static const struct member FAILED[] = {
    POINT_MEMBERS, OF(TEXT_VALUE, "failed"), INT("attempts", 0, INT32_MAX), INT("retries", 0, INT32_MAX),
    OF(OBJECT, "sizes")};
static const struct member SIZES[] = {
    OF_OR_NULL(TEXT_VALUE, "tier"), INT_OR_NULL("target_vision_tokens", INT32_MAX),
    INT_OR_NULL("target_crops", INT32_MAX), INT("top_k", 0, INT32_MAX), INT("num_active_blocks", 0, INT32_MAX),
    INT_OR_NULL("theoretical_num_crops", INT32_MAX), PAIR_OR_NULL("theoretical_tiling", SIDE_MAX),
    PAIR_OR_NULL("theoretical_image_size", INT32_MAX), INT_OR_NULL("theoretical_vision_tokens", INT32_MAX),
    INT_OR_NULL("actual_num_crops", INT32_MAX), PAIR_OR_NULL("actual_tiling", SIDE_MAX),
    PAIR_OR_NULL("actual_image_size", INT32_MAX), INT_OR_NULL("actual_vision_tokens", INT32_MAX),
    INT("input_text_tokens", 0, INT32_MAX), INT("actual_text_tokens", 0, INT32_MAX),
    INT_OR_NULL("total_sequence_length", INT32_MAX)};
/* of a point whose image tokens do not all go on */
static const struct member PRUNED_SIZES[] = {
    INT("kept_vision_tokens", 1, INT32_MAX), OF_OR_NULL(NUMBER, "mean_sequence_length")};
/* what was sent; null: nothing could be */
static const struct member SERVED_SIZES[] = {
    OF_OR_NULL(TEXT_VALUE, "tier"), INT_OR_NULL("target_vision_tokens", INT32_MAX), OF_OR_NULL(OBJECT, "sent_image"),
    INT_OR_NULL("image_tokens_by_rule", INT32_MAX)};
static const struct member SENT_IMAGE[] = {
    INT("width_px", 1, INT32_MAX), INT("height_px", 1, INT32_MAX), INT("bytes", 1, INT64_MAX),
    OF(TEXT_VALUE, "media_type"), OF(TRUTH, "is_resized")};
static const struct member KERNELS[] = {
    OF(TEXT_VALUE, "config"), INT("sample_id", 0, INT64_MAX), INT("views", 0, INT32_MAX),
    INT("total_sequence_length", 0, INT32_MAX), OF_OR_NULL(NUMBER, "T_total"), OF(OBJECT, "stages")};
static const struct member KERNEL_STAGE[] = {
    OF_OR_NULL(NUMBER, "device_ms"), OF_OR_NULL(NUMBER, "kernel_ms"), OF_OR_NULL(NUMBER, "idle_share"),
    OF(OBJECT, "parts")};
/* What the machine did during the runs whose lines begin at `from` or later, and before this line. */
static const struct member NOISE[] = {
    INT("from", 0, INT64_MAX), OF_OR_NULL(NUMBER, "load"), OF_OR_NULL(NUMBER, "steal_percent"),
    OF_OR_NULL(NUMBER, "other_cpu_percent"), PAIR_OR_NULL("frequency_mhz", INT32_MAX)};

/* ---- an object against its table */
static int is_integer(const vp_json *json, uint32_t node, const struct member *member) {
    int64_t value = 0;
    return vp_json_to_int(json, node, &value) == VP_OK && value >= member->least && value <= member->most;
}
static int is_list_of_integers(const vp_json *json, uint32_t node, const struct member *member) {
    if (!node_is(json, node, VP_JSON_ARRAY)) return 0;
    for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i].end)
        if (!is_integer(json, i, member)) return 0;
    return 1;
}
static int is_text(const vp_json *json, uint32_t node) {
    char *text = node_text(json, node);
    free(text);
    return text != NULL;
}
static int fits(const vp_json *json, uint32_t node, const struct member *member) {
    if (node == VP_JSON_NONE) return 0;
    if (member->or_null && node_is(json, node, VP_JSON_NULL)) return 1;
    switch (member->type) {
    case INTEGER: return is_integer(json, node, member);
    case NUMBER: return node_is(json, node, VP_JSON_NUMBER);
    case TEXT_VALUE: return is_text(json, node);
    case BYTES: return node_is(json, node, VP_JSON_STRING);
    case TRUTH: return node_is(json, node, VP_JSON_TRUE) || node_is(json, node, VP_JSON_FALSE);
    case OBJECT: return node_is(json, node, VP_JSON_OBJECT);
    case LIST: return node_is(json, node, VP_JSON_ARRAY);
    case PAIR: return is_list_of_integers(json, node, member) && json->nodes[node].count == 2;
    default: return is_list_of_integers(json, node, member);
    }
}
static int has_members(const vp_json *json, uint32_t object, const struct member *members, uint32_t count) {
    if (!node_is(json, object, VP_JSON_OBJECT)) return 0;
    for (uint32_t i = 0; i < count; i++)
        if (!fits(json, vp_json_get(json, object, members[i].key), &members[i])) return 0;
    return 1;
}
/* Truth: these members and no others. */
static int has_only(const vp_json *json, uint32_t object, const struct member *members, uint32_t count) {
    return has_members(json, object, members, count) && json->nodes[object].count == count;
}
#define HAS_ONLY(json, object, members) has_only(json, object, members, COUNT_OF(members))

/* ---- what the members must say of each other */
/* Truth: the name can be that of a result file. It becomes a path. */
static int is_result_name(const char *name) { return name && !strchr(name, '/') && strstr(name, "_imgsize"); }
/* block_count: of the model; 0: a server runs it. */
static int is_configuration(const vp_json *json, uint32_t node, int64_t set_count, int64_t block_count) {
    char *name;
    int good;
    if (!has_members(json, node, CONFIGURATION, COUNT_OF(CONFIGURATION))
        || node_int(json, node, "set", -1) >= set_count)
        return 0;
    name = node_text(json, vp_json_get(json, node, "file_name"));
    good = is_result_name(name) && knob_is_journal(json, node, COUNT_OF(CONFIGURATION), block_count);
    free(name);
    return good;
}
static int is_data(const vp_json *json, uint32_t node) {
    char *metric = node_text(json, vp_json_get(json, node, "metric"));
    vp_score_metric known;
    int good = HAS_ONLY(json, node, DATA) && vp_score_metric_find(metric, &known) == VP_OK;
    free(metric);
    return good;
}
static int is_list_of_texts(const vp_json *json, uint32_t list) {
    for (uint32_t i = list + 1; i < json->nodes[list].end; i = json->nodes[i].end)
        if (!is_text(json, i)) return 0;
    return 1;
}
static int is_server(const vp_json *json, uint32_t node) {
    return HAS_ONLY(json, node, SERVER) && is_list_of_texts(json, vp_json_get(json, node, "endpoints"))
           && is_list_of_texts(json, vp_json_get(json, node, "endpoint_models"));
}
static int is_head(const vp_json *json) {
    uint32_t data = vp_json_get(json, 0, "data"), configs = vp_json_get(json, 0, "configs");
    uint32_t shape = vp_json_get(json, 0, "model_shape"), server = vp_json_get(json, 0, "server");
    const int has_name = vp_json_get(json, 0, "architecture") != VP_JSON_NONE; /* older heads have none */
    if (!has_members(json, 0, HEAD, COUNT_OF(HEAD))
        || json->nodes[0].count != COUNT_OF(HEAD) + (shape != VP_JSON_NONE) + (server != VP_JSON_NONE) + has_name
        || (has_name && !is_text(json, vp_json_get(json, 0, "architecture")))
        || (shape != VP_JSON_NONE && !HAS_ONLY(json, shape, MODEL_SHAPE))
        || (server != VP_JSON_NONE && !is_server(json, server))
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
    static const char *const keys[] = {"question", "answers", "image_id", "id"}; /* of every metadata */
    uint32_t metadata = vp_json_get(json, 0, "metadata");
    if (!HAS_ONLY(json, 0, SAMPLE)) return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (vp_json_get(json, metadata, keys[i]) == VP_JSON_NONE) return 0;
    return 1;
}
static int is_stage_key(const vp_json *json, uint32_t key) {
    for (int i = 0; i < VP_STAGE_COUNT; i++)
        if (vp_json_equals(json, key, vp_stage_name((vp_stage)i))) return 1;
    return 0;
}
/* {"vit": [wall ns, device ns, launches, flops, bytes], ...} */
static int are_stages(const vp_json *json, uint32_t object) {
    const struct member ns = INT("", 0, LINE_NS_MAX), work = INT("", 0, WORK_MAX);
    for (uint32_t key = object + 1; key < json->nodes[object].end; key = json->nodes[key + 1].end) {
        uint32_t list = key + 1;
        if (!is_stage_key(json, key) || !node_is(json, list, VP_JSON_ARRAY) || json->nodes[list].count != 5) return 0;
        for (uint32_t i = 0; i < 5; i++)
            if (!is_integer(json, list + 1 + i, i < 2 ? &ns : &work)) return 0;
    }
    return 1;
}
static int is_run(const vp_json *json) {
    uint32_t steps = vp_json_get(json, 0, "step_ns"), tokens = vp_json_get(json, 0, "tokens");
    const int has_energy = vp_json_get(json, 0, "energy_j") != VP_JSON_NONE;
    int64_t sum = 0, value = 0;
    if (!has_members(json, 0, RUN, COUNT_OF(RUN))
        || (has_energy && !has_members(json, 0, RUN_ENERGY, COUNT_OF(RUN_ENERGY)))
        || json->nodes[0].count != COUNT_OF(RUN) + (has_energy ? COUNT_OF(RUN_ENERGY) : 0)
        || !are_stages(json, vp_json_get(json, 0, "stages"))) return 0;
    for (uint32_t i = steps + 1; i < json->nodes[steps].end && sum <= LINE_NS_MAX; i++)
        if (vp_json_to_int(json, i, &value) == VP_OK) sum += value;
    return sum <= LINE_NS_MAX && json->nodes[tokens].count
           && (!json->nodes[steps].count || json->nodes[steps].count + 1 == json->nodes[tokens].count);
}
/* The pieces of an answer come one after another, none after the end of the run. */
static int is_served_run(const vp_json *json) {
    uint32_t served = vp_json_get(json, 0, "served"), pieces = vp_json_get(json, served, "piece_ns");
    int64_t total = node_int(json, 0, "total_ns", 0), before = 0, value = 0;
    if (!HAS_ONLY(json, 0, SERVED_RUN) || !HAS_ONLY(json, served, SERVED)
        || !HAS_ONLY(json, vp_json_get(json, served, "usage"), USAGE)
        || json->nodes[pieces].count != json->nodes[vp_json_get(json, served, "piece_bytes")].count
        || node_int(json, served, "first_ns", -1) > total)
        return 0;
    for (uint32_t i = pieces + 1; i < json->nodes[pieces].end; i++, before = value)
        if (vp_json_to_int(json, i, &value) != VP_OK || value < before || value > total) return 0;
    return 1;
}
/* Truth: all sizes of the image are there, or none is. */
static int are_sizes(const vp_json *json, uint32_t object) {
    static const char *const keys[] = {
        "target_vision_tokens", "target_crops", "theoretical_num_crops", "theoretical_tiling", "theoretical_image_size",
        "theoretical_vision_tokens", "actual_num_crops", "actual_tiling", "actual_image_size", "actual_vision_tokens"};
    int count = 0;
    if (vp_json_get(json, object, "sent_image") != VP_JSON_NONE)
        return HAS_ONLY(json, object, SERVED_SIZES)
               && (!has_value(json, object, "sent_image")
                   || HAS_ONLY(json, vp_json_get(json, object, "sent_image"), SENT_IMAGE));
    const int is_pruned = vp_json_get(json, object, PRUNED_SIZES[0].key) != VP_JSON_NONE;
    if (!has_members(json, object, SIZES, COUNT_OF(SIZES))
        || (is_pruned && !has_members(json, object, PRUNED_SIZES, COUNT_OF(PRUNED_SIZES)))
        || json->nodes[object].count != COUNT_OF(SIZES) + (is_pruned ? COUNT_OF(PRUNED_SIZES) : 0))
        return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) count += has_value(json, object, keys[i]);
    return !count || count == (int)(sizeof keys / sizeof *keys);
}
static int are_twins(const vp_json *json, uint32_t object) {
    const uint32_t pairs = vp_json_get(json, object, "pairs");
    struct twin_pair pair;
    if (!HAS_ONLY(json, object, TWINS_OBJECT) || json->nodes[pairs].count > LINE_RUNS_MAX) return 0;
    for (uint32_t i = pairs + 1; i < json->nodes[pairs].end; i = json->nodes[i].end)
        if (!twin_pair_read(json, i, &pair)) return 0;
    return vp_json_equals(json, vp_json_get(json, object, "method"), "exact")
           || vp_json_equals(json, vp_json_get(json, object, "method"), "adjusted");
}
static int is_stop(const vp_json *json, uint32_t node) {
    for (int i = 1; i <= VP_STOP_LAST_; i++)
        if (vp_json_equals(json, node, vp_stop_name(i))) return 1;
    return 0;
}
static int are_kernels(const vp_json *json, uint32_t object) {
    uint32_t stages = vp_json_get(json, object, "stages");
    if (!HAS_ONLY(json, object, KERNELS)) return 0;
    for (uint32_t key = stages + 1; key < json->nodes[stages].end; key = json->nodes[key + 1].end) {
        uint32_t parts = vp_json_get(json, key + 1, "parts");
        if (!is_stage_key(json, key) || !HAS_ONLY(json, key + 1, KERNEL_STAGE)) return 0;
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
        return HAS_ONLY(json, 0, BARE) && HAS_ONLY(json, vp_json_get(json, 0, "bare"), BARE_PAIR) ? LINE_BARE
                                                                                                : LINE_DAMAGED;
    if (vp_json_get(json, 0, "twins") != VP_JSON_NONE)
        return HAS_ONLY(json, 0, TWINS) && are_twins(json, vp_json_get(json, 0, "twins")) ? LINE_TWINS : LINE_DAMAGED;
    if (!are_sizes(json, vp_json_get(json, 0, "sizes"))) return LINE_DAMAGED;
    if (HAS_ONLY(json, 0, DONE) && is_stop(json, vp_json_get(json, 0, "stop"))) return LINE_DONE;
    return HAS_ONLY(json, 0, FAILED) ? LINE_FAILED : LINE_DAMAGED;
}
line_kind journal_line_kind(const vp_json *json) {
    uint32_t node;
    if (!node_is(json, 0, VP_JSON_OBJECT)) return LINE_DAMAGED;
    if (vp_json_get(json, 0, "config") != VP_JSON_NONE) return point_kind(json);
    if (vp_json_get(json, 0, "sample") != VP_JSON_NONE) return is_sample(json) ? LINE_SAMPLE : LINE_DAMAGED;
    if (vp_json_get(json, 0, "plan") != VP_JSON_NONE) return is_head(json) ? LINE_HEAD : LINE_DAMAGED;
    if (json->nodes[0].count != 1) return LINE_DAMAGED;
    if ((node = vp_json_get(json, 0, "session")) != VP_JSON_NONE)
        return (vp_json_get(json, node, "servers") == VP_JSON_NONE
                    ? has_members(json, node, SESSION, COUNT_OF(SESSION))
                    : has_members(json, node, SERVED_SESSION, COUNT_OF(SERVED_SESSION)))
                   ? LINE_SESSION
                   : LINE_DAMAGED;
    if ((node = vp_json_get(json, 0, "kernels")) != VP_JSON_NONE)
        return are_kernels(json, node) ? LINE_KERNELS : LINE_DAMAGED;
    if ((node = vp_json_get(json, 0, "noise")) != VP_JSON_NONE)
        return HAS_ONLY(json, node, NOISE) ? LINE_NOISE : LINE_DAMAGED;
    return node_is(json, vp_json_get(json, 0, "finished"), VP_JSON_TRUE) ? LINE_FINISHED : LINE_DAMAGED;
}
