/* journal.c: the journal of a sweep, one line per run, from which a stopped sweep continues.
 * journal.jsonl, or journal_rank<r>of<w>.jsonl for each of w processes, contains the measurements, one JSON object per
 * line, appended and never changed.
 *   {"schema", "plan", ...}                    the grid and the measured model; again whenever the grid changes
 *   {"session": {...}}                         a start of the engine: machine, options, cold first request
 *   {"sample", "set", ...}                     data independent of the configuration; before its first run
 *   {"config", "sample_id", "run", "prev"...}  one run of a point; prev: offset of the point's previous line, or -1
 *   {"config", "sample_id", "bare", "prev"...} a pair of runs, without and with stage times, not in the
 *                                              point's statistics
 *   {"config", "sample_id", "twins", "prev"...} pairs of a request with an image and a text of equal length
 *   {"config", "sample_id", "fidelity", "prev"...} comparison of next-token distributions with a baseline's
 *   {"config", "sample_id", "done" | "failed", "prev" ...} closes a point
 *   {"load": {...}}                            a block of requests to a server under load, after its runs
 *   {"kernels": {...}}                         the run of a shape with separately timed kernels
 *   {"finished": true}                         all points of the grid above are closed
 * In a sweep of servers, the head has "server", each configuration a "variant", the session "servers" and a run
 * "served": the times of the answer's pieces and the server's own data.
 * The last member of each line is "sum", a checksum of the text before it; journals of older versions lack it. Only
 * complete lines with the right sum are used; the section below defines complete. Other lines are damaged: they are
 * reported and left out. A line of a point must also follow the point's previous line: "prev" is the offset of the last
 * used line, and runs are numbered from 0. The index stores one offset per point, that of its last line; the earlier
 * lines are found through "prev". */
#include "sweep/journal.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json_stream.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"
#include "vlmprof_statistics.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a line must contain. The rows of results/fields.h check each member; here they are checked against each
 * other. A new member that is mandatory even for old lines needs a new schema. */
typedef enum line_kind {
    LINE_DAMAGED, LINE_HEAD, LINE_SESSION, LINE_SAMPLE, LINE_RUN, LINE_BARE, LINE_DONE, LINE_FAILED, LINE_KERNELS,
    LINE_NOISE, LINE_LOAD, LINE_TWINS, LINE_FIDELITY, LINE_FINISHED
} line_kind;
enum { LINE_PLAN_BYTES_MAX = 23 }; /* longest fingerprint of a plan */

static int has_only(const vp_json *json, uint32_t object, const struct fields *fields) {
    return fields_fit(json, object, fields, 0);
}
/* ---- checking members against each other */
/* block_count: the model's; 0 for a server. */
static int is_configuration(const vp_json *json, uint32_t node, int64_t set_count, int64_t block_count) {
    if (!fields_fit(json, node, &CONFIGURATION, -1) || node_int(json, node, "set", -1) >= set_count) return 0;
    char *name = node_text(json, vp_json_get(json, node, "file_name"));
    int good = name && !strchr(name, '/') && knob_is_file_name(name) /* it becomes a path */
               && knob_is_journal(json, node, CONFIGURATION.count, block_count);
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
    static const char *const keys[] = {"target_vision_tokens",      "target_crops",           "theoretical_num_crops",
                                       "theoretical_vision_tokens", "actual_num_crops",       "actual_vision_tokens",
                                       "theoretical_tiling",        "theoretical_image_size", "actual_tiling",
                                       "actual_image_size"};
    const int is_several = vp_json_get(json, object, "vision_tokens_of_images") != VP_JSON_NONE;
    const int wanted = (int)(sizeof keys / sizeof *keys) - (is_several ? 4 : 0);
    int count = 0;
    if (vp_json_get(json, object, "sent_image") != VP_JSON_NONE) return has_only(json, object, &SERVED_SIZES);
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
    if (vp_json_get(json, 0, "bare") != VP_JSON_NONE) return has_only(json, 0, &BARE) ? LINE_BARE : LINE_DAMAGED;
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
static line_kind journal_line_kind(const vp_json *json) {
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
    if ((node = vp_json_get(json, 0, "load")) != VP_JSON_NONE)
        return has_only(json, node, &LOAD_LINE) ? LINE_LOAD : LINE_DAMAGED;
    if ((node = vp_json_get(json, 0, "noise")) != VP_JSON_NONE)
        return has_only(json, node, &NOISE_LINE) ? LINE_NOISE : LINE_DAMAGED;
    return node_is(json, vp_json_get(json, 0, "finished"), VP_JSON_TRUE) ? LINE_FINISHED : LINE_DAMAGED;
}

/* ---- the checksum
 * A line's checksum is its last member, "sum": FNV-1a of the bytes before it. Lines of older journals have none. */
typedef enum line_seal { SEAL_NONE, SEAL_GOOD, SEAL_BROKEN } line_seal;
static const char SEAL[] = ", \"sum\": \"";
enum { SEAL_START = sizeof SEAL - 1, SEAL_DIGITS = 16, SEAL_BYTES = SEAL_START + SEAL_DIGITS + 2 };
/* Adds it to a complete object. */
static void journal_seal(struct text_buffer *line) {
    char digits[SEAL_DIGITS + 3];
    line->bytes--; /* the last brace */
    snprintf(digits, sizeof digits, "%016llx\"}", (unsigned long long)hash_bytes(HASH_START, line->data, line->bytes));
    text_add(line, SEAL, SEAL_START);
    text_add(line, digits, SEAL_DIGITS + 2);
}
/* Removes it, so that the text is an object again; *bytes becomes its length. */
static line_seal journal_unseal(char *line, size_t *bytes) {
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

static const int64_t JOURNAL_SYNC_NS = INT64_C(2000000000);
enum { JOURNAL_LINE_MAX = 64000000, SEAL_ROOM = 64 }; /* limits in bytes of a line and of its checksum */

static int journal_fail(const struct journal *journal) {
    return complain(EXIT_OUTPUT,
                    "%s cannot be written: %s; its content is kept: free some space and run the same command again",
                    journal->path, strerror(errno));
}
int journal_sync(struct journal *journal) {
    if (!journal->unsynced) return 0;
    if (fsync(journal->fd)) return journal_fail(journal);
    journal->unsynced = 0;
    journal->synced_ns = vp_clock_ns();
    return 0;
}
int journal_append(struct journal *journal, const char *text, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t written = pwrite(journal->fd, text + done, bytes - done, (off_t)(journal->end + (int64_t)done));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            int kept = written ? errno : ENOSPC;
            /* the next start removes the incomplete line */
            if (ftruncate(journal->fd, (off_t)journal->end)) kept = errno;
            errno = kept;
            return journal_fail(journal);
        }
        done += (size_t)written;
    }
    journal->end += (int64_t)bytes;
    return ++journal->unsynced >= JOURNAL_SYNC_LINES || vp_clock_ns() - journal->synced_ns >= JOURNAL_SYNC_NS
               ? journal_sync(journal)
               : 0;
}
vp_json_writer *journal_line_begin(struct journal *journal) {
    journal->line.bytes = 0;
    vp_json_writer_init_sink(&journal->writer, text_sink, &journal->line, 0);
    vp_json_begin_object(&journal->writer);
    return &journal->writer;
}
int journal_line_end(struct journal *journal) {
    vp_json_end_object(&journal->writer);
    if (vp_json_finish(&journal->writer) != VP_OK)
        return complain(EXIT_WORK, "%s: a line cannot be written as JSON: %s", journal->path,
                        vp_result_text(journal->writer.result));
    if (journal->line.bytes > JOURNAL_LINE_MAX)
        return complain(EXIT_WORK, "%s: a line of %zu bytes exceeds the journal's limit of %d bytes", journal->path,
                        journal->line.bytes, JOURNAL_LINE_MAX);
    journal_seal(&journal->line);
    text_add(&journal->line, "\n", 1);
    return 0;
}
int journal_line_append(struct journal *journal) {
    int code = journal_line_end(journal);
    return code ? code : journal_append(journal, journal->line.data, journal->line.bytes);
}
void journal_close(struct journal *journal) {
    if (journal->fd >= 0) close(journal->fd);
    FREE_ALL(journal->path, journal->line.data);
}

void index_free(struct journal_index *index) {
    for (int32_t i = 0; i < index->file_count; i++) {
        if (index->files[i].is_own && index->files[i].fd >= 0) close(index->files[i].fd);
        FREE_ALL(index->files[i].path, index->files[i].device, index->files[i].sessions, index->files[i].blocks);
    }
    for (int32_t i = 0; i < index->set_count; i++) {
        struct index_set *set = &index->sets[i];
        for (size_t k = 0; k < set->count; k++) { free(set->entries[k]->last); free(set->entries[k]); }
        free((void *)set->entries);
        fields_free(&DATA, &set->data);
    }
    for (int32_t i = 0; i < index->configuration_count; i++) {
        free(index->configurations[i].file_name);
        knob_values_free(&index->configurations[i].knobs);
    }
    fields_free(&HEAD, &index->head);
    FREE_ALL(index->options, index->model_shape, index->server, index->files, index->sets, index->configurations,
             index->shapes, index->loads, index->scratch.nodes, index->line.data);
    memset(index, 0, sizeof *index);
}
/* The configuration that a line names; -1 if there is none. The search starts at the hint, because neighbours in a
 * journal are neighbours in the grid. */
static int32_t index_configuration_find(struct journal_index *index, const vp_json *json, uint32_t name) {
    for (int32_t i = 0; i < index->configuration_count; i++) {
        int32_t at = (index->configuration_hint + i) % index->configuration_count;
        if (!vp_json_equals(json, name, index->configurations[at].file_name)) continue;
        index->configuration_hint = (at + 1) % index->configuration_count;
        return at;
    }
    return -1;
}
int32_t index_configuration_named(const struct journal_index *index, const char *file_name) {
    for (int32_t i = 0; i < index->configuration_count; i++)
        if (!strcmp(index->configurations[i].file_name, file_name)) return i;
    return -1;
}
/* The index of a sample among entries [first, count), ascending by id, or the index at which to insert it. */
static size_t index_place(const struct index_set *set, size_t first, int64_t id) {
    size_t low = first, high = set->count;
    if (low < high && set->entries[high - 1]->id < id) return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->entries[middle]->id < id) low = middle + 1; else high = middle;
    }
    return low;
}
struct index_entry *index_find(const struct index_set *set, size_t first, int64_t id) {
    size_t at = index_place(set, first, id);
    return at < set->count && set->entries[at]->id == id ? set->entries[at] : NULL;
}
/* The slot for a point's last line; -1 until it has one. */
static int64_t *entry_last(struct index_entry *entry, const struct index_configuration *configuration) {
    if (configuration->place >= entry->last_count) {
        entry->last = resize(entry->last, (size_t)configuration->place + 1, sizeof *entry->last);
        while (entry->last_count <= configuration->place) entry->last[entry->last_count++] = -1;
    }
    return &entry->last[configuration->place];
}
/* Offset, number of runs and state are stored in one number: (offset * 2^16 + runs) * 4 + state; -1: not there. */
static int64_t pack_line(struct point_line line) { return (line.at << 16 | line.runs) << 2 | line.state; }
static struct point_line unpack_line(int64_t packed) {
    struct point_line line = {-1, POINT_OPEN, 0};
    if (packed < 0) return line;
    line.at = packed >> 18;
    line.runs = (int32_t)(packed >> 2 & 65535);
    line.state = (int)(packed & 3);
    return line;
}
struct point_line index_point(const struct index_entry *entry, const struct index_configuration *configuration) {
    return unpack_line(configuration->place < entry->last_count ? entry->last[configuration->place] : -1);
}

static void index_take_sets(struct journal_index *index, const vp_json *json, uint32_t data) {
    uint32_t node = data + 1;
    index->set_count = (int32_t)json->nodes[data].count;
    index->sets = zeroed((size_t)index->set_count, sizeof *index->sets);
    for (int32_t i = 0; i < index->set_count; i++, node = json->nodes[node].end)
        fields_read(json, node, &DATA, &index->sets[i].data);
}
void add_plan_difference(struct text_buffer *out, const vp_json *json, uint32_t options, const char *ours) {
    /* of the plan, but not of its grid, which may grow */
    static const char *const names[] = {
        "model", "synthetic", "data", "annotations", "image_dir", "dataset_name", "prompt", "style", "metric",
        "num_samples", "stratify_by", "answer_hint", "max_new_tokens", "ignore_eos", "seed", "num_runs_per_sample",
        "max_runs", "stop_half_width", "time_box_s", "timing", "bare_every", "weights", "head_weights",
        "vision_weights", "importance_scores_file", "device", "gpu", "threads", "gemm", "endpoint_api", "family",
        "no_cache", "same_image", "twins", "baseline", "arrivals", "ramp_s", "server", "knob", "choices"};
    struct parsed own = {{NULL, NULL, 0}, NULL, 0};
    const size_t first = out->bytes;
    if (ours && parse_json(&own, ours, strlen(ours), NULL) != VP_OK) ours = NULL;
    for (size_t i = 0; ours && i < sizeof names / sizeof *names; i++) {
        char *there = json_text(json, vp_json_get(json, options, names[i])),
             *here = json_text(&own.json, vp_json_get(&own.json, 0, names[i]));
        if (there && here && strcmp(there, here))
            text_add_format(out, "%s --%s %.80s instead of %.80s", out->bytes > first ? "," : "", names[i], there,
                            here);
        FREE_ALL(there, here);
    }
    if (out->bytes == first)
        text_add_string(out, ours ? " the options are equal, but the contents of the model or the data differ"
                                  : " a different model, data, seed or options");
    free(own.nodes);
}
/* Reads a configuration of a head line; a known one keeps its first head. */
static void index_take_configuration(struct journal_index *index, const vp_json *json, uint32_t node, int32_t file,
                                     int64_t at) {
    int32_t known = index_configuration_find(index, json, vp_json_get(json, node, "file_name"));
    int64_t set = node_int(json, node, "set", 0);
    if (known >= 0) {
        index->configurations[known].is_wanted = 1;
        return;
    }
    struct index_configuration *configuration = ADDED(index->configurations, index->configuration_count);
    configuration->file_name = node_text(json, vp_json_get(json, node, "file_name"));
    configuration->set = (int32_t)set;
    configuration->place = index->sets[set].configuration_count++;
    knob_read_journal(json, node, vp_json_get(json, 0, "options"), &configuration->knobs);
    configuration->head_file = file;
    configuration->head_at = at;
    configuration->is_wanted = 1;
}
/* The members of the first head, among all journals, that apply to the whole sweep. */
static void index_begin(struct journal_index *index, const vp_json *json, const char *plan) {
    snprintf(index->plan, sizeof index->plan, "%s", plan);
    fields_read(json, 0, &HEAD, &index->head);
    index->server = json_text(json, vp_json_get(json, 0, "server"));
    if (!index->options) index->options = json_text(json, vp_json_get(json, 0, "options"));
    index_take_sets(index, json, vp_json_get(json, 0, "data"));
}
/* Returns 1 if a head has as many sets as the index; its configurations refer to them. */
static int has_same_sets(const struct journal_index *index, const vp_json *json) {
    return !index->set_count || json->nodes[vp_json_get(json, 0, "data")].count == (uint32_t)index->set_count;
}
/* Reads a head line. The first head of all journals defines the plan of the index. Returns 0 or an exit code. */
static int index_take_head(struct journal_index *index, int32_t file_index, int64_t at) {
    const vp_json *json = &index->scratch.json;
    struct index_file *file = &index->files[file_index];
    uint32_t configs = vp_json_get(json, 0, "configs"), node = configs + 1;
    char *name = node_text(json, vp_json_get(json, 0, "plan"));
    uint32_t shape = vp_json_get(json, 0, "model_shape");
    int same = name && (!index->plan[0] || !strcmp(name, index->plan)) && has_same_sets(index, json);
    if (same && !index->set_count) index_begin(index, json, name);
    free(name);
    if (!same) {
        struct text_buffer words = {NULL, 0, 0};
        add_plan_difference(&words, json, vp_json_get(json, 0, "options"), index->options);
        complain(EXIT_USAGE, "%s belongs to another plan:%.400s; use another --output_dir, or delete it with its "
                             "results", file->path, words.data);
        free(words.data);
        return EXIT_USAGE;
    }
    if (!index->head.architecture) index->head.architecture = node_text(json, vp_json_get(json, 0, "architecture"));
    /* a later head may have it even if an older one lacks it */
    if (!index->model_shape) index->model_shape = json_text(json, shape);
    file->rank = node_int(json, 0, "rank", 0);
    file->world_size = node_int(json, 0, "world_size", 1);
    file->is_finished = 0;
    for (int32_t i = 0; i < index->configuration_count; i++) index->configurations[i].is_wanted = 0;
    for (uint32_t i = 0; i < json->nodes[configs].count; i++, node = json->nodes[node].end)
        index_take_configuration(index, json, node, file_index, at);
    file->grid = 0;
    for (int32_t i = 0; i < index->configuration_count; i++)
        if (index->configurations[i].is_wanted) file->grid += hash_text(HASH_START, index->configurations[i].file_name);
    return 0;
}
/* Takes over the line of a sample. Returns 1 if it counts. It does not if its set does not exist, or if the journal
 * already has one. */
static int index_has_taken_sample(struct journal_index *index, int32_t file, int64_t at) {
    const vp_json *json = &index->scratch.json;
    int64_t set_index = node_int(json, 0, "set", 0), id = node_int(json, 0, "sample", 0);
    struct index_entry *entry;
    if (set_index >= index->set_count) return 0;
    struct index_set *set = &index->sets[set_index];
    if (index_find(set, set->first, id)) return 0;
    set->entries = grown(set->entries, set->count, sizeof *set->entries);
    size_t spot = index_place(set, set->first, id);
    memmove((void *)(set->entries + spot + 1), (const void *)(set->entries + spot),
            (set->count - spot) * sizeof *set->entries);
    entry = set->entries[spot] = zeroed(1, sizeof *entry);
    set->count++;
    entry->id = id;
    entry->line_at = at;
    entry->file = file;
    return 1;
}
/* Returns 1 if a line of a point can follow the point's last line so far; *line becomes the new last one. A line with
 * "prev" -1 starts the point, or restarts it if it failed or was not closed. */
static int can_follow(const vp_json *json, line_kind kind, int64_t at, struct point_line *line) {
    int64_t before = node_int(json, 0, "prev", -1);
    int32_t runs = before < 0 ? 0 : line->runs;
    if (before < 0 ? line->state == POINT_DONE : line->state != POINT_OPEN || line->at != before) return 0;
    if (kind == LINE_RUN && node_int(json, 0, "run", -1) != runs++) return 0;
    if ((kind == LINE_BARE || kind == LINE_TWINS || kind == LINE_FIDELITY) && !runs) return 0;
    if (kind == LINE_DONE && (!runs || node_int(json, 0, "done", -1) != runs)) return 0;
    line->at = at;
    line->runs = runs;
    line->state = kind == LINE_DONE ? POINT_DONE : kind == LINE_FAILED ? POINT_FAILED : POINT_OPEN;
    return 1;
}
/* Returns 1 if the line and its configuration are of the same kind: a server's, or the engine's. */
static int is_of_kind(const vp_json *json, line_kind kind, const struct index_configuration *configuration) {
    const uint32_t sizes = vp_json_get(json, 0, "sizes");
    if (kind == LINE_FIDELITY) return 1;
    const int is_served = kind == LINE_TWINS ? 1
                          : kind == LINE_RUN ? vp_json_get(json, 0, "served") != VP_JSON_NONE
                                             : vp_json_get(json, sizes, "sent_image") != VP_JSON_NONE;
    return is_served == knobs_are_served(&configuration->knobs);
}
/* Takes over a line of a point. Returns 1 if it counts. It does not if the configuration or the sample is unknown, or
 * if it does not follow the point's last line. The point then stays unchanged, and the rest is measured again. */
static int index_has_taken_point(struct journal_index *index, line_kind kind, int64_t at) {
    const vp_json *json = &index->scratch.json;
    int32_t found = index_configuration_find(index, json, vp_json_get(json, 0, "config"));
    struct index_configuration *configuration = found < 0 ? NULL : &index->configurations[found];
    struct index_set *set = configuration ? &index->sets[configuration->set] : NULL;
    struct index_entry *entry = set ? index_find(set, set->first, node_int(json, 0, "sample_id", -1)) : NULL;
    struct point_line before, line;
    if (!entry || !is_of_kind(json, kind, configuration)) return 0;
    before = line = index_point(entry, configuration);
    if (!can_follow(json, kind, at, &line)) return 0;
    *entry_last(entry, configuration) = pack_line(line);
    configuration->closed += (line.state != POINT_OPEN) - (before.state != POINT_OPEN);
    configuration->failed += (line.state == POINT_FAILED) - (before.state == POINT_FAILED);
    return 1;
}
static void index_take_session(struct journal_index *index, int32_t file_index, int64_t at) {
    const vp_json *json = &index->scratch.json;
    struct index_file *file = &index->files[file_index];
    uint32_t node = vp_json_get(json, 0, "session");
    *ADDED(file->sessions, file->session_count) = at;
    free(file->device);
    file->device = node_text(json, vp_json_get(json, node, "device"));
    file->knows_device = file->device != NULL;
    file->on_gpu = file->device && !strncmp(file->device, "cuda", 4);
}
/* Takes over the machine's load during a block of runs. Returns 1 if it counts. It does not if it starts before the end
 * of the last block, or after its own line. */
static int index_has_taken_noise(struct journal_index *index, int32_t file_index, int64_t at) {
    const vp_json *json = &index->scratch.json;
    struct index_file *file = &index->files[file_index];
    struct noise_line line;
    fields_read(json, vp_json_get(json, 0, "noise"), &NOISE_LINE, &line);
    if (line.from > at || (file->block_count && line.from < file->blocks[file->block_count - 1].at)) return 0;
    struct index_block *block = ADDED(file->blocks, file->block_count);
    block->from = line.from;
    block->at = at;
    block->noise = line.noise;
    return 1;
}
/* Returns 1 if the journal already has the kernels of this shape. */
static int index_has_shape(const struct journal_index *index, const struct index_shape *wanted) {
    for (size_t i = 0; i < index->shape_count; i++) {
        const struct index_shape *shape = &index->shapes[i];
        if (shape->file == wanted->file && shape->configuration == wanted->configuration
            && shape->views == wanted->views && shape->sequence == wanted->sequence)
            return 1;
    }
    return 0;
}
/* Takes over a shape whose kernels were timed. Returns 1 if it counts. It does not if its configuration is unknown, or
 * if the journal already has the shape. */
static int index_has_taken_kernels(struct journal_index *index, int32_t file, int64_t at) {
    const vp_json *json = &index->scratch.json;
    uint32_t node = vp_json_get(json, 0, "kernels");
    const struct index_shape shape = {.file = file,
                                      .configuration =
                                          index_configuration_find(index, json, vp_json_get(json, node, "config")),
                                      .at = at,
                                      .views = node_int(json, node, "views", 0),
                                      .sequence = node_int(json, node, "total_sequence_length", 0)};
    if (shape.configuration < 0 || index_has_shape(index, &shape)) return 0;
    *ADDED(index->shapes, index->shape_count) = shape;
    return 1;
}
/* Takes over a block under load. Returns 1 if it counts: its configuration is known. */
static int index_has_taken_load(struct journal_index *index, int32_t file, int64_t at) {
    const vp_json *json = &index->scratch.json;
    const uint32_t name = vp_json_get(json, vp_json_get(json, 0, "load"), "config");
    const struct index_load load = {file, index_configuration_find(index, json, name), at};
    if (load.configuration < 0) return 0;
    *ADDED(index->loads, index->load_count) = load;
    return 1;
}
/* Reports a skipped line; the first two of a journal are reported with their offsets. */
static void index_report(struct journal_index *index, const struct index_file *file, int64_t at, line_kind kind) {
    if (index->is_read_again || index->damaged++ >= 2) return;
    complain(EXIT_INPUT, "%s: line %lld (byte %lld) is %s and was skipped%s", file->path, (long long)file->lines,
             (long long)at,
             kind == LINE_DAMAGED ? "damaged" : "out of place (it repeats a line, or a line that it needs is damaged)",
             kind == LINE_NOISE || kind == LINE_LOAD ? "" : "; its point is measured again");
}
/* Takes over one line of a known kind. Returns 0 or an exit code. */
static int index_take_kind(struct journal_index *index, line_kind kind, int32_t file_index, int64_t at) {
    int is_taken = 1;
    switch (kind) {
    case LINE_HEAD: return index_take_head(index, file_index, at);
    case LINE_SESSION: index_take_session(index, file_index, at); break;
    case LINE_SAMPLE: is_taken = index_has_taken_sample(index, file_index, at); break;
    case LINE_KERNELS: is_taken = index_has_taken_kernels(index, file_index, at); break;
    case LINE_LOAD: is_taken = index_has_taken_load(index, file_index, at); break;
    case LINE_NOISE: is_taken = index_has_taken_noise(index, file_index, at); break;
    case LINE_FINISHED: index->files[file_index].is_finished = 1; break;
    default: is_taken = index_has_taken_point(index, kind, at);
    }
    if (!is_taken) index_report(index, &index->files[file_index], at, kind);
    return 0;
}
/* Takes over one complete line; a damaged one is reported and skipped. Returns 0 or an exit code. */
static int index_take(struct journal_index *index, int32_t file_index, int64_t at, char *line, size_t bytes) {
    struct index_file *file = &index->files[file_index];
    const line_seal seal = journal_unseal(line, &bytes);
    line_kind kind = LINE_DAMAGED;
    file->has_sums |= seal == SEAL_GOOD; /* lines of older versions are before these */
    if (seal != SEAL_BROKEN && (seal == SEAL_GOOD || !file->has_sums)
        && parse_json(&index->scratch, line, bytes, NULL) == VP_OK)
        kind = journal_line_kind(&index->scratch.json);
    file->lines++;
    if (file->lines == 1 && kind != LINE_HEAD)
        return complain(EXIT_USAGE, "%s is not a journal of this version of vlmprof: use another --output_dir, or move "
                        "the file away",
                        file->path);
    if (kind != LINE_DAMAGED) return index_take_kind(index, kind, file_index, at);
    index_report(index, file, at, kind);
    return 0;
}
static int compare_entries(const void *left_item, const void *right_item) {
    const struct index_entry *left = *(struct index_entry *const *)left_item,
                             *right = *(struct index_entry *const *)right_item;
    return (left->id > right->id) - (left->id < right->id);
}
int index_read(struct journal_index *index, const char *path, int fd, int is_own) {
    struct source source = {path, fd, NULL, 0};
    struct text_buffer text = {NULL, 0, 0};
    int64_t base = 0; /* offset of text.data[0] */
    size_t seen = 0;
    int code = 0;
    ssize_t got = 0;
    struct index_file *file = ADDED(index->files, index->file_count);
    *file = (struct index_file){.path = copy_text(path, strlen(path)), .fd = fd, .is_own = is_own};
    for (int32_t i = 0; i < index->set_count; i++) index->sets[i].first = index->sets[i].count;
    while (!code) {
        char *end = text.bytes > seen ? memchr(text.data + seen, '\n', text.bytes - seen) : NULL;
        char piece[65536];
        if (end) {
            size_t start = (size_t)(file->end - base), bytes = (size_t)(end - text.data) - start;
            code = index_take(index, index->file_count - 1, file->end, text.data + start, bytes);
            file = &index->files[index->file_count - 1];
            seen = start + bytes + 1;
            file->end = base + (int64_t)seen;
            continue;
        }
        /* the buffer is used up: keep the incomplete line and read more */
        if (file->end > base)
            memmove(text.data, text.data + (file->end - base), text.bytes - (size_t)(file->end - base));
        text.bytes -= (size_t)(file->end - base);
        base = file->end;
        seen = text.bytes;
        if ((got = source_read(&source, base + (int64_t)text.bytes, piece, sizeof piece)) <= 0) break;
        text_add(&text, piece, (size_t)got);
        if (text.bytes > JOURNAL_LINE_MAX + SEAL_ROOM && !memchr(text.data, '\n', text.bytes)) {
            code = complain(EXIT_INPUT, "%s: line %lld has more than %d bytes: it is not a sweep's journal", path,
                            (long long)index->files[index->file_count - 1].lines + 1, JOURNAL_LINE_MAX);
            break;
        }
    }
    /* journal_open truncates after the last complete line: unreadable lines must not be lost */
    if (got < 0) code = complain(EXIT_INPUT, "%s cannot be read: %s", path, strerror(errno));
    free(text.data);
    if (index->damaged > 2) complain(EXIT_INPUT, "%s: %lld damaged lines in total", path, (long long)index->damaged);
    index->damaged = 0;
    return code;
}
int index_has_session(const struct journal_index *index, int32_t file, int64_t at) {
    for (size_t i = 0; i < index->files[file].session_count; i++)
        if (index->files[file].sessions[i] == at) return 1;
    return 0;
}
size_t index_block_of(const struct journal_index *index, int32_t file_index, int64_t at) {
    const struct index_file *file = &index->files[file_index];
    size_t low = 0, high = file->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->blocks[middle].at < at) low = middle + 1; else high = middle;
    }
    return low < file->block_count && file->blocks[low].from <= at ? low : file->block_count;
}
int index_sort(struct journal_index *index) {
    for (int32_t i = 0; i < index->set_count; i++) {
        struct index_set *set = &index->sets[i];
        if (set->count) qsort(set->entries, set->count, sizeof *set->entries, compare_entries);
        set->first = 0;
        for (size_t k = 1; k < set->count; k++)
            if (set->entries[k]->id == set->entries[k - 1]->id)
                return complain(EXIT_USAGE, "%s and %s both contain sample %lld of %s: they do not belong to the same "
                                            "sweep",
                                index->files[set->entries[k - 1]->file].path, index->files[set->entries[k]->file].path,
                                (long long)set->entries[k]->id, set->data.task);
    }
    return 0;
}
int index_read_line(struct journal_index *index, int32_t file_index, int64_t at) {
    const struct index_file *file = &index->files[file_index];
    struct source source = {file->path, file->fd, NULL, 0};
    index->line.bytes = 0;
    for (;;) {
        char piece[16384];
        ssize_t got = source_read(&source, at + (int64_t)index->line.bytes, piece, sizeof piece);
        const char *end = got > 0 ? memchr(piece, '\n', (size_t)got) : NULL;
        if (got <= 0) break;
        text_add(&index->line, piece, end ? (size_t)(end - piece) : (size_t)got);
        if (end && journal_unseal(index->line.data, &index->line.bytes) != SEAL_BROKEN
            && parse_json(&index->scratch, index->line.data, index->line.bytes, NULL) == VP_OK) return 0;
        if (end) break;
    }
    return complain(EXIT_INPUT, "%s cannot be read back at byte %lld", file->path, (long long)at);
}

/* ---- the journal that this process writes */
char *journal_name(const char *folder, int64_t rank, int64_t world_size) {
    char name[80];
    if (world_size > 1)
        snprintf(name, sizeof name, "journal_rank%lldof%lld.jsonl", (long long)rank, (long long)world_size);
    else snprintf(name, sizeof name, "journal.jsonl");
    return join_path(folder, name);
}
int journal_lock(int fd, int wait) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(fd, wait ? F_SETLKW : F_SETLK, &lock)) {
        if (errno == EINTR && !interrupted) continue;
        return errno == EACCES || errno == EAGAIN || errno == EINTR;
    }
    return 0; /* a file system without locks */
}
int journal_is_locked(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
int journal_open_file(const char *path) {
    struct stat info;
    int is_other = stat(path, &info) == 0 && !S_ISREG(info.st_mode), fd = -1;
    if (!is_other) fd = open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
    complain(EXIT_OUTPUT, "%s cannot be opened: %s", path,
             is_other || fd >= 0 ? "it is not a regular file" : strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}
int journal_open(struct journal *journal, struct journal_index *index) {
    struct stat info;
    int code;
    journal->fd = journal_open_file(journal->path);
    if (journal->fd < 0) return EXIT_OUTPUT;
    if (journal_lock(journal->fd, 0))
        return complain(EXIT_USAGE, "%s: another sweep is writing to this folder", journal->path);
    if ((code = index_read(index, journal->path, journal->fd, 0)) != 0 || (code = index_sort(index)) != 0) return code;
    journal->end = index->files[0].end;
    journal->synced_ns = vp_clock_ns();
    if (fstat(journal->fd, &info) == 0 && info.st_size > journal->end)
        print_note("vlmprof: %s: the last line is cut off and skipped\n", journal->path);
    return ftruncate(journal->fd, (off_t)journal->end) ? journal_fail(journal) : 0;
}

/* ---- the end of the runs of a point */
const char *stop_name(int32_t stop) {
    switch (stop) {
#define STOP_NAME(name, value, text, meaning) \
    case value: return text;
        STOPS(STOP_NAME)
#undef STOP_NAME
    default: return NULL;
    }
}

vp_result decide_stop(const struct stop_rule *rule, const double *values, size_t count, int64_t elapsed_ns,
                      double *scratch, enum stop_reason *stop) {
    double low, high;
    if (rule->min_runs < 1 || rule->max_runs < rule->min_runs || rule->box_ns < 0 || elapsed_ns < 0)
        return VP_ERR_RANGE;
    if (!(rule->half_width >= 0.0 && rule->half_width < 1.0) || !(rule->confidence > 0.0 && rule->confidence < 1.0))
        return VP_ERR_RANGE;
    if (!vp_statistics_all_finite(values, count)) return VP_ERR_RANGE;
    *stop = STOP_NOT;
    if (count < (uint64_t)rule->min_runs) return VP_OK;
    if (rule->half_width <= 0.0) {
        *stop = STOP_RUNS;
        return VP_OK;
    }
    if (scratch != values) memcpy(scratch, values, count * sizeof *values);
    vp_sort_double(scratch, count);
    if (vp_statistics_percentile_interval(scratch, count, 50.0, rule->confidence, &low, &high) == VP_OK
        && (high - low) * 0.5 <= rule->half_width * vp_statistics_percentile(scratch, count, 50.0))
        *stop = STOP_INTERVAL;
    else if (count >= (uint64_t)rule->max_runs) *stop = STOP_MAX;
    else if (rule->box_ns > 0 && elapsed_ns >= rule->box_ns) *stop = STOP_BOX;
    return VP_OK;
}
