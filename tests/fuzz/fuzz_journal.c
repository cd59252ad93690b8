/* fuzz_journal.c: any bytes as one or two journals of a sweep (the second begins after the first 0xFF), read into an index; each point that
 * counts as closed is then read back and gathered. libFuzzer entry. */
#include "fuzz.h"
#include "sweep/result_gather.h"
#include "sweep/journal.h"

static void check_index(const struct journal_index *index, const size_t *file_bytes) {
    for (int32_t i = 0; i < index->file_count; i++) MUST(index->files[i].end >= 0 && (size_t)index->files[i].end <= file_bytes[i]);
    for (int32_t i = 0; i < index->set_count; i++) {
        const struct index_set *set = &index->sets[i];
        for (size_t k = 0; k < set->count; k++) {
            MUST(!k || set->entries[k - 1]->id < set->entries[k]->id);
            MUST(set->entries[k]->file >= 0 && set->entries[k]->file < index->file_count);
            MUST(index_find(set, 0, set->entries[k]->id) == set->entries[k]);
        }
    }
    for (int32_t i = 0; i < index->configuration_count; i++) {
        const struct index_configuration *configuration = &index->configurations[i];
        MUST(configuration->set >= 0 && configuration->set < index->set_count && configuration->knobs.of[KNOB_BLOCKS].list_count >= 0);
        MUST(configuration->failed >= 0 && configuration->failed <= configuration->closed);
        MUST(index_configuration_named(index, configuration->file_name) == i);
    }
    for (size_t i = 0; i < index->shape_count; i++)
        MUST(index->shapes[i].configuration >= 0 && index->shapes[i].configuration < index->configuration_count);
}
static void gather(struct journal_index *index, const struct index_configuration *configuration) {
    const struct index_set *set = &index->sets[configuration->set];
    struct gathered gathered = {0};
    int64_t closed = 0;
    for (size_t i = 0; i < set->count; i++) closed += is_closed_point(set->entries[i], configuration);
    if (gather_configuration(index, configuration, &gathered) == 0) MUST(gathered.ok_count + gathered.failed_count == closed);
    gathered_free(&gathered);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct memory_file files[2];
    struct journal_index index = {0};
    const uint8_t *second;
    size_t file_bytes[2];
    fuzz_silence();
    file_bytes[0] = fuzz_split(data, bytes, &second, &file_bytes[1]);
    memory_file_fill(&files[0], data, file_bytes[0]);
    int code = index_read(&index, files[0].path, files[0].fd, 0);
    if (!code && second) {
        memory_file_fill(&files[1], second, file_bytes[1]);
        code = index_read(&index, files[1].path, files[1].fd, 0);
    }
    if (!code && (code = index_sort(&index)) == 0) {
        check_index(&index, file_bytes);
        for (int32_t i = 0; i < index.configuration_count; i++) gather(&index, &index.configurations[i]);
    }
    index_free(&index);
    return 0;
}
