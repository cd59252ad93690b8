/* command_audit.c: checks whether a server counts image tokens by the rule of a model family. The options become a list
 * of sizes with their counts by the rule (audit_prepare). A synthetic picture of each size is sent (audit_measure), and
 * the counts are judged (audit_decide). The verdict and a table are printed as text or JSON. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "base/table.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "measure/provenance.h"
#include "model/image.h"
#include "server/ask.h"
#include "server/checks/audit.h"
#include "server/endpoint.h"
#include "server/request_knobs.h"
#include "tile/family.h"
#include "vlmprof_families.h"
#include "vlmprof_image.h"

static const char QUESTION[] = "What is in this image?";
enum { ASKED_WITHOUT = 4 };

static const struct option_spec AUDIT_OPTIONS[] = {
    OPTION_GROUP("the server"),
    OPTION_ENDPOINT,
    OPTION_ENDPOINT_MODEL,
    OPTIONS_OF_CLIENT,
    OPTION_REQUEST_KNOB,
    OPTION_GROUP("the rule"),
    {"family", TEXT, "NAME", NULL, 0, 0, NULL,
     "the model family, or its Hugging Face id; if the server has other limits, pass them as options (--max_pixels N), "
     "as for vlmprof tile (default: guessed from the model's name on the server)"},
    OPTION_GROUP("the images"),
    {"images", COUNT, "N", "24", CORNERS_LEAST, CORNERS_MOST, NULL,
     "number of image sizes to send, 12 to 1000; they are chosen at the rule's edge cases"},
    {"image_pixels", COUNT, "N", "4194304", 16384, VP_IMAGE_PIXELS_MAX, NULL, "maximum number of pixels per image"},
    {"sizes", TEXTS, "WxH,...", NULL, 0, 0, NULL, "send these sizes instead", .excludes = "images image_pixels"},
    {"repeat", COUNT, "N", "1", 1, 1000, NULL,
     "send images of each size N times; a server that drops some of them counts fewer tokens in some requests"},
    OPTION_GROUP("output"),
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* A size, and the server's counts for an image of it. */
struct asked {
    struct corner corner;
    vp_vision_count without;            /* the count by the rule without the knobs */
    int is_counted, is_counted_without; /* flags: usage and usage_without are set */
    vp_chat_usage usage, usage_without;
    char *refusal; /* the server's error text; NULL if it answered */
    int32_t requests, fewer; int64_t least; /* with the knobs; of them with fewer prompt tokens; the fewest */
};
/* The quantity that is judged. MEASURE_PROMPT: prompt tokens minus those of the text, compared with all tokens of the
 * rule. MEASURE_IMAGE and MEASURE_FEATURES: image tokens in usage, compared with all tokens of the rule or only its
 * feature tokens. */
enum measure { MEASURE_PROMPT, MEASURE_IMAGE, MEASURE_FEATURES, MEASURES };
static const char *const MEASURE_WORDS[MEASURES] = {
    "prompt_tokens with the image minus prompt_tokens without it", "image_tokens in usage",
    "image_tokens in usage, compared with the rule's feature tokens, without separators and markers"};

struct audit {
    struct endpoint endpoint;
    struct request_knobs knobs;
    vp_chat_knob *setting;             /* [knobs.count] */
    struct audit_rule *rule, *without; /* the rule with and without the knobs */
    struct asked *asked; size_t count, done; /* done: number of sizes sent */
    int64_t text_tokens;
    size_t refused;
    struct audit_size *sizes; size_t size_count; /* the judged sizes: those that were counted */
    size_t *size_of;                             /* [count] index in `sizes` */
    enum measure by;
    struct audit_verdict verdict;
    struct text_list words, notes, refusals;
    struct text_list dropped; /* sizes whose requests differ in their tokens */
};

/* ---- sizes and rules */
static int add_sizes(const struct options *options, struct audit *audit) {
    const struct option_value *sizes = opt(options, "sizes");
    audit->asked = zeroed(sizes->count + 1, sizeof *audit->asked);
    for (size_t i = 0; i < sizes->count; i++) {
        struct corner *corner = &audit->asked[i].corner;
        const char *text = sizes->items[i];
        vp_error error = {VP_OK, -1, "", ""};
        int64_t width = 0, height = 0;
        if (!can_parse_size(text, &width, &height))
            return complain(EXIT_USAGE,
                            "--sizes: \"%.60s\" is not an image size; expected WIDTHxHEIGHT in pixels, like 640x480",
                            text);
        if (!has_image_size(width, height))
            return complain(EXIT_USAGE, "--sizes: %s: an image must have 1 to %d pixels", text, VP_IMAGE_PIXELS_MAX);
        *corner = (struct corner){(int32_t)width, (int32_t)height, {0, 0, 0, 0, 0, 0, 0, 0, 0}, "given"};
        vp_result result = audit_count(audit->rule, corner->width_px, corner->height_px, &corner->count, &error);
        if (result != VP_OK) return complain_result(EXIT_USAGE, "--sizes", result, &error);
    }
    audit->count = sizes->count;
    return 0;
}
static int add_corners(const struct options *options, struct audit *audit) {
    const size_t most = (size_t)number_of(options, "images");
    struct corner *corners = zeroed(most, sizeof *corners);
    audit->count = corners_of(&audit->rule->family, number_of(options, "image_pixels"), most, corners, &audit->notes);
    audit->asked = zeroed(audit->count + 1, sizeof *audit->asked);
    for (size_t i = 0; i < audit->count; i++) audit->asked[i].corner = corners[i];
    free(corners);
    if (audit->count) return 0;
    return complain(EXIT_INPUT, "%s does not accept such small images", audit->rule->family.preset->name);
}
/* If the options set a key to exactly a knob's value, they describe the knob: without the knob, the published value
 * applies. */
static void split_rules(struct audit *audit) {
    struct audit_rule *published = resize(NULL, 1, sizeof *published);
    const vp_family_preset *preset = audit->rule->family.preset;
    if (memcmp(audit->rule->family.value, audit->without->family.value, sizeof audit->rule->family.value) == 0) {
        vp_family_default(preset, &published->family);
        published->is_low_detail = 0;
        for (size_t i = 0; i < audit->knobs.count; i++) audit_set_knob(published, &audit->setting[i], NULL);
        for (int i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
            const vp_family_key *key = &preset->keys[i];
            if (key->name && key->slot != VP_SLOT_RATIO && published->family.value[key->slot] != (int64_t)key->fallback)
                vp_family_set_number(&audit->without->family, key->name, key->fallback, NULL);
        }
    }
    free(published);
}
/* Connects. Returns 0 or an exit code. */
static int open_server(const struct options *options, struct audit *audit) {
    int code = endpoint_open(endpoint_settings_of(options), text_of(options, "endpoint"),
                             text_of(options, "endpoint_model"), &audit->endpoint);
    return code ? code : endpoint_choose_model(&audit->endpoint);
}
/* Takes the family of --family, or that of the server's model. Returns 0 or an exit code. */
static int find_family(const struct options *options, struct audit *audit) {
    char *name = NULL;
    int code;
    audit->rule = zeroed(1, sizeof *audit->rule);
    audit->without = zeroed(1, sizeof *audit->without);
    if (text_of(options, "family")) return family_by_name("family", text_of(options, "family"), &audit->rule->family);
    if ((code = open_server(options, audit)) != 0) return code;
    const vp_family_preset *family = endpoint_family(&audit->endpoint, &name);
    if (!family)
        return complain(EXIT_USAGE, "audit needs --family NAME: no family matches the model's name %.200s; vlmprof "
                        "tile --list_families lists all", audit->endpoint.model);
    vp_family_default(family, &audit->rule->family);
    text_list_add(&audit->notes, "the family %s was guessed from the model's name %.300s; --family sets another",
                  family->name, name);
    print_note("vlmprof: family: %s, guessed from the model's name %.300s\n", family->name, name);
    free(name);
    return 0;
}
/* Makes the rule from the options, and the same rule with the knobs applied. Returns 0 or an exit code. */
static int make_rules(const struct options *options, struct audit *audit) {
    int code;
    if ((code = find_family(options, audit)) != 0
        || (code = family_set_keys(family_keys_of(options), &audit->rule->family, 1)) != 0
        || (code = knobs_add_all(opt(options, "request_knob"), &audit->knobs)) != 0)
        return code;
    if (knobs_combinations(&audit->knobs) > 1)
        return complain(EXIT_USAGE, "--request_knob: audit takes one value per knob");
    *audit->without = *audit->rule;
    audit->setting = resize(NULL, audit->knobs.count + 1, sizeof *audit->setting);
    knobs_combination(&audit->knobs, 0, audit->setting);
    for (size_t i = 0; i < audit->knobs.count; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        const vp_result result = audit_set_knob(audit->rule, &audit->setting[i], &error);
        if (result == VP_ERR_NOT_FOUND)
            text_list_add(&audit->notes, "%s: %s's rule has no such knob", audit->setting[i].path,
                          audit->rule->family.preset->name);
        else if (result != VP_OK) return complain_result(EXIT_USAGE, "--request_knob", result, &error);
    }
    split_rules(audit);
    return 0;
}
/* Prepares and checks everything before anything is sent to the server. Returns 0 or an exit code. */
static int audit_prepare(const struct options *options, struct audit *audit) {
    int code;
    if ((code = make_rules(options, audit)) != 0
        || (code = (is_given(options, "sizes") ? add_sizes : add_corners)(options, audit)) != 0)
        return code;
    for (size_t i = 0; i < audit->count; i++) {
        struct asked *asked = &audit->asked[i];
        const int32_t width = asked->corner.width_px, height = asked->corner.height_px;
        audit_count(audit->rule, width, height, &asked->corner.count, NULL);
        if (audit_count(audit->without, width, height, &asked->without, NULL) != VP_OK)
            asked->without.total_tokens = -1;
    }
    return audit->endpoint.server ? 0 : open_server(options, audit);
}

/* ---- requests */
struct request { const struct picture *pictures; int32_t picture_count; const char *text; int with_knobs; };
struct answer { vp_chat_usage usage; int status; };
/* Requests one token. Returns 0, or an exit code with a reason; answer->status is the HTTP status. */
static int ask_usage(struct audit *audit, const struct request *request, struct answer *answer, char *reason,
                     size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    struct question question = {0};
    vp_exchange exchange;
    int code = 0;
    question.pictures = request->pictures;
    question.picture_count = request->picture_count;
    question.request.text = request->text;
    question.request.max_tokens = 1;
    question.request.no_stream = 1;
    question.request.knobs = audit->setting;
    question.request.knob_count = request->with_knobs ? audit->knobs.count : 0;
    const vp_result result = ask_begin(&audit->endpoint, &question, &exchange, &error);
    if (result != VP_OK) {
        char line[LINE_BYTES];
        error_line(line, sizeof line, result, &error);
        snprintf(reason, capacity, "--request_knob: %.700s", line);
        code = result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_USAGE;
    } else code = endpoint_try(&audit->endpoint, &exchange, reason, capacity);
    answer->usage = exchange.reply.usage;
    answer->status = exchange.http_status;
    ask_free(&exchange);
    return code;
}
/* Returns 1 if the server rejected this request but may accept others. */
static int is_refusal(int code, int status) {
    return code == EXIT_DEVICE && status >= 400 && status != 401 && status != 403 && status != 404 && status != 429
           && status != 503;
}
/* Keeps the count with the most tokens of a size's requests, and counts those with fewer. */
static void keep_usage(struct asked *asked, const vp_chat_usage *usage) {
    const int64_t tokens = usage->prompt_tokens, most = asked->usage.prompt_tokens;
    if (!asked->requests || tokens < asked->least) asked->least = tokens;
    if (asked->requests && tokens < most) asked->fewer++;
    if (asked->requests && tokens > most) asked->fewer = asked->requests;
    if (!asked->requests++ || tokens > most) asked->usage = *usage;
    asked->is_counted = 1;
}
/* Sends an image of a size. Returns 0, also if the server rejects it, or an exit code after a complaint. */
static int ask_size(struct audit *audit, struct asked *asked, int with_knobs) {
    const uint64_t number = ask_mark();
    char reason[LINE_BYTES];
    struct picture picture = {0};
    struct answer answer;
    scene_draw(asked->corner.width_px, asked->corner.height_px, number, &picture);
    int code = ask_usage(audit, &(struct request){&picture, 1, QUESTION, with_knobs}, &answer, reason, sizeof reason);
    picture_free(&picture);
    if (!code && with_knobs) keep_usage(asked, &answer.usage);
    else if (!code) {
        asked->usage_without = answer.usage;
        asked->is_counted_without = 1;
    } else if (is_refusal(code, answer.status) && with_knobs) {
        free(asked->refusal);
        asked->refusal = copy_text(reason, strlen(reason));
        text_list_add(&audit->refusals, "%dx%d: %s", asked->corner.width_px, asked->corner.height_px, reason);
        audit->refused++;
        code = 0;
    } else if (is_refusal(code, answer.status)) code = 0; /* its counts without the knobs stay unknown */
    else if (code != EXIT_INTERRUPTED) complain(code, "%s", reason);
    return code;
}
static int64_t rule_effect(const struct asked *asked) {
    return llabs(asked->corner.count.total_tokens - asked->without.total_tokens);
}
/* Sends the sizes for which the knobs matter most again, without the knobs. Returns 0 or an exit code. */
static int measure_without(struct audit *audit) {
    int code = 0;
    for (int turn = 0; turn < ASKED_WITHOUT && audit->knobs.count && !code && !interrupted; turn++) {
        struct asked *best = NULL;
        for (size_t i = 0; i < audit->done; i++) {
            struct asked *asked = &audit->asked[i];
            if (!asked->is_counted || asked->is_counted_without || asked->without.total_tokens < 0) continue;
            if (!best || rule_effect(asked) > rule_effect(best)) best = asked;
        }
        if (!best) break;
        show_progress("without the knobs: %d of %d", turn + 1, ASKED_WITHOUT);
        code = ask_size(audit, best, 0);
    }
    return code;
}
/* Sends only the text, then each size, `repeats` times. After Ctrl-C the counts so far are kept. Returns 0 or an exit
 * code. */
static int audit_measure(struct audit *audit, int64_t repeats) {
    char reason[LINE_BYTES];
    struct answer answer;
    end_in_order();
    show_progress("text only");
    int code = ask_usage(audit, &(struct request){NULL, 0, QUESTION, 0}, &answer, reason, sizeof reason);
    if (code) {
        close_progress();
        return code == EXIT_INTERRUPTED ? code : complain(code, "%s", reason);
    }
    audit->text_tokens = answer.usage.prompt_tokens;
    for (; audit->done < audit->count && !code && !interrupted; audit->done += !code) {
        struct asked *asked = &audit->asked[audit->done];
        show_progress("image %zu of %zu: %dx%d", audit->done + 1, audit->count, asked->corner.width_px,
                      asked->corner.height_px);
        code = ask_size(audit, asked, 1);
    }
    for (int64_t round = 1; round < repeats && !code && !interrupted; round++)
        for (size_t i = 0; i < audit->done && !code && !interrupted; i++) {
            if (!audit->asked[i].is_counted) continue;
            show_progress("round %lld of %lld, image %zu of %zu", (long long)round + 1, (long long)repeats, i + 1,
                          audit->done);
            code = ask_size(audit, &audit->asked[i], 1);
        }
    if (!code) code = measure_without(audit);
    close_progress();
    return interrupted ? EXIT_INTERRUPTED : code;
}

/* ---- the verdict */
/* The server's count for a measure; -1 if it is not reported. */
static int64_t measured_by(const struct audit *audit, enum measure by, const vp_chat_usage *usage) {
    if (by != MEASURE_PROMPT) return usage->image_tokens;
    return usage->prompt_tokens >= 0 && audit->text_tokens >= 0 ? usage->prompt_tokens - audit->text_tokens : -1;
}
static int is_known(const struct audit *audit, enum measure by, const vp_chat_usage *usage) {
    return by != MEASURE_PROMPT ? usage->image_tokens >= 0 : usage->prompt_tokens >= 0 && audit->text_tokens >= 0;
}
static int64_t ruled_by(enum measure by, const vp_vision_count *count) {
    return by == MEASURE_FEATURES ? count->feature_tokens : count->total_tokens;
}
/* Judges by a measure. Returns 0 if the server does not report it for all sizes, otherwise 1. */
static int judge_by(struct audit *audit, enum measure by) {
    audit->size_count = 0;
    audit->by = by;
    for (size_t i = 0; i < audit->done; i++) {
        const struct asked *asked = &audit->asked[i];
        struct audit_size *size = &audit->sizes[audit->size_count];
        if (!asked->is_counted) continue;
        if (!is_known(audit, by, &asked->usage)) return 0;
        audit->size_of[i] = audit->size_count++;
        *size = (struct audit_size){asked->corner.width_px, asked->corner.height_px,
                                    ruled_by(by, &asked->corner.count), measured_by(audit, by, &asked->usage),
                                    0, 0, 0};
        if (!asked->is_counted_without || !is_known(audit, by, &asked->usage_without)) continue;
        size->has_without = 1;
        size->by_rule_without = ruled_by(by, &asked->without);
        size->measured_without = measured_by(audit, by, &asked->usage_without);
    }
    if (audit->size_count) audit_judge(audit->rule, audit->sizes, audit->size_count, &audit->verdict);
    return audit->size_count > 0;
}
/* Equal sizes must have the same number of tokens in all their requests. */
static void judge_repeats(struct audit *audit) {
    const struct asked *first = NULL;
    size_t requests = 0, fewer = 0;
    for (size_t i = 0; i < audit->done; i++) {
        const struct asked *asked = &audit->asked[i];
        requests += (size_t)asked->requests;
        fewer += (size_t)asked->fewer;
        if (asked->fewer && !first) first = asked;
    }
    if (first)
        text_list_add(&audit->dropped, "image sometimes dropped: %zu of %zu requests have fewer prompt tokens than "
                      "others of the same size; the first is %dx%d: %lld instead of %lld", fewer, requests,
                      first->corner.width_px, first->corner.height_px, (long long)first->least,
                      (long long)first->usage.prompt_tokens);
}
/* Judges by prompt tokens. If they differ from the rule but the image tokens in usage agree, judges by those. Returns
 * 0, or an exit code if nothing was counted. */
static int audit_decide(struct audit *audit) {
    int is_judged, prompt_is_judged;
    audit->sizes = resize(NULL, audit->done + 1, sizeof *audit->sizes);
    audit->size_of = zeroed(audit->done + 1, sizeof *audit->size_of);
    is_judged = prompt_is_judged = judge_by(audit, MEASURE_PROMPT);
    for (int by = MEASURE_IMAGE; by < MEASURES && !(is_judged && audit->verdict.is_equal); by++)
        is_judged = judge_by(audit, (enum measure)by);
    if (prompt_is_judged && !(is_judged && audit->verdict.is_equal)) is_judged = judge_by(audit, MEASURE_PROMPT);
    else if (!is_judged) is_judged = judge_by(audit, MEASURE_IMAGE);
    if (is_judged) {
        judge_repeats(audit);
        audit_words(audit->rule, audit->sizes, audit->size_count, &audit->verdict, &audit->words);
        if (audit->refused)
            text_list_add(&audit->words, "the server refused %zu of %zu sizes", audit->refused, audit->done);
        return 0;
    }
    if (audit->refused) return complain(EXIT_DEVICE, "the server refused every image: %s", audit->refusals.items[0]);
    return complain(EXIT_INPUT, "%s: its answers report no usage.prompt_tokens, so there is nothing to compare",
                    audit->endpoint.url);
}

/* ---- as text */
enum { WITH_IMAGE = 1, WITH_CACHED = 2, WITH_KNOBS = 4, WITH_REPEATS = 8 };
#define AUDIT_CELL(name, value) \
    static void name(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) { \
        static const struct audit_size none; \
        const struct asked *asked = row; \
        const struct audit *audit = context; \
        const size_t at = audit->size_of[asked - audit->asked]; \
        const struct audit_size *size = asked->is_counted ? &audit->sizes[at] : &none; \
        (void)own, (void)size; \
        *cell = value; \
    }
AUDIT_CELL(cell_by_rule, KEY(cell->key, ruled_by(audit->by, &asked->corner.count)))
AUDIT_CELL(cell_measured, KEY_KNOWN(cell->key, asked->is_counted, size->measured))
AUDIT_CELL(cell_counted, asked->is_counted ? KEY(cell->key, size->measured) : KEY(cell->key, "refused"))
AUDIT_CELL(cell_difference, KEY_KNOWN(cell->key, asked->is_counted, size->measured - size->by_rule))
AUDIT_CELL(cell_rule_without, KEY_KNOWN(cell->key, size->has_without, size->by_rule_without))
AUDIT_CELL(cell_measured_without, KEY_KNOWN(cell->key, size->has_without, size->measured_without))
#define ASKED(member) CELL(struct asked, member)
static const struct table_column AUDIT_COLUMNS[] = {
    {ASKED(corner.width_px), "width"}, {ASKED(corner.height_px), "height"},
    {CELL_PAIR(struct asked, corner.width_px, corner.height_px), NULL, "size", .format = "x"},
    {ASKED(corner.why), "why", "why"}, {ASKED(corner.count.rows), "rows", .rules = COLUMN_FROM_0},
    {ASKED(corner.count.cols), "cols", .rules = COLUMN_FROM_0},
    {CELL_PAIR(struct asked, corner.count.rows, corner.count.cols), NULL, "grid", .format = "x",
     .rules = COLUMN_FROM_1},
    {CELL_MADE(cell_by_rule), "image_tokens_by_rule", "by rule"}, {CELL_MADE(cell_measured), "image_tokens_measured"},
    {CELL_MADE(cell_counted), NULL, "counted"},
    {CELL_MADE(cell_difference), "difference", "difference", .format = "%+.0f"},
    {ASKED(requests), "num_requests"}, {ASKED(fewer), "num_fewer"}, {ASKED(fewer), NULL, "fewer", .in = WITH_REPEATS},
    {ASKED(usage.image_tokens), NULL, "image_tokens", .rules = COLUMN_FROM_0, .in = WITH_IMAGE},
    {ASKED(usage.cached_tokens), NULL, "cached", .rules = COLUMN_FROM_0, .in = WITH_CACHED},
    {ASKED(without.total_tokens), NULL, "rule without knobs", .rules = COLUMN_FROM_0, .in = WITH_KNOBS},
    {CELL_MADE(cell_rule_without), "image_tokens_by_rule_without_knobs"},
    {CELL_MADE(cell_measured_without), "image_tokens_measured_without_knobs"},
    {CELL_MADE(cell_measured_without), NULL, "counted without", .in = WITH_KNOBS}};
/* Appends the keys of the rule as " KEY=VALUE". */
static void add_keys(const struct audit_rule *rule, struct text_buffer *line) {
    const vp_family *family = &rule->family;
    for (int i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        const vp_family_key *key = &family->preset->keys[i];
        char text[96];
        if (!key->name) continue;
        if (key->slot == VP_SLOT_RATIO) snprintf(text, sizeof text, " %s=%g", key->name, family->ratio);
        else snprintf(text, sizeof text, " %s=%lld", key->name, (long long)family->value[key->slot]);
        text_add_string(line, text);
    }
    if (rule->is_low_detail) text_add_string(line, " detail=low");
}
static int print_audit(const struct audit *audit) {
    struct document document = {NULL, 0, NULL};
    struct text_buffer line = {NULL, 0, 0};
    struct table table = TABLE(AUDIT_COLUMNS, audit->asked, audit->done, audit, audit->knobs.count ? WITH_KNOBS : 0);
    for (size_t i = 0; i < audit->done; i++) {
        const struct asked *asked = &audit->asked[i];
        if (!asked->is_counted) continue;
        if (asked->usage.image_tokens >= 0 && asked->usage.image_tokens != audit->sizes[audit->size_of[i]].measured)
            table.has |= WITH_IMAGE;
        if (asked->usage.cached_tokens > 0) table.has |= WITH_CACHED;
        if (asked->requests > 1) table.has |= WITH_REPEATS;
    }
    for (size_t i = 0; i < audit->dropped.count; i++)
        document_text(&document, BLOCK_LINE, "%s%s", i ? "" : "verdict: different: ", audit->dropped.items[i]);
    for (size_t i = 0; i < audit->words.count; i++)
        document_text(&document, BLOCK_LINE, "%s%s",
                      i || audit->dropped.count ? "" : "verdict: ", audit->words.items[i]);
    if (audit->done < audit->count)
        document_text(&document, BLOCK_LINE, "stopped early: %zu of %zu sizes were sent", audit->done, audit->count);
    add_keys(audit->rule, &line);
    document_text(&document, BLOCK_LINE, "server: %s, model %s", audit->endpoint.url, audit->endpoint.model);
    document_text(&document, BLOCK_LINE, "rule: %s (%s)%s", audit->rule->family.preset->name,
                  vp_certainty_text(audit->rule->family.preset->certainty), line.bytes ? line.data : "");
    line.bytes = 0;
    for (size_t i = 0; i < audit->knobs.count; i++) /* with their paths, on which their effect depends */
        text_add_format(&line, "%s%s=%s", i ? " " : "", audit->setting[i].path, audit->setting[i].value);
    if (line.bytes) document_text(&document, BLOCK_LINE, "knobs of each request: %s", line.data);
    document_text(&document, BLOCK_LINE, "counted: %s (%lld)", MEASURE_WORDS[audit->by], (long long)audit->text_tokens);
    document_add_table(&document, &table);
    document_list(&document, "Refused by the server", &audit->refusals);
    document_list(&document, "Notes", &audit->notes);
    int code = print_document(&document);
    free(line.data);
    return code;
}

/* ---- as JSON */
static void put_verdict(vp_json_writer *writer, const struct audit *audit) {
    const struct audit_verdict *verdict = &audit->verdict;
    PUT(writer, KEY("verdict", verdict->is_equal && !audit->dropped.count ? "equal" : "different"),
        KEY("cause", !verdict->is_equal ? audit_cause_name(verdict->cause)
                     : audit->dropped.count ? audit_cause_name(AUDIT_DROPPED) : NULL), KEY("offset", verdict->offset),
        KEY("different_sizes", verdict->different));
    const struct audit_size *first = &audit->sizes[verdict->first];
    char text[40];
    snprintf(text, sizeof text, "%dx%d", first->width_px, first->height_px);
    PUT(writer, KEY("first_difference", verdict->is_equal ? NULL : text), KEY_ARRAY("fits"));
    for (size_t i = 0; i < verdict->fit_count; i++) {
        PUT(writer, KEY_OBJECT(NULL), KEY("key", verdict->fits[i].key), KEY("value", verdict->fits[i].value),
            KEY("lowest", verdict->fits[i].lowest),
            KEY_KNOWN("highest", verdict->fits[i].highest < AUDIT_UNBOUNDED, verdict->fits[i].highest),
            KEY("offset", verdict->fit_offset), END_OBJECT);
    }
    PUT(writer, END_ARRAY, KEY_ARRAY("families"));
    for (size_t i = 0; i < verdict->family_count; i++) vp_json_string(writer, verdict->families[i]->name);
    PUT(writer, END_ARRAY, KEY_TEXTS("words", &audit->words));
}
static void put_asked(vp_json_writer *writer, const struct audit *audit, const struct asked *asked) {
    const struct table table = TABLE(AUDIT_COLUMNS, asked, 1, audit, 0);
    vp_json_begin_object(writer);
    table_put_row(writer, &table, 0);
    if (asked->is_counted) put_usage(writer, &asked->usage); else put_null(writer, "usage");
    if (asked->is_counted_without) {
        PUT(writer, KEY_OBJECT("without_knobs"));
        put_usage(writer, &asked->usage_without);
        vp_json_end_object(writer);
    } else put_null(writer, "without_knobs");
    PUT(writer, KEY("refusal", asked->refusal), END_OBJECT);
}
static void put_rule(vp_json_writer *writer, const struct audit_rule *rule) {
    const vp_family *family = &rule->family;
    PUT(writer, KEY("family", family->preset->name), KEY("certainty", vp_certainty_text(family->preset->certainty)),
        KEY_OBJECT("keys"));
    for (int i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        const vp_family_key *key = &family->preset->keys[i];
        if (key->name && key->slot == VP_SLOT_RATIO) put_double(writer, key->name, family->ratio);
        else if (key->name) put_int(writer, key->name, family->value[key->slot]);
    }
    vp_json_end_object(writer);
}
static void print_audit_json(const struct options *options, const struct audit *audit) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-audit-1"));
    put_verdict(&writer, audit);
    PUT(&writer, KEY("endpoint", audit->endpoint.url), KEY("endpoint_model", audit->endpoint.model),
        KEY("api", vp_chat_api_name(audit->endpoint.api)));
    put_rule(&writer, audit->rule);
    put_knobs(&writer, audit->setting, audit->knobs.count);
    PUT(&writer, KEY("counted", MEASURE_WORDS[audit->by]),
        KEY_KNOWN("text_tokens", audit->text_tokens >= 0, audit->text_tokens), KEY("sizes_planned", audit->count),
        KEY("sizes_refused", audit->refused), KEY_ARRAY("sizes"));
    for (size_t i = 0; i < audit->done; i++) put_asked(&writer, audit, &audit->asked[i]);
    PUT(&writer, END_ARRAY);
    PUT(&writer, KEY_TEXTS("together_words", &audit->dropped));
    PUT(&writer, KEY_TEXTS("notes", &audit->notes), KEY_TEXTS("warnings", &audit->endpoint.warnings),
        KEY_OBJECT("provenance"));
    put_provenance(&writer, options, NULL, NULL);
    PUT(&writer, KEY("client", vp_server_library(audit->endpoint.server)), END_OBJECT);
    put_options(&writer, "config", options);
    vp_json_end_object(&writer);
    json_end(&writer); /* main checks stdout */
}

static void audit_free(struct audit *audit) {
    for (size_t i = 0; i < audit->count; i++) free(audit->asked[i].refusal);
    FREE_ALL(audit->asked, audit->rule, audit->without, audit->setting, audit->sizes, audit->size_of);
    knobs_free(&audit->knobs);
    text_list_free(&audit->words);
    text_list_free(&audit->dropped);
    text_list_free(&audit->notes);
    text_list_free(&audit->refusals);
    endpoint_close(&audit->endpoint);
}
static int run_command(const struct options *options) {
    struct audit audit = {0};
    int code, stopped;
    if ((code = audit_prepare(options, &audit)) == 0) {
        for (size_t i = 0; i < audit.endpoint.warnings.count; i++) complain(0, "%s", audit.endpoint.warnings.items[i]);
        stopped = audit_measure(&audit, number_of(options, "repeat"));
        /* an early stop must not hide counts; if there are none, its exit code and message are enough */
        code = stopped && audit.done == audit.refused ? stopped : audit_decide(&audit);
        if (!code) {
            if (is_given(options, "json")) print_audit_json(options, &audit); else code = print_audit(&audit);
            const int is_as_by_rule = audit.verdict.is_equal && !audit.refused && !audit.dropped.count;
            if (!code) code = stopped ? stopped : is_as_by_rule ? 0 : EXIT_WORK;
        }
        if (interrupted)
            print_note("vlmprof: interrupted: %zu of %zu sizes were counted and nothing was saved; run the same "
                       "command again\n", audit.done, audit.count);
    }
    audit_free(&audit);
    return code;
}

const struct command command_audit = {
    "audit", "--endpoint URL [--endpoint_model NAME] [--family NAME]",
    "check that a server counts image tokens by its model's rule and obeys a request's knobs; exit 1 if not",
    "vlmprof audit --endpoint http://127.0.0.1:8000 --endpoint_model qwen --family qwen2_vl_hf\n"
    "  vlmprof audit --endpoint http://127.0.0.1:8000 --endpoint_model qwen --family qwen2_vl_hf \\\n"
    "      --request_knob mm_processor_kwargs.max_pixels=501760",
    0, COMMAND_OPTIONS(AUDIT_OPTIONS), "family", run_command};
