/* flame_data.c: the data that the flame chart's script draws, as JSON. Launches that differ only in their times are one
 * "call", so that a decode step takes only a few kB. */
#include "page/flame.h"

#include "page/page.h"

const char *const FLAME_KIND_NAMES[FLAME_KINDS] = {
    "matrix products",    "attention", "experts", "norms", "routing, sampling", "element by element, others", "host",
    "copies, conversions"};

int flame_kind(const char *name) {
    static const struct { const char *word; int kind; } words[] = { /* the first one that is in the name */
        {"copy", FLAME_COPY},        {"convert", FLAME_COPY},     {"gather", FLAME_COPY},     {"scatter", FLAME_COPY},
        {"atten", FLAME_ATTENTION},  {"softmax", FLAME_ATTENTION}, {"norm", FLAME_NORM},      {"router", FLAME_ROUTING},
        {"moe_lists", FLAME_ROUTING}, {"moe_tiles", FLAME_ROUTING}, {"argmax", FLAME_ROUTING}, {"pick", FLAME_ROUTING},
        {"advance", FLAME_ROUTING},  {"grouped", FLAME_EXPERTS},  {"expert", FLAME_EXPERTS},
        {"gate_up", FLAME_EXPERTS},
        {"down", FLAME_EXPERTS},     {"gemm", FLAME_PRODUCT},     {"gemv", FLAME_PRODUCT},    {"qkv", FLAME_PRODUCT},
        {"decode_out", FLAME_PRODUCT}, {"decode_head", FLAME_PRODUCT}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) if (strstr(name, words[i].word)) return words[i].kind;
    return FLAME_OTHER;
}

/* Writes a JSON string within a script. Names are the engine's own, but nothing in them may end the script. */
static void data_text(struct text_buffer *out, const char *text) {
    text_add_string(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\' || *text == '<' || (unsigned char)*text < 32)
            page_add(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else text_add(out, text, 1);
    }
    text_add_string(out, "\"");
}
static void data_texts(struct text_buffer *out, const struct text_list *texts) {
    text_add_string(out, "[");
    for (size_t i = 0; i < texts->count; i++) {
        if (i) text_add_string(out, ",");
        data_text(out, texts->items[i]);
    }
    text_add_string(out, "]");
}
static size_t text_at(struct text_list *texts, const char *text) {
    size_t i = 0;
    while (i < texts->count && strcmp(texts->items[i], text)) i++;
    if (i == texts->count) text_list_copy(texts, text);
    return i;
}

/* ---- calls: launches that differ only in their times */
struct calls {
    const vp_launch **items;
    size_t count;
    size_t *places, place_count; /* a hash table of 1 + index; 0 if free. A power of two, at least twice the count */
};
static uint64_t call_hash(const vp_launch *launch) {
    uint64_t hash = hash_number(hash_number(hash_text(HASH_START, launch->name), launch->part), (int64_t)launch->flops);
    for (int i = 0; i < launch->dimensions; i++) hash = hash_number(hash, launch->shape[i]);
    return hash_number(hash, (int64_t)launch->bytes);
}
static int is_same_call(const vp_launch *a, const vp_launch *b) {
    return !strcmp(a->name, b->name) && a->part == b->part && a->dimensions == b->dimensions && a->flops == b->flops
           && a->bytes == b->bytes && !memcmp(a->shape, b->shape, (size_t)a->dimensions * sizeof *a->shape);
}
/* The slot of a call in the hash table: its own, or the free one that it would take. */
static size_t call_place(const struct calls *calls, const vp_launch *launch) {
    size_t place = (size_t)call_hash(launch) & (calls->place_count - 1);
    while (calls->places[place] && !is_same_call(calls->items[calls->places[place] - 1], launch))
        place = (place + 1) & (calls->place_count - 1);
    return place;
}
static size_t call_at(struct calls *calls, const vp_launch *launch) {
    if (2 * (calls->count + 1) > calls->place_count) {
        calls->place_count = calls->place_count ? 2 * calls->place_count : 256;
        free(calls->places);
        calls->places = zeroed(calls->place_count, sizeof *calls->places);
        for (size_t i = 0; i < calls->count; i++) calls->places[call_place(calls, calls->items[i])] = i + 1;
    }
    size_t place = call_place(calls, launch);
    if (calls->places[place]) return calls->places[place] - 1;
    calls->items = grown(calls->items, calls->count, sizeof *calls->items);
    calls->items[calls->count] = launch;
    calls->places[place] = ++calls->count;
    return calls->count - 1;
}
static void calls_write(const struct calls *calls, struct text_buffer *out) {
    struct text_list names = {NULL, 0}, parts = {NULL, 0};
    text_add_string(out, ",\n\"calls\":[");
    for (size_t i = 0; i < calls->count; i++) {
        const vp_launch *call = calls->items[i];
        page_add(out, "%s[%zu,%zu,%d,[", i ? ",\n" : "", text_at(&names, call->name),
                 text_at(&parts, vp_part_name((vp_part)call->part)), flame_kind(call->name));
        for (int k = 0; k < call->dimensions; k++) page_add(out, "%s%d", k ? "," : "", call->shape[k]);
        page_add(out, "],%llu,%llu]", (unsigned long long)call->flops, (unsigned long long)call->bytes);
    }
    text_add_string(out, "],\n\"names\":");
    data_texts(out, &names);
    text_add_string(out, ",\n\"parts\":");
    data_texts(out, &parts);
    text_list_free(&names);
    text_list_free(&parts);
}

/* ---- stages, passes and decode steps */
struct span_ns { int64_t begin_ns, ns; };
/* When an operation started, in ns from the start of the request. */
static struct span_ns time_of(const struct flame *flame, const vp_launch *launch) {
    int64_t engine_ns = flame->request.engine_begin_ns - flame->request.begin_ns;
    struct span_ns span;
    span.begin_ns = engine_ns + (flame->on_device ? launch->begin_ns : launch->host_begin_ns);
    span.ns = flame->on_device ? launch->ns : launch->host_ns;
    return span;
}
/* Adds the stages of the engine and the host's parts, which have no operations, as entries. at[stage] becomes the
 * index. */
static void stages_write(const struct flame *flame, struct text_buffer *out, int at[VP_STAGE_COUNT]) {
    const struct flame_request *request = &flame->request;
    int64_t engine_ns = request->engine_begin_ns - request->begin_ns;
    int count = 0;
    text_add_string(out, ",\n\"stages\":[");
    for (int64_t i = 0; i < request->range_count; i++) {
        const vp_range_record *range = &request->ranges[i];
        if (!strcmp(range->name, "request") || !strcmp(range->name, "engine")) continue; /* consists of later rows */
        text_add_string(out, count++ ? ",[" : "[");
        data_text(out, range->name);
        page_add(out, ",%lld,%lld,1]", (long long)(range->begin_ns - request->begin_ns),
                 (long long)(range->end_ns - range->begin_ns));
    }
    for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        at[stage] = -1;
        if (!request->times->ran[stage]) continue;
        at[stage] = count;
        page_add(out, "%s[\"%s\",%lld,%lld,0]", count++ ? "," : "", vp_stage_name((vp_stage)stage),
                 (long long)(engine_ns + request->times->begin_ns[stage]), (long long)request->times->device_ns[stage]);
    }
    text_add_string(out, "]");
}
/* Returns 1 if a new pass of the image tower begins here. The tower takes the views of an image one at a time, or
 * several at once. */
static int begins_pass(const vp_launch *launch, const vp_launch *before) {
    return launch->stage == VP_STAGE_VIT && launch->part == VP_PART_VIT_EMBED
           && (!before || before->stage != VP_STAGE_VIT || before->part != VP_PART_VIT_EMBED);
}
/* Returns the first launch after `from` that belongs to another stage, pass or decode step. */
static int64_t group_end(const struct flame_request *request, int64_t from) {
    const vp_launch *launches = request->launches;
    int64_t to = from + 1;
    while (to < request->launch_count && launches[to].stage == launches[from].stage
           && launches[to].step == launches[from].step && !begins_pass(&launches[to], &launches[to - 1]))
        to++;
    return to;
}
/* Writes the launches of a group, as one run per block. */
static void runs_write(const struct flame *flame, int64_t from, int64_t to, int stage_at, int group,
                       struct calls *calls, struct text_buffer *out) {
    const vp_launch *launches = flame->request.launches;
    int64_t end_ns = 0;
    for (int64_t i = from; i < to; i++) {
        struct span_ns span = time_of(flame, &launches[i]);
        int is_first = i == from || launches[i].block != launches[i - 1].block;
        if (is_first) {
            page_add(out, "%s[%d,%d,%d,%lld,[", i > from ? "]],\n" : out->bytes ? ",\n" : "", stage_at, group,
                     launches[i].block, (long long)span.begin_ns);
            end_ns = span.begin_ns;
        }
        page_add(out, "%s%zu,%lld,%lld", is_first ? "" : ",", call_at(calls, &launches[i]),
                 (long long)(span.begin_ns - end_ns), (long long)span.ns);
        end_ns = span.begin_ns + span.ns;
    }
    text_add_string(out, "]]");
}
/* The name and the time of a group. A pass lasts from its first operation to its last. A decode step has its own
 * measured time. */
static void group_write(const struct flame *flame, int64_t from, int64_t to, int stage_at, int number, int has_ops,
                        int64_t *step_begin_ns, struct text_buffer *out) {
    const struct flame_request *request = &flame->request;
    const vp_launch *first = &request->launches[from];
    struct span_ns begin = time_of(flame, first), end = time_of(flame, &request->launches[to - 1]);
    int is_step = first->stage == VP_STAGE_DECODE && first->step > 0 && first->step <= request->step_count;
    if (is_step) {
        begin.begin_ns = *step_begin_ns;
        begin.ns = request->step_ns[first->step - 1];
        *step_begin_ns += begin.ns;
    } else begin.ns = end.begin_ns + end.ns - begin.begin_ns;
    page_add(out, "%s[%d,\"%s %d\",%lld,%lld,%d]", out->bytes ? ",\n" : "", stage_at, is_step ? "step" : "pass",
             is_step ? first->step : number, (long long)begin.begin_ns, (long long)begin.ns, has_ops);
}
int64_t flame_data_write(const struct flame *flame, struct text_buffer *out) {
    const struct flame_request *request = &flame->request;
    struct text_buffer groups = {NULL, 0, 0}, runs = {NULL, 0, 0};
    struct calls calls = {0};
    int at[VP_STAGE_COUNT], group_count = 0, passes = 0, stage = -1;
    int64_t left_out = request->lost_launches, to, step_begin_ns;
    size_t stage_from = 0;
    page_add(out, "{\"total\":%lld", (long long)request->total_ns);
    stages_write(flame, out, at);
    step_begin_ns = request->engine_begin_ns - request->begin_ns + request->times->begin_ns[VP_STAGE_DECODE];
    for (int64_t from = 0; from < request->launch_count; from = to) {
        to = group_end(request, from);
        if (request->launches[from].stage != stage) {
            stage = request->launches[from].stage;
            stage_from = runs.bytes;
        }
        int has_ops = runs.bytes - stage_from < FLAME_STAGE_BYTES;
        int is_group = stage == VP_STAGE_VIT || stage == VP_STAGE_DECODE;
        if (at[stage] < 0) has_ops = is_group = 0; /* a launch of a stage without times */
        if (is_group) group_write(flame, from, to, at[stage], ++passes, has_ops, &step_begin_ns, &groups);
        if (has_ops) runs_write(flame, from, to, at[stage], is_group ? group_count : -1, &calls, &runs);
        else left_out += to - from;
        group_count += is_group;
    }
    page_add(out, ",\n\"groups\":[");
    text_add(out, groups.data ? groups.data : "", groups.bytes);
    text_add_string(out, "]");
    calls_write(&calls, out);
    page_add(out, ",\n\"runs\":[");
    text_add(out, runs.data ? runs.data : "", runs.bytes);
    text_add_string(out, "]}");
    FREE_ALL(groups.data, runs.data, calls.items, calls.places);
    return left_out;
}
