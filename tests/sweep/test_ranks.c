/* test_ranks.c: journals of several processes: names, order of reading, missing ones with the reason, and those that are not parts of the same sweep. */
#define _POSIX_C_SOURCE 200809L
#include "base/console.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"
#include "sweep/ranks.h"
#include <fcntl.h>
#include <sys/wait.h>

#define HEAD "{\"schema\": \"vlmprof-journal-2\", \"plan\": \"abc\", \"rank\": %d, \"world_size\": %d, \"model\": \"tiny\", \"synthetic\": true, " \
    "\"timing\": \"stage\", \"ignore_eos\": false, \"num_runs_per_sample\": 3, \"num_total_blocks\": 6, \"bare_every\": 4, \"options\": {}, \"data\": " \
    "[{\"task\": \"t\", \"path\": \"p\", \"metric\": \"anls\", \"max_new_tokens\": 8, \"num_samples\": 2, \"content_hash\": \"7\"}], " \
    "\"configs\": [{\"file_name\": \"%s_imgsize\", \"set\": 0, \"tier\": null, \"target_vision_tokens\": 432, \"max_crops\": 3, \"top_k\": 2, " \
    "\"num_active_blocks\": 1, \"active_block_indices\": [0]}]}\n"
#define SAMPLE(id) "{\"sample\": " #id ", \"set\": 0, \"prompt\": \"p\", \"input_text_tokens\": 3, \"metadata\": " \
    "{\"question\": null, \"answers\": null, \"image_id\": null, \"id\": null}}\n"
#define FAILED(id) "{\"config\": \"x_imgsize\", \"sample_id\": " #id ", \"failed\": \"f\", \"attempts\": 1, \"retries\": 0, \"prev\": -1, " \
    "\"sizes\": {\"tier\": \"low\", \"target_vision_tokens\": null, \"target_crops\": null, \"top_k\": 1, \"num_active_blocks\": 3, " \
    "\"theoretical_num_crops\": null, \"theoretical_tiling\": null, \"theoretical_image_size\": null, \"theoretical_vision_tokens\": null, " \
    "\"actual_num_crops\": null, \"actual_tiling\": null, \"actual_image_size\": null, \"actual_vision_tokens\": null, " \
    "\"input_text_tokens\": 3, \"actual_text_tokens\": 3, \"total_sequence_length\": 4}}\n"
static struct journal_index book;
/* a journal of that rank; more: its lines after the head */
static void write_rank(const char *name, int rank, int world_size, const char *grid, const char *more) {
    char text[4000];
    snprintf(text, sizeof text, HEAD "%s", rank, world_size, grid, more);
    write_text(in_folder(name), text);
}
static int read_ranks(const char *name) {
    index_free(&book);
    return HEARD(ranks_read_folder(&book, in_folder(name), NULL));
}
static void test_names(void) {
    static const char *const others[] = {"journal", "journal.jsonl2", "journal_rank1of2.json", "journal_rank1of2.jsonl.old", "journal_rankof2.jsonl",
                                         "journal_rank1of.jsonl", "xjournal.jsonl", "journal_rank1.jsonl", ""};
    int64_t rank = -5, world_size = -6;
    check_case("names of journals");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) CHECK(!can_parse_journal_name(others[i], &rank, &world_size));
    CHECK(rank == -5 && world_size == -6);
    CHECK(can_parse_journal_name("journal.jsonl", &rank, &world_size) && rank == 0 && world_size == 1);
    CHECK(can_parse_journal_name("journal_rank3of12.jsonl", &rank, &world_size) && rank == 3 && world_size == 12);
}
static void test_read(void) {
    check_case("the journals of a folder, in order of their names; those that have just begun are skipped");
    make_empty(in_folder("read"));
    write_rank("read/journal_rank1of3.jsonl", 1, 3, "x", SAMPLE(1));
    write_rank("read/journal_rank0of3.jsonl", 0, 3, "x", SAMPLE(0));
    write_text(in_folder("read/journal_rank2of3.jsonl"), "");
    write_text(in_folder("read/other.jsonl"), "no journal");
    CHECK_INT(read_ranks("read"), 0);
    CHECK_TEXT(room_said, "");
    CHECK_INT(book.file_count, 2);
    CHECK(book.files[0].rank == 0 && book.files[1].rank == 1 && book.files[0].is_own && book.files[1].is_own);
    CHECK_TEXT(book.files[1].path, in_folder("read/journal_rank1of3.jsonl"));
    check_case("the process's own journal is read through the file that is already open");
    struct journal own = {.path = in_folder("read/journal_rank1of3.jsonl")};
    own.fd = open(own.path, O_RDONLY);
    index_free(&book);
    CHECK_INT(ranks_read_folder(&book, in_folder("read"), &own), 0);
    CHECK(book.file_count == 2 && book.files[0].fd != own.fd && book.files[1].fd == own.fd && !book.files[1].is_own);
    index_free(&book);
    CHECK_INT(fcntl(own.fd, F_GETFD) >= 0, 1);
    close(own.fd);
    check_case("a missing folder, a file that is not a journal");
    CHECK_INT(read_ranks("none"), EXIT_INPUT);
    CHECK(strstr(room_said, "/none: the folder cannot be read: No such file") != NULL);
    write_text(in_folder("read/journal_rank2of3.jsonl"), "text\n");
    CHECK_INT(read_ranks("read"), EXIT_USAGE);
    CHECK(strstr(room_said, "journal_rank2of3.jsonl is not a journal") != NULL);
    unlink(in_folder("read/journal_rank2of3.jsonl"));
    CHECK_INT(symlink("nowhere", in_folder("read/journal_rank2of3.jsonl")), 0);
    CHECK_INT(read_ranks("read"), EXIT_INPUT);
    CHECK(strstr(room_said, "journal_rank2of3.jsonl: there is no such file") != NULL);
}
#define FINISHED "{\"finished\": true}\n"
static void test_missing(void) {
    char text[400], want[40];
    int ready[2], status = 0;
    char byte = 0;
    pid_t child;
    check_case("the missing ranks, with the reason");
    make_empty(in_folder("missing"));
    write_rank("missing/journal_rank0of9.jsonl", 0, 9, "x", FINISHED);
    write_rank("missing/journal_rank2of9.jsonl", 2, 9, "x", "");
    write_rank("missing/journal_rank3of9.jsonl", 3, 9, "x", "");
    CHECK_INT(read_ranks("missing"), 0);
    CHECK_INT(pipe(ready), 0);
    fflush(stdout);
    if ((child = fork()) == 0) { /* rank 3 is still running */
        int fd = open(in_folder("missing/journal_rank3of9.jsonl"), O_RDWR);
        if (journal_lock(fd, 0) || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(ranks_missing(&book, text, sizeof text), 8);
    CHECK_TEXT(text, "rank 1 (no journal), rank 2 (stopped), rank 3 (still running), rank 4 (no journal) and more");
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child);
    check_case("five missing ranks, one missing rank, none");
    for (int rank = 4; rank < 9; rank++) {
        char name[60];
        snprintf(name, sizeof name, "missing/journal_rank%dof9.jsonl", rank);
        write_rank(name, rank, 9, "x", FINISHED);
        CHECK_INT(read_ranks("missing"), 0);
        CHECK_INT(ranks_missing(&book, text, sizeof text), 11 - rank);
        CHECK((strstr(text, " and more") != NULL) == (11 - rank > 5));
    }
    CHECK_TEXT(text, "rank 1 (no journal), rank 2 (stopped), rank 3 (stopped)");
    for (int rank = 1; rank < 4; rank++) {
        snprintf(want, sizeof want, "missing/journal_rank%dof9.jsonl", rank);
        write_rank(want, rank, 9, "x", FINISHED);
    }
    CHECK_INT(read_ranks("missing"), 0);
    CHECK_INT(ranks_missing(&book, text, sizeof text), 0);
    CHECK_TEXT(text, "");
}
static int merge_code(const char *name, int partial) {
    if (read_ranks(name)) return -1;
    return HEARD(ranks_merge(&book, in_folder(name), partial, NULL));
}
static void check_parts_refused(const char *words) {
    CHECK_INT(merge_code("parts", 1), EXIT_USAGE);
    check_note(strstr(room_said, words) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", words, room_said);
}
#define SESSION(device) "{\"session\": {\"version\": \"0\", \"build\": \"b\", \"host\": \"h\", \"date\": \"d\", \"device\": \"" device "\", " \
    "\"seed\": 1, \"argv\": [], \"stamp_cost_ns\": 3, \"cold\": {}}}\n"
static void test_parts(void) {
    const char *first = "parts/journal_rank0of2.jsonl", *second = "parts/journal_rank1of2.jsonl";
    check_case("journals that do not belong to the same sweep");
    make_empty(in_folder("parts"));
    write_rank(first, 0, 2, "x", "");
    write_rank(second, 1, 3, "x", "");
    check_parts_refused("journal_rank0of2.jsonl is from 2 processes, ");
    CHECK(strstr(room_said, "journal_rank1of2.jsonl from 3: they do not belong to the same sweep") != NULL);
    write_rank(second, 0, 2, "x", "");
    check_parts_refused("are both from rank 0: they overlap");
    write_rank(second, 1, 2, "y", "");
    check_parts_refused("have different grids: run the same command on every rank");
    write_rank(first, 0, 2, "x", SESSION("cpu: a"));
    write_rank(second, 1, 2, "x", SESSION("cuda:0: b"));
    check_parts_refused("was measured on cpu: a, ");
    CHECK(strstr(room_said, "on cuda:0: b: their times do not belong in one file") != NULL);
    write_rank(first, 0, 2, "x", SAMPLE(5));
    write_rank(second, 1, 2, "x", SAMPLE(5));
    check_parts_refused("both contain sample 5 of t");
    check_case("unfinished journals are not merged");
    write_rank(first, 0, 2, "x", FINISHED SESSION("cuda:0: a") SAMPLE(5));
    write_rank(second, 1, 2, "x", SESSION("cuda:1: b") SAMPLE(6));
    CHECK_INT(merge_code("parts", 0), EXIT_WORK);
    CHECK(strstr(room_said, "not merged: 1 of 2 ranks are not finished: rank 1 (stopped); run the part of rank R with RANK=R WORLD_SIZE=2 and the same command, "
                            "or merge with --partial") != NULL);
    check_case("... nor journals that lack points");
    write_rank(second, 1, 2, "x", SAMPLE(6) FAILED(6) FINISHED);
    CHECK_INT(merge_code("parts", 0), EXIT_WORK);
    CHECK(strstr(room_said, "not merged: 1 points are missing because their lines are damaged; run the same sweep command again, or merge with --partial") != NULL);
}
static void test_state(void) {
    char states[4][80];
    check_case("a merge is identified by its plan and the journals' ends, in order of ranks");
    make_empty(in_folder("state"));
    write_rank("state/journal_rank0of2.jsonl", 0, 2, "x", "");
    write_rank("state/journal_rank1of2.jsonl", 1, 2, "x", "");
    for (int i = 0; i < 4; i++) {
        if (i == 2) write_rank("state/journal_rank1of2.jsonl", 1, 2, "x", FINISHED);
        if (i == 3) write_rank("state/journal_rank0of2.jsonl", 0, 2, "x", FINISHED);
        CHECK_INT(read_ranks("state"), 0);
        ranks_state(&book, states[i], sizeof states[i]);
        CHECK(!strncmp(states[i], "merged abc ", 11) && strlen(states[i]) == 28);
    }
    CHECK_TEXT(states[0], states[1]);
    CHECK(strcmp(states[1], states[2]) && strcmp(states[2], states[3]) && strcmp(states[1], states[3]));
    uint64_t hash = hash_text(HASH_START, VLMPROF_VERSION);
    char want[80];
    for (int i = 0; i < 2; i++) hash = hash_number(hash, book.files[i].end);
    snprintf(want, sizeof want, "merged abc %016llx\n", (unsigned long long)hash);
    CHECK_TEXT(states[3], want);
    check_case("two merges of one folder wait for each other");
    int fd = ranks_lock(in_folder("state")), status = 0;
    pid_t child;
    CHECK(fd >= 0);
    fflush(stdout);
    if ((child = fork()) == 0) {
        int other = open(in_folder("state/.vlmprof-merge"), O_RDWR);
        _exit(journal_is_locked(other) ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    close(fd);
    CHECK_INT(HEARD(ranks_lock(in_folder("none"))), -1);
    CHECK(strstr(room_said, "none/.vlmprof-merge cannot be opened: No such file") != NULL);
}

int main(void) {
    if (!folder_make("ranks")) return 1;
    RUN_TESTS(test_names, test_read, test_missing, test_parts, test_state);
    index_free(&book);
    return room_end("test_ranks");
}
