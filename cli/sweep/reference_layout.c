/* reference_layout.c: result files in the folders and under the names that the reference's scripts read.
 * Source of the names: ChulanZhang/molmo_hf at commit 09bce1fc. In the folder of a task, plot_core_exp_pareto.py reads
 * the JSON files whose names begin with NAME_START; all other scripts read every JSON file. One name works for all, and
 * two names for a configuration would count it twice. The scripts calculate with all values: a null would stop them. */
#include "sweep/ranks.h"
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "sweep/result_write.h"
#include "vlmprof_file.h"

#define NAME_START "combined_profiling_results_"
#define SCHEMA_START "vlmprof-sweep-"

/* The keys that the scripts calculate with: of a file, of its latency_stats and of a row. */
static const char *const FILE_NUMBERS[] = {"max_crops", "top_k", "num_active_blocks", "accuracy"};
static const char *const STATS_NUMBERS[] = {"T_LLM_prefill_p50", "T_LLM_decode_p50", "T_total_p50"};
static const char *const ROW_NUMBERS[] = {"sample_id", "top_k", "num_active_blocks", "actual_vision_tokens",
    "actual_text_tokens", "output_tokens", "accuracy", "T_vision_total", "T_LLM_prefill", "T_LLM_decode", "T_total"};
enum { COUNT_OF_FILE = sizeof FILE_NUMBERS / sizeof *FILE_NUMBERS,
       COUNT_OF_STATS = sizeof STATS_NUMBERS / sizeof *STATS_NUMBERS,
       COUNT_OF_ROW = sizeof ROW_NUMBERS / sizeof *ROW_NUMBERS };

struct item { char *folder, *name, *plan, *out_folder, *out_name; };
struct items { struct item *items; size_t count; };

static void items_free(struct items *items) {
    for (size_t i = 0; i < items->count; i++) {
        struct item *item = &items->items[i];
        FREE_ALL(item->folder, item->name, item->plan, item->out_folder, item->out_name);
    }
    free(items->items);
}

/* The first key without a number, or NULL. */
static const char *missing_number(const vp_json *json, uint32_t object, const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!node_is(json, vp_json_get(json, object, keys[i]), VP_JSON_NUMBER)) return keys[i];
    return NULL;
}
static int is_json_name(const char *name) {
    size_t bytes = strlen(name);
    return name[0] != '.' && bytes > 5 && !strcmp(name + bytes - 5, ".json");
}
/* The folder of a task: its name with hyphens, as the scripts expect it. NULL if no such folder can be made. */
static char *task_folder(const char *out, const char *task) {
    if (!task || !task[0] || task[0] == '.' || strchr(task, '/')) return NULL;
    char *name = copy_text(task, strlen(task));
    for (char *at = name; *at; at++)
        if (*at == '_') *at = '-';
    char *path = join_path(out, name);
    free(name);
    return path;
}
static char *layout_name(const char *name) {
    struct text_buffer text = {NULL, 0, 0};
    if (strncmp(name, NAME_START, strlen(NAME_START))) text_add_string(&text, NAME_START);
    text_add_string(&text, name);
    return text.data;
}

/* Adds a file to the items if it is a result file of a sweep. */
static int add_item(struct items *items, const char *folder, const char *name, const char *out, struct parsed *parsed) {
    char *text = NULL, *schema, *task;
    size_t bytes = 0;
    struct item item = {NULL, NULL, NULL, NULL, NULL};
    int code = file_read_in(folder, name, &text, &bytes, NULL);
    if (code) return code;
    if (parse_json(parsed, text, bytes, NULL) != VP_OK) {
        free(text);
        return 0;
    }
    schema = node_text(&parsed->json, vp_json_get(&parsed->json, 0, "schema"));
    task = node_text(&parsed->json, vp_json_get(&parsed->json, 0, "dataset_name"));
    item.plan = node_text(&parsed->json, vp_json_get(&parsed->json, 0, "plan"));
    if (schema && !strncmp(schema, SCHEMA_START, strlen(SCHEMA_START)) && item.plan) {
        item.out_folder = task_folder(out, task);
        item.folder = copy_text(folder, strlen(folder));
        item.name = copy_text(name, strlen(name));
        item.out_name = layout_name(name);
        items->items = (struct item *)resize(items->items, items->count + 1, sizeof item);
        items->items[items->count++] = item;
        if (!item.out_folder)
            code = complain(EXIT_INPUT, "%s/%s: its \"dataset_name\" is not a valid folder name", folder, name);
    } else free(item.plan);
    FREE_ALL(schema, task, text);
    return code;
}
static int add_folder(struct items *items, const char *folder, const char *out, struct parsed *parsed) {
    struct text_list names = {NULL, 0};
    size_t before = items->count;
    int code = names_of_folder(folder, &names);
    for (size_t i = 0; i < names.count && !code; i++)
        if (is_json_name(names.items[i])) code = add_item(items, folder, names.items[i], out, parsed);
    if (!code && items->count == before) code = complain(EXIT_INPUT, "%s contains no result file of a sweep", folder);
    text_list_free(&names);
    return code;
}

/* A task must come from one sweep and have each configuration once: the scripts could not distinguish them. */
static int check_items(const struct items *items) {
    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->items[i];
        for (size_t j = 0; j < i; j++) {
            const struct item *other = &items->items[j];
            if (strcmp(item->out_folder, other->out_folder)) continue;
            if (strcmp(item->plan, other->plan))
                return complain(EXIT_INPUT, "%s/%s and %s/%s: one task but two sweeps: export them separately",
                                other->folder, other->name, item->folder, item->name);
            if (!strcmp(item->out_name, other->out_name))
                return complain(EXIT_INPUT, "%s/%s and %s/%s are the same configuration", other->folder, other->name,
                                item->folder, item->name);
        }
    }
    return 0;
}
/* Files already in a task's folder must be of the same sweep: others would be replaced or, worse, read. */
static int check_out_folder(const struct item *item) {
    struct text_list names = {NULL, 0};
    struct journal_index index = {0};
    int code = is_folder(item->out_folder) ? names_of_folder(item->out_folder, &names) : 0;
    for (size_t i = 0; i < names.count && !code; i++) {
        struct result_found found = {0, NULL};
        if (!is_json_name(names.items[i])) continue;
        snprintf(index.plan, sizeof index.plan, "%s", item->plan);
        code = result_check(item->out_folder, names.items[i], &index, &found);
        if (!code && found.is_there && !found.status)
            code = complain(EXIT_OUTPUT, "%s/%s exists and is "
                            "not a result file of vlmprof: use another --output_dir", item->out_folder, names.items[i]);
        free(found.status);
    }
    text_list_free(&names);
    return code;
}

/* The text of a result file without the rows that lack a number. Returns the number of rows that remain. */
static size_t add_usable_rows(const vp_json *json, const char *text, size_t bytes, uint32_t rows, size_t *left_out,
                              struct text_buffer *result) {
    const vp_json_node *array = &json->nodes[rows];
    size_t kept = 0, at = (size_t)array->start + 1, end = (size_t)(array->start + array->bytes) - 1;
    text_add(result, text, at);
    *left_out = 0;
    for (uint32_t row = rows + 1; row < array->end; row = json->nodes[row].end) {
        const vp_json_node *node = &json->nodes[row];
        if (missing_number(json, row, ROW_NUMBERS, COUNT_OF_ROW)
            || !node_is(json, vp_json_get(json, row, "tier"), VP_JSON_STRING)) {
            ++*left_out;
            continue;
        }
        text_add_string(result, kept++ ? ",\n    " : "\n    ");
        text_add(result, text + node->start, (size_t)node->bytes);
    }
    text_add_string(result, "\n  ");
    text_add(result, text + end, bytes - end);
    return kept;
}
static int write_item(const struct item *item, struct parsed *parsed, struct reference_layout *layout) {
    char *text = NULL;
    size_t bytes = 0, left_out = 0, kept = 0;
    struct text_buffer changed = {NULL, 0, 0};
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *json = &parsed->json;
    int code = file_read_in(item->folder, item->name, &text, &bytes, NULL);
    if (code) return code;
    if (parse_json(parsed, text, bytes, &error) != VP_OK) {
        code = complain_result(EXIT_INPUT, item->name, error.code, &error);
        free(text);
        return code;
    }
    uint32_t rows = vp_json_get(json, 0, "per_sample_results");
    const char *missing = missing_number(json, 0, FILE_NUMBERS, COUNT_OF_FILE);
    if (!missing) missing = missing_number(json, vp_json_get(json, 0, "latency_stats"), STATS_NUMBERS, COUNT_OF_STATS);
    if (!missing && !node_is(json, rows, VP_JSON_ARRAY)) missing = "per_sample_results";
    if (!missing) kept = add_usable_rows(json, text, bytes, rows, &left_out, &changed);
    if (missing) {
        text_list_add(&layout->warnings, "%s/%s was skipped: the scripts need its \"%s\"", item->folder, item->name,
                      missing);
        code = EXIT_WORK;
    } else if (!kept) {
        text_list_add(&layout->warnings, "%s/%s was skipped: no row has a tier and all numbers that the scripts need",
                      item->folder, item->name);
        code = EXIT_WORK;
    } else {
        if (left_out)
            text_list_add(&layout->warnings, "%s/%s: %zu of %zu rows were skipped: a tier or a number is missing",
                          item->folder, item->name, left_out, left_out + kept);
        code = file_write_whole(item->out_folder, item->out_name, left_out ? changed.data : text,
                                left_out ? changed.bytes : bytes);
        if (!code) text_list_take(&layout->written, join_path(item->out_folder, item->out_name));
    }
    FREE_ALL(changed.data, text);
    return code;
}

int reference_layout_write(const char *const *folders, size_t folder_count, const char *out,
                           struct reference_layout *layout) {
    struct items items = {NULL, 0};
    struct parsed parsed = {0};
    int code = 0, is_incomplete = 0;
    for (size_t i = 0; i < folder_count && !code; i++) code = add_folder(&items, folders[i], out, &parsed);
    if (!code) code = check_items(&items);
    for (size_t i = 0; i < items.count && !code; i++)
        if (!i || strcmp(items.items[i].out_folder, items.items[i - 1].out_folder))
            code = check_out_folder(&items.items[i]);
    for (size_t i = 0; i < items.count && !code; i++) {
        code = make_folder(items.items[i].out_folder);
        if (!code) vp_output_clean(items.items[i].out_folder);
        if (!code) code = write_item(&items.items[i], &parsed, layout);
        if (code == EXIT_WORK) {
            is_incomplete = 1;
            code = 0;
        }
    }
    free(parsed.nodes);
    items_free(&items);
    return code ? code : is_incomplete ? EXIT_WORK : 0;
}
void reference_layout_free(struct reference_layout *layout) {
    text_list_free(&layout->written);
    text_list_free(&layout->warnings);
}
