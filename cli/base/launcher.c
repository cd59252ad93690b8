/* launcher.c: the rank of this process among several, from the environment of torchrun, mpirun or srun. */
#include "base/launcher.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAUNCHER_COUNT = 4, LAUNCHER_SLURM = 3 };
/* The names of a launcher's variables; NULL if it lacks one. */
struct launcher { const char *name, *rank, *world, *world_before, *local, *local_world; };
static const struct launcher LAUNCHERS[LAUNCHER_COUNT] = {
    {"torchrun", "RANK", "WORLD_SIZE", NULL, "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_LOCALID", NULL},
};
/* The source of variables and the destination of errors. */
struct source { variable_lookup lookup; void *user; vp_error *error; };

const char *environment(void *user, const char *name) {
    (void)user;
    return getenv(name);
}
/* The number in a text of only digits, up to `limit`; -1 for any other text. */
static int64_t digits_of(const char *text, int64_t limit) {
    int64_t value = 0;
    if (!*text) return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return -1;
        value = value * 10 + (*text - '0');
        if (value > limit) return -1;
    }
    return value;
}
/* The number in a variable, or `missing` if it is not set or name is NULL. */
static vp_result read_number(const struct source *source, const char *name, int32_t missing, int32_t *out) {
    const char *text = name ? source->lookup(source->user, name) : NULL;
    char words[320];
    int64_t value = text ? digits_of(text, INT32_MAX) : missing;
    if (!text || value >= 0) {
        *out = (int32_t)value;
        return VP_OK;
    }
    snprintf(words, sizeof words, "is \"%.200s\"; expected a non-negative integer: use a launcher that sets it "
                                  "correctly, or unset it",
             text);
    return vp_error_set(source->error, VP_ERR_FORMAT, -1, name, words);
}
/* Returns 1 if the launcher set its variables. Slurm's variables count only inside an srun step. */
static int is_there(const struct source *source, int launcher) {
    const struct launcher *variables = &LAUNCHERS[launcher];
    if (launcher != LAUNCHER_SLURM)
        return source->lookup(source->user, variables->rank) || source->lookup(source->user, variables->world);
    const char *step = source->lookup(source->user, "SLURM_STEP_ID");
    return step && digits_of(step, INT64_C(0xffffffef)) >= 0;
}
/* Checks place < count, both known; `name` and `count_name` are the names of their variables. */
static vp_result check_order(const struct source *source, const char *name, int32_t place, const char *count_name,
                             int32_t count) {
    char words[160];
    if (place < count) return VP_OK;
    snprintf(words, sizeof words, "is %d, but %s is %d: a rank must be less than that", place, count_name, count);
    return vp_error_set(source->error, VP_ERR_RANGE, -1, name, words);
}
static vp_result read_launcher(const struct source *source, const struct launcher *launcher, struct launched *out) {
    const char *world = launcher->world_before && !source->lookup(source->user, launcher->world)
                            ? launcher->world_before
                            : launcher->world;
    vp_result result;
    if ((result = read_number(source, launcher->rank, -1, &out->rank)) != VP_OK
        || (result = read_number(source, world, -1, &out->world_size)) != VP_OK)
        return result;
    if (out->rank < 0 || out->world_size < 0) {
        char words[160];
        snprintf(words, sizeof words, "is not set, but %s set %s: set both or neither", launcher->name,
                 out->rank >= 0         ? launcher->rank
                 : out->world_size >= 0 ? world
                                        : "SLURM_STEP_ID");
        return vp_error_set(source->error, VP_ERR_NOT_FOUND, -1, out->rank < 0 ? launcher->rank : launcher->world,
                            words);
    }
    if ((result = check_order(source, launcher->rank, out->rank, world, out->world_size)) != VP_OK
        || (result = read_number(source, launcher->local, -1, &out->local_rank)) != VP_OK
        || (result = read_number(source, launcher->local_world, -1, &out->local_world_size)) != VP_OK
        || (result = check_order(source, launcher->local, out->local_rank, world, out->world_size)) != VP_OK)
        return result;
    if (out->local_world_size < 0) return VP_OK;
    return check_order(source, launcher->local, out->local_rank, launcher->local_world, out->local_world_size);
}
vp_result launched_read(variable_lookup lookup, void *user, struct launched *launched, vp_error *error) {
    struct source source = {lookup, user, error};
    struct launched out = {"none", NULL, 0, 1, 0, 1}, other;
    int launcher, first;
    vp_result result;
    for (first = 0; first < LAUNCHER_COUNT && !is_there(&source, first); first++) {}
    if (first < LAUNCHER_COUNT) {
        if ((result = read_launcher(&source, &LAUNCHERS[first], &out)) != VP_OK) return result;
        out.launcher = LAUNCHERS[first].name;
        source.error = NULL; /* errors of an unused launcher are ignored */
        for (launcher = first + 1; launcher < LAUNCHER_COUNT; launcher++) {
            if (!is_there(&source, launcher)) continue;
            if (!out.ignored) out.ignored = LAUNCHERS[launcher].name;
            if (out.local_rank >= 0 || read_launcher(&source, &LAUNCHERS[launcher], &other) != VP_OK) continue;
            if (other.rank == out.rank && other.world_size == out.world_size) out.local_rank = other.local_rank;
        }
        if (out.world_size == 1) out.local_rank = 0;
        if (out.world_size == 1) out.local_world_size = 1;
    }
    *launched = out;
    return VP_OK;
}
int32_t launched_device(const struct launched *launched, int32_t visible_count) {
    if (visible_count < 1 || (visible_count > 1 && launched->local_rank < 0)) return -1;
    return visible_count == 1 ? 0 : launched->local_rank % visible_count;
}
