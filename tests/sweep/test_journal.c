/* test_journal.c: the lines of a journal when they are read back: heads, samples, points, sessions, timed kernels; torn and damaged lines; a grid that grew; several
 * files. And writing a journal: whole lines, removal of a write that does not fit, locks. */
#define _POSIX_C_SOURCE 200809L
#include "base/console.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/lines.h"
#include "support/room.h"
#include "sweep/journal.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define CONFIG(name, set, k) "{\"file_name\": \"" name "_imgsize\", \"set\": " #set ", \"tier\": \"low\", \"target_vision_tokens\": null, " \
    "\"max_crops\": 3, \"top_k\": " #k ", \"num_active_blocks\": 3, \"active_block_indices\": [0, 2, 5]}"
#define SETS "[{\"task\": \"first\", \"path\": \"a.jsonl\", \"metric\": \"vqa_seed\", \"content_hash\": \"77\", \"max_new_tokens\": 8, \"num_samples\": 5}, " \
    "{\"task\": \"second\", \"path\": \"b.jsonl\", \"metric\": \"anls\", \"content_hash\": \"78\", \"max_new_tokens\": 9, \"num_samples\": 0}]"
#define HEAD_SHAPED(plan, eos, rank, world_size, shape, configs) "{\"schema\": \"vlmprof-journal-2\", \"plan\": \"" plan "\", \"rank\": " rank ", " \
    "\"world_size\": " world_size ", \"model\": \"tiny\", \"synthetic\": true, \"timing\": \"stage\", \"ignore_eos\": " eos ", " \
    "\"num_runs_per_sample\": 3, \"num_total_blocks\": 6, \"bare_every\": 4, " shape "\"options\": {}, \"data\": " SETS ", \"configs\": [" configs "]}\n"
#define HEAD_WITH(plan, eos, rank, world_size, configs) HEAD_SHAPED(plan, eos, rank, world_size, SHAPE("8") ", ", configs)
#define SHAPE(experts) "\"model_shape\": {\"num_experts\": " experts ", \"top_k\": 2, \"d_model\": 64, \"n_heads\": 4, \"n_layers\": 6, \"expert_dim\": 32, " \
    "\"vocab_size\": 100, \"vit_width\": 32, \"vit_layers\": 2}"
#define HEAD_OF(plan, configs) HEAD_WITH(plan, "false", "0", "1", configs)
#define HEAD HEAD_OF("abc", CONFIG("x", 0, 1) ", " CONFIG("y", 0, 2) ", " CONFIG("z", 1, 2))
#define SAMPLE_OF(id, set, prompt) "{\"sample\": " id ", \"set\": " set ", \"prompt\": \"" prompt "\", \"input_text_tokens\": 3, \"metadata\": " \
    "{\"question\": null, \"answers\": null, \"image_id\": null, \"id\": null}}\n"
#define SAMPLE(id) SAMPLE_OF(#id, "0", "p")
#define SESSION(device) "{\"session\": {\"version\": \"0\", \"build\": \"b\", \"host\": \"h\", \"date\": \"d\", \"device\": \"" device "\", " \
    "\"seed\": 1, \"argv\": [], \"stamp_cost_ns\": 3, \"cold\": {}}}\n"
#define KERNELS(config, views, sequence) "{\"kernels\": {\"config\": \"" config "\", \"sample_id\": 1, \"views\": " views ", " \
    "\"total_sequence_length\": " sequence ", \"T_total\": 1.5, \"stages\": {}}}\n"
#define RUN(n) "\"run\": " #n ", \"session\": -1, \"unix_s\": 1, \"total_ns\": 5, \"stamps\": 0, \"stages\": {\"vit\": [1, 1, 1, 1, 1]}, " \
    "\"step_ns\": [], \"tokens\": [1], \"answer\": \"a\", \"ended_by_eos\": false, \"throttled\": false, \"telemetry\": null"
#define NO_SIZES "\"sizes\": {\"tier\": \"low\", \"target_vision_tokens\": null, \"target_crops\": null, \"top_k\": 1, \"num_active_blocks\": 3, " \
    "\"theoretical_num_crops\": null, \"theoretical_tiling\": null, \"theoretical_image_size\": null, \"theoretical_vision_tokens\": null, " \
    "\"actual_num_crops\": null, \"actual_tiling\": null, \"actual_image_size\": null, \"actual_vision_tokens\": null, " \
    "\"input_text_tokens\": 3, \"actual_text_tokens\": 3, \"total_sequence_length\": 4}"
#define DONE(n) "\"done\": " #n ", \"stop\": \"runs\", \"retries\": 0, " NO_SIZES
#define FAILED "\"failed\": \"why\", \"attempts\": 1, \"retries\": 0, " NO_SIZES

static struct journal_index book;
/* reads a text as another journal */
static int read_text(const char *name, const char *text) {
    write_text(in_folder(name), text);
    return HEARD(index_read(&book, in_folder(name), open(in_folder(name), O_RDONLY), 1));
}
static void fresh(void) {
    index_free(&book);
    lines.bytes = 0;
    add(HEAD);
}
static void fresh_case(const char *name) { check_case("%s", name); fresh(); }
static int read_lines(void) { return read_text("journal.jsonl", lines.data); }
/* a line for a point of sample `id`; what: RUN(0), DONE(1) or FAILED */
static long long add_point(const char *config, int id, const char *what, long long prev) {
    return add("{\"config\": \"%s_imgsize\", \"sample_id\": %d, %s, \"prev\": %lld}\n", config, id, what, prev);
}
static int64_t state_of(int id, int config) {
    const struct index_set *set = &book.sets[book.configurations[config].set];
    const struct index_entry *entry = index_find(set, 0, id);
    if (!entry) return -2;
    struct point_line line = index_point(entry, &book.configurations[config]);
    return line.at < 0 ? -1 : line.at * 4 + line.state;
}

static void test_head(void) {
    fresh_case("a head describes the run");
    CHECK_INT(read_lines(), 0);
    CHECK_TEXT(room_said, "");
    CHECK_TEXT(book.plan, "abc");
    CHECK_TEXT(book.head.model, "tiny");
    CHECK_TEXT(book.head.timing, "stage");
    CHECK(book.head.synthetic && !book.head.ignore_eos);
    CHECK(book.head.num_runs_per_sample == 3 && book.head.num_total_blocks == 6 && book.head.bare_every == 4);
    CHECK_INT(book.set_count, 2);
    CHECK_TEXT(book.sets[0].data.task, "first");
    CHECK_TEXT(book.sets[0].data.path, "a.jsonl");
    CHECK_TEXT(book.sets[0].data.metric, "vqa_seed");
    CHECK_TEXT(book.sets[0].data.content_hash, "77");
    CHECK_TEXT(book.sets[1].data.task, "second");
    CHECK_TEXT(book.sets[1].data.content_hash, "78");
    CHECK(book.sets[0].data.max_new_tokens == 8 && book.sets[1].data.max_new_tokens == 9);
    CHECK(book.sets[0].data.num_samples == 5 && book.sets[1].data.num_samples == 0);
    CHECK(book.sets[0].configuration_count == 2 && book.sets[1].configuration_count == 1);
    check_case("... and its configurations, each at its index in the set");
    CHECK_INT(book.configuration_count, 3);
    for (int i = 0; i < 3; i++) {
        const struct knob_value *blocks = &book.configurations[i].knobs.of[KNOB_BLOCKS];
        const struct index_configuration *one = &book.configurations[i];
        CHECK_INT(one->set, i == 2);
        CHECK_INT(one->place, i % 2);
        CHECK_INT(knob_number(&one->knobs, KNOB_TOP_K), i ? 2 : 1);
        CHECK_TEXT(knob_text(&one->knobs, KNOB_TIER), "low");
        CHECK(!knob_is_set(&one->knobs, KNOB_TOKENS) && one->knobs.max_crops == 3 && blocks->number == 3 && blocks->list_count == 3);
        CHECK(blocks->list[0] == 0 && blocks->list[1] == 2 && blocks->list[2] == 5);
        CHECK(one->is_wanted && !one->closed && !one->failed && one->head_file == 0 && one->head_at == 0);
    }
    CHECK_INT(index_configuration_named(&book, "x_imgsize"), 0);
    CHECK_INT(index_configuration_named(&book, "z_imgsize"), 2);
    CHECK_INT(index_configuration_named(&book, "x"), -1);
    CHECK(book.files[0].rank == 0 && book.files[0].world_size == 1 && book.files[0].lines == 1 && !book.files[0].is_finished);
    CHECK(book.files[0].end == (int64_t)lines.bytes && book.files[0].grid != 0);
    index_free(&book);
    CHECK_INT(read_text("ignore", HEAD_WITH("d", "true", "2", "4", "")), 0);
    CHECK(book.head.ignore_eos && book.files[0].rank == 2 && book.files[0].world_size == 4 && book.files[0].grid == 0);
}
#define OLD_HEAD(rank) HEAD_SHAPED("d", "false", rank, "2", "", "")
static void test_shape(void) {
    fresh_case("the model's shape comes from the first head that has it; older heads do not");
    CHECK_INT(read_lines(), 0);
    CHECK(book.model_shape && strstr(book.model_shape, "\"num_experts\": 8,"));
    index_free(&book);
    CHECK_INT(read_text("shapeless", OLD_HEAD("0")), 0);
    CHECK(book.file_count == 1 && book.files[0].lines == 1 && !book.model_shape);
    CHECK_INT(read_text("shaped", HEAD_WITH("d", "false", "1", "2", "")), 0);
    CHECK(book.model_shape && strstr(book.model_shape, "\"vit_layers\": 2}"));
}
static void refuse(const char *text, const char *words) {
    index_free(&book);
    CHECK_INT(read_text("refused", text), EXIT_USAGE);
    check_note(strstr(room_said, words) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\" of %s", words, room_said, text);
}
/* the head with one piece of text replaced */
static const char *edited(const char *from, const char *to) {
    static char text[4096];
    const char *head = HEAD, *at = strstr(head, from);
    if (CHECK(at != NULL)) snprintf(text, sizeof text, "%.*s%s%s", (int)(at - head), head, to, at + strlen(from));
    return text;
}
static void test_refused(void) {
    const char *no_journal = "refused is not a journal of this version of vlmprof";
    check_case("a file without a head is not a journal");
    refuse("no JSON\n", no_journal);
    refuse("[1]\n", no_journal);
    refuse("{\"sample\": 1}\n", no_journal);
    refuse(edited("journal-2", "journal-1"), no_journal);
    refuse(edited("\"abc\"", "7"), no_journal);
    refuse(edited("\"data\"", "\"date\""), no_journal);
    refuse(edited("\"configs\": [", "\"config\": ["), no_journal);
    refuse(edited("\"model\"", "\"modem\""), no_journal);
    refuse(edited("\"timing\"", "\"timer\""), no_journal);
    refuse(edited("\"task\"", "\"tusk\""), no_journal);
    refuse(edited("\"path\"", "\"pith\""), no_journal);
    refuse(edited("\"metric\"", "\"meter\""), no_journal);
    refuse(edited("\"num_samples\": 5", "\"num_samples\": -1"), no_journal);
    refuse(edited("\"num_samples\": 5", "\"num_samples\": \"5\""), no_journal);
    check_case("an impossible configuration");
    refuse(edited("x_imgsize", "x/_imgsize"), no_journal);
    refuse(edited("x_imgsize", "x_image"), no_journal);
    refuse(edited("\"file_name\"", "\"name\""), no_journal);
    refuse(edited("\"set\": 0", "\"set\": 2"), no_journal);
    refuse(edited("\"set\": 0", "\"set\": -1"), no_journal);
    refuse(edited("\"active_block_indices\": [0, 2, 5]", "\"active_block_indices\": 3"), no_journal);
    refuse(edited("[0, 2, 5]", "[0, 2, 6]"), no_journal);
    refuse(edited("[0, 2, 5]", "[0, 2]"), no_journal);
    refuse(edited("\"low\"", "\"lower\""), no_journal);
    refuse(edited("\"target_vision_tokens\": null", "\"target_vision_tokens\": 432"), no_journal); /* and a tier */
    refuse(edited("\"vqa_seed\"", "\"vqa_sees\""), no_journal);
    refuse(edited("\"rank\": 0", "\"rank\": 1"), no_journal);
    check_case("an invalid shape");
    refuse(edited("\"num_experts\": 8", "\"num_experts\": -1"), no_journal);
    refuse(edited("\"num_experts\": 8, ", ""), no_journal);
    refuse(edited("\"num_experts\": 8", "\"num_experts\": 8, \"more\": 1"), no_journal);
    refuse(edited(SHAPE("8"), "\"model_shape\": null"), no_journal);
    check_case("another plan, in the same journal or in the next one");
    refuse(HEAD HEAD_OF("abd", ""), "refused belongs to another plan");
    index_free(&book);
    CHECK_INT(read_text("one", HEAD), 0);
    CHECK_INT(read_text("two", HEAD_OF("ab", "")), EXIT_USAGE);
    CHECK(strstr(room_said, "two belongs to another plan") != NULL);
}
static void test_samples(void) {
    static const int ids[] = {7, 3, 9, 3, 0, 8};
    long long at[6], last_at;
    fresh_case("samples are found by id, in any order");
    for (int i = 0; i < 6; i++) at[i] = add(SAMPLE_OF("%d", "0", "p"), ids[i]);
    add(SAMPLE_OF("5", "2", "p") SAMPLE_OF("5", "-1", "p") SAMPLE_OF("-1", "0", "p") "{\"other\": 1}\n");
    last_at = add(SAMPLE_OF("7", "1", "p"));
    CHECK_INT(read_lines(), 0);
    CHECK(strstr(room_said, "line 5 (byte ") && strstr(room_said, "is out of place") && strstr(room_said, "5 damaged lines in total"));
    CHECK_INT(book.sets[0].count, 5);
    CHECK_INT(book.sets[1].count, 1);
    for (size_t i = 1; i < book.sets[0].count; i++) CHECK(book.sets[0].entries[i - 1]->id < book.sets[0].entries[i]->id);
    for (int i = 0; i < 6; i++) {
        const struct index_entry *entry = index_find(&book.sets[0], 0, ids[i]);
        if (!CHECK(entry != NULL)) continue;
        CHECK_INT(entry->line_at, ids[i] == 3 ? at[1] : at[i]); /* of two lines for one sample, the first counts */
        CHECK_INT(entry->file, 0);
    }
    CHECK_INT(index_find(&book.sets[1], 0, 7)->line_at, last_at);
    CHECK(!index_find(&book.sets[0], 0, 1) && !index_find(&book.sets[0], 0, 10) && !index_find(&book.sets[0], 0, -1) && !index_find(&book.sets[1], 0, 3));
    CHECK(!index_find(&book.sets[0], 2, 3) && index_find(&book.sets[0], 2, 7) && index_find(&book.sets[0], 4, 9) && !index_find(&book.sets[0], 5, 9));
    fresh_case("many samples, in descending order");
    for (int i = 0; i < 300; i++) add(SAMPLE_OF("%d", "0", "p"), 600 - 2 * i);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(book.sets[0].count, 300);
    for (int i = 0; i < 602; i++) CHECK((index_find(&book.sets[0], 0, i) != NULL) == (i >= 2 && i % 2 == 0));
}
static void test_points(void) {
    long long at;
    fresh_case("the last line of a point decides its state");
    add(SAMPLE(1) SAMPLE(2) SAMPLE(3));
    at = add_point("x", 1, RUN(0), -1);
    at = add_point("x", 1, RUN(1), at);
    add_point("y", 1, RUN(0), -1); /* lines of several configurations alternate */
    at = add_point("x", 1, DONE(2), at);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(state_of(1, 0), at * 4 + POINT_DONE);
    CHECK_INT(state_of(1, 1) & 3, POINT_OPEN);
    CHECK(state_of(1, 1) > 0 && state_of(2, 0) == -1 && state_of(2, 1) == -1);
    CHECK(book.configurations[0].closed == 1 && book.configurations[0].failed == 0 && book.configurations[1].closed == 0);
    fresh_case("a failed point, ended at once or after a run");
    add(SAMPLE(1) SAMPLE(2) SAMPLE(3));
    at = add_point("y", 2, FAILED, -1);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(state_of(2, 1), at * 4 + POINT_FAILED);
    CHECK(book.configurations[1].closed == 1 && book.configurations[1].failed == 1);
    at = add_point("x", 3, RUN(0), -1);
    at = add_point("x", 3, FAILED, at);
    index_free(&book);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(state_of(3, 0), at * 4 + POINT_FAILED);
    CHECK(book.configurations[0].closed == 1 && book.configurations[0].failed == 1);
    check_case("a point that is started again is counted from the start");
    at = add_point("y", 2, RUN(0), -1);
    index_free(&book);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(state_of(2, 1), at * 4 + POINT_OPEN);
    CHECK(book.configurations[1].closed == 0 && book.configurations[1].failed == 0);
    at = add_point("y", 2, DONE(1), at);
    index_free(&book);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(state_of(2, 1), at * 4 + POINT_DONE);
    CHECK(book.configurations[1].closed == 1 && book.configurations[1].failed == 0);
    check_case("a line that does not follow the last valid one is skipped, and the point does not change");
    static const struct { const char *first, *second; int offset, state; } rows[] = { /* offset: distance of "prev" from the correct value */
        {RUN(0), RUN(1), 1, POINT_OPEN},    {RUN(0), DONE(1), -1, POINT_OPEN}, {RUN(0), RUN(2), 0, POINT_OPEN},
        {RUN(0), DONE(2), 0, POINT_OPEN},   {DONE(1), RUN(1), 0, POINT_DONE},  {DONE(1), DONE(1), 0, POINT_DONE},
        {FAILED, DONE(1), 0, POINT_FAILED}, {DONE(1), RUN(0), -9999, POINT_DONE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fresh();
        add(SAMPLE(1));
        at = add_point("x", 1, RUN(0), -1);
        if (strcmp(rows[i].first, RUN(0))) at = add_point("x", 1, rows[i].first, at);
        add_point("x", 1, rows[i].second, rows[i].offset == -9999 ? -1 : at + rows[i].offset);
        CHECK_INT(read_lines(), 0);
        CHECK(strstr(room_said, "is out of place") != NULL);
        CHECK_INT(state_of(1, 0), at * 4 + rows[i].state);
        CHECK_INT(book.configurations[0].closed, rows[i].state != POINT_OPEN);
        CHECK_INT(book.configurations[0].failed, rows[i].state == POINT_FAILED);
    }
    fresh_case("lines of impossible points: no sample, no configuration, done without a run");
    add(SAMPLE(1));
    add_point("x", 4, RUN(0), -1);
    add_point("none", 1, RUN(0), -1);
    add_point("y", 1, DONE(0), -1);
    add_point("x", 1, RUN(1), 0);
    add("{\"config\": \"x_imgsize\", \"sample_id\": 1, \"run\": 1}\n");
    CHECK_INT(read_lines(), 0);
    CHECK(state_of(1, 0) == -1 && state_of(1, 1) == -1 && state_of(4, 0) == -2);
    CHECK(book.configurations[0].closed == 0 && book.configurations[1].closed == 0);
}
#define ENERGY(more) ", \"energy_j\": 1.5" more
static void test_energy(void) {
    static const struct { const char *more; int good; } rows[] = {
        {ENERGY(", \"energy_resolution_j\": 0.2"), 1}, {ENERGY(""), 0}, {", \"energy_resolution_j\": 0.2", 0},
        {ENERGY(", \"energy_resolution_j\": null"), 0}, {", \"energy_j\": \"1\", \"energy_resolution_j\": 0.2", 0}};
    check_case("the energy of a run: both numbers or neither");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[1024];
        long long at;
        fresh();
        snprintf(line, sizeof line, RUN(0) "%s", rows[i].more);
        add(SAMPLE(1));
        at = add_point("x", 1, line, -1);
        CHECK_INT(read_lines(), 0);
        CHECK_INT(state_of(1, 0), rows[i].good ? at * 4 + POINT_OPEN : -1);
        index_free(&book);
    }
}
static void test_other_lines(void) {
    long long first, second, at;
    fresh_case("the device of the last session");
    add(SESSION("cpu: one"));
    CHECK_INT(read_lines(), 0);
    CHECK_TEXT(book.files[0].device, "cpu: one");
    CHECK(book.files[0].knows_device && !book.files[0].on_gpu);
    add(SESSION("cuda:1: two") "{\"session\": 4}\n");
    index_free(&book);
    CHECK_INT(read_lines(), 0);
    CHECK_TEXT(book.files[0].device, "cuda:1: two");
    CHECK(book.files[0].knows_device && book.files[0].on_gpu);
    add("{\"session\": {\"host\": \"h\"}}\n");
    index_free(&book);
    CHECK_INT(read_lines(), 0);
    CHECK(strstr(room_said, "line 4 (byte ") && strstr(room_said, "line 5 (byte "));
    CHECK_TEXT(book.files[0].device, "cuda:1: two"); /* a damaged session is ignored */
    fresh_case("timed kernels, each shape with its line's offset");
    first = add(KERNELS("y_imgsize", "3", "500"));
    add(KERNELS("none", "3", "500"));
    second = add(KERNELS("z_imgsize", "0", "0"));
    CHECK_INT(read_lines(), 0);
    CHECK_INT(book.shape_count, 2);
    if (book.shape_count == 2) {
        CHECK(book.shapes[0].at == first && book.shapes[0].configuration == 1 && book.shapes[0].file == 0);
        CHECK(book.shapes[0].views == 3 && book.shapes[0].sequence == 500);
        CHECK(book.shapes[1].at == second && book.shapes[1].configuration == 2 && book.shapes[1].views == 0 && book.shapes[1].sequence == 0);
    }
    fresh_case("finished, until the grid grows; configurations that are no longer wanted stay in the journal");
    add("{\"finished\": true}\n");
    CHECK_INT(read_lines(), 0);
    CHECK(book.files[0].is_finished && book.files[0].lines == 2);
    at = add(HEAD_OF("abc", CONFIG("z", 1, 2) ", " CONFIG("w", 0, 3)));
    {
        uint64_t grid = book.files[0].grid;
        index_free(&book);
        CHECK_INT(read_lines(), 0);
        CHECK(!book.files[0].is_finished && book.files[0].grid != grid);
    }
    CHECK_INT(book.configuration_count, 4);
    CHECK(!book.configurations[0].is_wanted && !book.configurations[1].is_wanted && book.configurations[2].is_wanted && book.configurations[3].is_wanted);
    CHECK(book.configurations[2].head_at == 0 && book.configurations[3].head_at == at && book.configurations[3].place == 2);
    CHECK(book.set_count == 2 && book.sets[0].configuration_count == 3);
    check_case("the grid is the same for any order of its configurations");
    {
        uint64_t grid = book.files[0].grid;
        index_free(&book);
        CHECK_INT(read_text("other", HEAD_OF("abc", CONFIG("w", 0, 3) ", " CONFIG("z", 1, 2))), 0);
        CHECK(book.files[0].grid == grid);
    }
}
/* ---- noise of the machine */
#define NOISE(from, steal) "{\"noise\": {\"from\": " from ", \"load\": 0.5, \"steal_percent\": " steal ", \"other_cpu_percent\": null, \"frequency_mhz\": [1, 2]}}\n"
static void test_noise(void) {
    static const char *const bad[] = {NOISE("-1", "1"), NOISE("1.5", "1"), NOISE("null", "1"), NOISE("1", "\"1\""), "{\"noise\": {\"from\": 1}}\n", "{\"noise\": 1}\n",
        "{\"noise\": {\"from\": 1, \"load\": 1, \"steal_percent\": 1, \"other_cpu_percent\": 1, \"frequency_mhz\": [1]}}\n",
        "{\"noise\": {\"from\": 1, \"load\": 1, \"steal_percent\": 1, \"other_cpu_percent\": 1, \"frequency_mhz\": null, \"more\": 1}}\n"};
    long long first, second, third, block;
    fresh_case("a block's line describes the machine's load during the runs before it; unknown for runs after the last block");
    first = add(SAMPLE(1));
    block = add(NOISE("%lld", "1.5"), first);
    second = add(SAMPLE(2));
    third = add(NOISE("%lld", "null"), second);
    CHECK_INT(read_lines(), 0);
    CHECK_TEXT(room_said, "");
    CHECK_INT(book.files[0].block_count, 2);
    CHECK(book.files[0].blocks[0].from == first && book.files[0].blocks[0].at == block && book.files[0].blocks[0].noise.steal_percent == 1.5);
    CHECK(isnan(book.files[0].blocks[1].noise.steal_percent) && book.files[0].blocks[1].noise.mhz_high == 2);
    CHECK(index_block_of(&book, 0, 0) == 2 && index_block_of(&book, 0, first) == 0 && index_block_of(&book, 0, second) == 1 && index_block_of(&book, 0, third + 1) == 2);
    check_case("a block that begins before the previous one ends, or after its own line, is ignored");
    add(NOISE("%lld", "1"), first);
    add(NOISE("99999", "1"));
    CHECK_INT(read_lines(), 0);
    CHECK_INT(book.files[1].block_count, 2);
    CHECK(strstr(room_said, "is out of place (it repeats a line, or a line that it needs is damaged) and was skipped\n") != NULL);
    check_case("a block's line that lacks a number, or has an unknown one, is damaged");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fresh();
        add("%s", bad[i]);
        CHECK_INT(read_lines(), 0);
        check_note(strstr(room_said, "is damaged") && book.files[0].block_count == 0, __FILE__, __LINE__, "%s was taken", bad[i]);
    }
}
static void test_damage(void) {
    long long at, torn;
    char words[200];
    fresh_case("two damaged lines are listed with their offsets, and all are counted");
    add(SAMPLE(1));
    at = add("{\"sample\": 2, \"s\n");
    add(SAMPLE(3) "\n");
    CHECK_INT(read_lines(), 0);
    snprintf(words, sizeof words, "vlmprof: %s: line 3 (byte %lld) is damaged and was skipped; its point is measured again\n", in_folder("journal.jsonl"), at);
    CHECK(strstr(room_said, words) == room_said && strstr(room_said, "line 5 (byte ") && !strstr(room_said, "in all"));
    CHECK(book.sets[0].count == 2 && book.files[0].lines == 5 && book.damaged == 0);
    add("[]\nx\n" SAMPLE(4));
    index_free(&book);
    CHECK_INT(read_lines(), 0);
    CHECK(strstr(room_said, "line 3 ") && strstr(room_said, "line 5 ") && !strstr(room_said, "line 6 ") && strstr(room_said, ".jsonl: 4 damaged lines in total\n"));
    CHECK_INT(book.sets[0].count, 3);
    fresh_case("a damaged run between two lines: the point continues after the last valid line");
    add(SAMPLE(1));
    at = add_point("x", 1, RUN(0), -1);
    torn = add("{\"config\": \"x_imgsize\", \"samp\n");
    add_point("x", 1, DONE(2), torn);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(state_of(1, 0), at * 4 + POINT_OPEN);
    at = add_point("x", 1, RUN(1), at);
    at = add_point("x", 1, DONE(2), at);
    index_free(&book);
    CHECK_INT(read_lines(), 0);
    CHECK_INT(state_of(1, 0), at * 4 + POINT_DONE);
    CHECK_INT(book.configurations[0].closed, 1);
    fresh_case("a torn last line does not count, at any length");
    torn = add(SAMPLE(1));
    torn = (long long)lines.bytes;
    add(SAMPLE(2));
    for (size_t cut = (size_t)torn; cut <= lines.bytes; cut++) {
        index_free(&book);
        write_file(in_folder("cut"), lines.data, cut);
        CHECK_INT(HEARD(index_read(&book, in_folder("cut"), open(in_folder("cut"), O_RDONLY), 1)), 0);
        CHECK_TEXT(room_said, "");
        CHECK_INT(book.files[0].end, cut == lines.bytes ? (long long)lines.bytes : torn);
        CHECK_INT(book.sets[0].count, cut == lines.bytes ? 2 : 1);
    }
    check_case("an empty journal, and a file that cannot be read");
    index_free(&book);
    CHECK_INT(read_text("empty", ""), 0);
    CHECK(book.files[0].end == 0 && book.files[0].lines == 0);
    FAILS(index_read(&book, folder, open(folder, O_RDONLY), 1), EXIT_INPUT, "cannot be read: Is a directory");
}
/* lines that start and end on all sides of a read's boundary */
static void test_long(void) {
    long long at[8];
    char id[32];
    check_case("lines longer than one read keep their content");
    for (int shift = 0; shift < 3; shift++) {
        fresh();
        for (int i = 0; i < 8; i++) {
            at[i] = add("{\"sample\": %d, \"set\": 0, \"prompt\": \"", i);
            for (int k = 0; k < 3000 * (i + 1) + shift; k++) text_add(&lines, &"0123456789"[k % 10], 1 + (size_t)(i == 7 && k % 10 == 0) * 9);
            add("\", \"input_text_tokens\": 3, \"metadata\": {\"question\": 0, \"answers\": 0, \"image_id\": 0, \"id\": 0}}\n");
        }
        CHECK_INT(read_lines(), 0);
        CHECK_TEXT(room_said, "");
        CHECK_INT(book.sets[0].count, 8);
        CHECK_INT(book.files[0].end, lines.bytes);
        CHECK_INT(book.files[0].lines, 9);
        for (int i = 7; i >= 0; i--) {
            const struct index_entry *entry = index_find(&book.sets[0], 0, i);
            if (!CHECK(entry && entry->line_at == at[i])) continue;
            CHECK_INT(index_read_line(&book, 0, at[i]), 0);
            CHECK_INT(node_int(&book.scratch.json, 0, "sample", -1), i);
            CHECK_INT(book.line.bytes, (i < 7 ? at[i + 1] : (long long)lines.bytes) - at[i] - 1);
            CHECK(!memcmp(book.line.data, lines.data + at[i], book.line.bytes));
        }
    }
    check_case("a line that no longer exists cannot be read back");
    snprintf(id, sizeof id, "at byte %lld", at[3] + 1);
    FAILS(index_read_line(&book, 0, at[3] + 1), EXIT_INPUT, id);
    FAILS(index_read_line(&book, 0, (int64_t)lines.bytes), EXIT_INPUT, "cannot be read back");
    CHECK_INT(truncate(in_folder("journal.jsonl"), at[7] + 10), 0);
    FAILS(index_read_line(&book, 0, at[7]), EXIT_INPUT, "journal.jsonl cannot be read back");
    CHECK_INT(index_read_line(&book, 0, at[6]), 0);
}
static void test_files(void) {
    fresh_case("several journals in one book: samples by id");
    CHECK_INT(read_text("one", HEAD SAMPLE(4) SAMPLE(0) SAMPLE(8)), 0);
    CHECK_INT(read_text("two", HEAD SAMPLE(5) SAMPLE(1)), 0);
    CHECK(book.file_count == 2 && book.sets[0].count == 5 && book.sets[0].first == 3 && book.configuration_count == 3);
    CHECK_TEXT(book.files[1].path, in_folder("two"));
    CHECK_INT(index_sort(&book), 0);
    CHECK_INT(book.sets[0].first, 0);
    for (int i = 0; i < 5; i++) {
        static const int ids[] = {0, 1, 4, 5, 8};
        CHECK_INT(book.sets[0].entries[i]->id, ids[i]);
        CHECK_INT(book.sets[0].entries[i]->file, ids[i] % 4 == 1);
    }
    fresh_case("two journals with the same sample do not belong to the same sweep");
    CHECK_INT(read_text("one", HEAD SAMPLE(4) SAMPLE(7)), 0);
    CHECK_INT(read_text("two", HEAD SAMPLE(5) SAMPLE(7)), 0);
    FAILS(index_sort(&book), EXIT_USAGE, "both contain sample 7 of first: they do not belong to the same sweep");
    CHECK(strstr(room_said, "/one") && strstr(room_said, "/two"));
    fresh_case("a point's lines count in its sample's journal");
    CHECK_INT(read_text("one", HEAD SAMPLE(4)), 0);
    CHECK_INT(read_text("two", HEAD SAMPLE(5) "{\"config\": \"x_imgsize\", \"sample_id\": 4, " RUN(0) ", \"prev\": -1}\n"), 0);
    CHECK_INT(state_of(4, 0), -1);
    index_free(&book);
    CHECK(!book.files && !book.sets && !book.configurations && !book.plan[0]);
}
static void test_names(void) {
    char *name = journal_name("f", 0, 1);
    check_case("names of journals");
    CHECK_TEXT(name, "f/journal.jsonl");
    free(name);
    name = journal_name("f", 3, 12);
    CHECK_TEXT(name, "f/journal_rank3of12.jsonl");
    free(name);
}

/* ---- writing a journal */
static void begin_journal(struct journal *journal, const char *name) {
    memset(journal, 0, sizeof *journal);
    journal->fd = -1;
    journal->path = copy_text(in_folder(name), strlen(in_folder(name)));
    index_free(&book);
}
static void check_text_of(const char *name, const char *want) {
    char *text = check_read(in_folder(name), NULL);
    CHECK_TEXT(text, want);
    free(text);
}
static void test_written(void) {
    struct journal journal;
    int status = 0;
    pid_t child;
    check_case("a new journal; lines are whole, and synced after 64");
    begin_journal(&journal, "new");
    CHECK_INT(HEARD(journal_open(&journal, &book)), 0);
    CHECK(journal.end == 0 && journal.fd >= 0);
    for (int i = 0; i < 130; i++) {
        vp_json_writer *writer = journal_line_begin(&journal);
        put_int(writer, "i", i);
        CHECK_INT(journal_line_append(&journal), 0);
        CHECK_INT(journal.unsynced, (i + 1) % JOURNAL_SYNC_LINES);
    }
    int64_t before_ns = vp_clock_ns();
    journal.synced_ns -= INT64_C(2000000000);
    CHECK_INT(journal_append(&journal, "last\n", 5), 0);
    CHECK(journal.unsynced == 0 && journal.synced_ns >= before_ns);
    CHECK_INT(journal_append(&journal, "one\n", 4), 0);
    CHECK_INT(journal.unsynced, 1);
    CHECK_INT(journal_sync(&journal), 0);
    CHECK_INT(journal.unsynced, 0);
    check_case("another process cannot open a locked journal");
    fflush(stdout);
    if ((child = fork()) == 0) {
        int fd = open(in_folder("new"), O_RDWR), held = journal_is_locked(fd), refused = journal_lock(fd, 0);
        _exit(held == 1 && refused == 1 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    CHECK_INT(journal_is_locked(journal.fd), 0); /* its own lock does not count */
    /* reading the file here releases the lock */
    char *text = check_read(in_folder("new"), NULL);
    CHECK(text && (int64_t)strlen(text) == journal.end && !strncmp(text, "{\"i\": 0, \"sum\": \"", 17)
          && !strncmp(strchr(text, '\n') + 1, "{\"i\": 1, \"sum\": \"", 17) && !strcmp(text + strlen(text) - 12, "\"}\nlast\none\n"));
    free(text);
    journal_close(&journal);
    fflush(stdout);
    if ((child = fork()) == 0) {
        int fd = open(in_folder("new"), O_RDWR);
        _exit(!journal_is_locked(fd) && !journal_lock(fd, 0) && !journal_lock(fd, 1) ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    check_case("a torn journal continues after its last whole line");
    write_text(in_folder("torn"), HEAD SAMPLE(1) "{\"sample\": 2, \"se");
    begin_journal(&journal, "torn");
    before_ns = vp_clock_ns();
    CHECK_INT(HEARD(journal_open(&journal, &book)), 0);
    CHECK_INT(journal.end, strlen(HEAD SAMPLE(1)));
    CHECK(journal.synced_ns >= before_ns);
    CHECK_INT(journal_append(&journal, SAMPLE(3), strlen(SAMPLE(3))), 0);
    journal_close(&journal);
    check_text_of("torn", HEAD SAMPLE(1) SAMPLE(3));
    check_case("a file that is not a journal stays unchanged");
    write_text(in_folder("foreign"), "a text\nand more");
    begin_journal(&journal, "foreign");
    CHECK_INT(HEARD(journal_open(&journal, &book)), EXIT_USAGE);
    journal_close(&journal);
    check_text_of("foreign", "a text\nand more");
    begin_journal(&journal, "none/journal");
    FAILS(journal_open(&journal, &book), EXIT_OUTPUT, "none/journal cannot be opened: No such file");
    journal_close(&journal);
}
static void test_full(void) {
    struct journal journal;
    struct rlimit limit, old;
    check_case("a full disk: the line that does not fit is removed, and can be written later");
    begin_journal(&journal, "full");
    CHECK_INT(HEARD(journal_open(&journal, &book)), 0);
    CHECK_INT(journal_append(&journal, "first\n", 6), 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 10;
    setrlimit(RLIMIT_FSIZE, &limit);
    int kept = dup(2), quiet = open("/dev/null", O_WRONLY); /* a separate file would not fit either */
    dup2(quiet, 2);
    CHECK_INT(journal_append(&journal, "second line\n", 12), EXIT_OUTPUT);
    dup2(kept, 2);
    close(kept);
    close(quiet);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK_INT(journal.end, 6);
    check_text_of("full", "first\n");
    CHECK_INT(journal_append(&journal, "second line\n", 12), 0);
    check_text_of("full", "first\nsecond line\n");
    check_case("invalid JSON is not written");
    vp_json_key(journal_line_begin(&journal), "a");
    FAILS(journal_line_append(&journal), EXIT_WORK, "full: a line cannot be written as JSON: ");
    check_text_of("full", "first\nsecond line\n");
    journal_close(&journal);
    index_free(&book);
}

int main(void) {
    if (!folder_make("journal")) return 1;
    text_add_string(&lines, "");
    RUN_TESTS(test_head, test_shape, test_refused, test_samples, test_points, test_energy, test_other_lines, test_noise,
              test_damage, test_long, test_files, test_names, test_written, test_full);
    index_free(&book);
    free(lines.data);
    return room_end("test_journal");
}
