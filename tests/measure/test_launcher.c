/* test_launcher.c: ranks in the environment of torchrun, Open MPI, PMI and Slurm, errors in them, the device of a rank. */
#include "base/launcher.h"
#include "support/check.h"

/* environments as text: "NAME=value NAME=value"; a value ends at a blank */
static const char *look_up(void *user, const char *name) {
    static char value[4][64];
    static int turn;
    const char *p = (const char *)user;
    const size_t bytes = strlen(name);
    while (p && *p) {
        if (strncmp(p, name, bytes) == 0 && p[bytes] == '=') {
            char *out = value[turn++ & 3];
            snprintf(out, sizeof value[0], "%.*s", (int)strcspn(p + bytes + 1, " "), p + bytes + 1);
            return out;
        }
        p = strchr(p, ' ');
        if (p) p++;
    }
    return NULL;
}

#define SLURM "SLURM_JOB_ID=7 SLURM_NTASKS=8 SLURM_PROCID=5 SLURM_LOCALID=1"
#define OMPI "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2"
static void test_rank(void) {
    static const struct { const char *environment, *launcher, *ignored; int rank, world, local, local_world; } table[] = {
        {"", "none", NULL, 0, 1, 0, 1},
        {"LOCAL_RANK=3 HOME=/", "none", NULL, 0, 1, 0, 1},
        {"RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_PORT=1", "torchrun", NULL, 2, 4, 0, 2},
        {OMPI, "Open MPI", NULL, 3, 4, 1, 2},
        {"PMI_RANK=1 PMI_SIZE=3 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=3", "PMI", NULL, 1, 3, 1, 3},
        {SLURM " SLURM_STEP_ID=0", "Slurm", NULL, 5, 8, 1, -1},
        {"SLURM_NPROCS=2 SLURM_PROCID=1 SLURM_STEP_ID=12", "Slurm", NULL, 1, 2, -1, -1},                       /* old name; without a local rank */
        {"SLURM_NPROCS=9 SLURM_NTASKS=2 SLURM_PROCID=1 SLURM_STEP_ID=4294967279", "Slurm", NULL, 1, 2, -1, -1}, /* the largest ordinary step id */
        /* in a batch script or a shell of salloc, the counts are set but there is only one process */
        {"SLURM_JOB_ID=7 SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_LOCALID=0", "none", NULL, 0, 1, 0, 1},
        {SLURM " SLURM_STEP_ID=batch", "none", NULL, 0, 1, 0, 1},
        {SLURM " SLURM_STEP_ID=", "none", NULL, 0, 1, 0, 1},
        {SLURM " SLURM_STEP_ID=4294967291", "none", NULL, 0, 1, 0, 1}, /* SLURM_BATCH_SCRIPT of slurm.h */
        {SLURM " SLURM_STEP_ID=4294967290", "none", NULL, 0, 1, 0, 1}, /* SLURM_INTERACTIVE_STEP */
        {"SLURM_NTASKS=x SLURM_PROCID=-1", "none", NULL, 0, 1, 0, 1},  /* these variables are not read */
        /* two launchers at once: the first in order wins; errors of the other are ignored */
        {SLURM " SLURM_STEP_ID=0 RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", "torchrun", "Slurm", 1, 2, 1, 2},
        {OMPI " " SLURM " SLURM_STEP_ID=3", "Open MPI", "Slurm", 3, 4, 1, 2},
        {OMPI " PMI_RANK=x", "Open MPI", "PMI", 3, 4, 1, 2},
        {"RANK=0 WORLD_SIZE=2 PMI_RANK=x", "torchrun", "PMI", 0, 2, -1, -1},
        {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 " OMPI " " SLURM " SLURM_STEP_ID=0", "torchrun", "Open MPI", 0, 2, 0, -1},
        /* srun --mpi=pmi2: the local rank is Slurm's if Slurm describes the same ranks */
        {"PMI_RANK=5 PMI_SIZE=8 " SLURM " SLURM_STEP_ID=0", "PMI", "Slurm", 5, 8, 1, -1},
        {"PMI_RANK=4 PMI_SIZE=8 " SLURM " SLURM_STEP_ID=0", "PMI", "Slurm", 4, 8, -1, -1},
        {"RANK=0 WORLD_SIZE=1", "torchrun", NULL, 0, 1, 0, 1},
        {"RANK=2147483646 WORLD_SIZE=2147483647", "torchrun", NULL, INT32_MAX - 1, INT32_MAX, -1, -1},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        struct launched r;
        memset(&r, 0xA5, sizeof r);
        check_case("ranks: %s", table[i].environment);
        CHECK_INT(launched_read(look_up, (void *)(uintptr_t)table[i].environment, &r, &error), VP_OK);
        CHECK_INT(error.code, VP_OK);
        CHECK_TEXT(r.launcher, table[i].launcher);
        CHECK(r.ignored ? table[i].ignored && strcmp(r.ignored, table[i].ignored) == 0 : table[i].ignored == NULL);
        CHECK_INT(r.rank, table[i].rank);
        CHECK_INT(r.world_size, table[i].world);
        CHECK_INT(r.local_rank, table[i].local);
        CHECK_INT(r.local_world_size, table[i].local_world);
    }
}

static void test_rank_errors(void) {
    static const struct { const char *environment; vp_result result; const char *where; } table[] = {
        {"RANK=1", VP_ERR_NOT_FOUND, "WORLD_SIZE"},
        {"WORLD_SIZE=2", VP_ERR_NOT_FOUND, "RANK"},
        {"RANK= WORLD_SIZE=2", VP_ERR_FORMAT, "RANK"},
        {"RANK=one WORLD_SIZE=2", VP_ERR_FORMAT, "RANK"},
        {"RANK=-1 WORLD_SIZE=2", VP_ERR_FORMAT, "RANK"},
        {"RANK=+1 WORLD_SIZE=2", VP_ERR_FORMAT, "RANK"},
        {"RANK=1.0 WORLD_SIZE=2", VP_ERR_FORMAT, "RANK"},
        {"RANK=0 WORLD_SIZE=2147483648", VP_ERR_FORMAT, "WORLD_SIZE"},
        {"RANK=0 WORLD_SIZE=99999999999999999999999999999999", VP_ERR_FORMAT, "WORLD_SIZE"},
        {"RANK=2 WORLD_SIZE=2", VP_ERR_RANGE, "RANK"},
        {"RANK=0 WORLD_SIZE=0", VP_ERR_RANGE, "RANK"},
        {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=x", VP_ERR_FORMAT, "LOCAL_RANK"},
        {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=2", VP_ERR_RANGE, "LOCAL_RANK"},
        {"RANK=0 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2", VP_ERR_RANGE, "LOCAL_RANK"},
        {"RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=no", VP_ERR_FORMAT, "LOCAL_WORLD_SIZE"},
        {"OMPI_COMM_WORLD_RANK=0", VP_ERR_NOT_FOUND, "OMPI_COMM_WORLD_SIZE"},
        {"PMI_SIZE=2 " OMPI " RANK=0", VP_ERR_NOT_FOUND, "WORLD_SIZE"}, /* the next launcher does not hide the error */
        {"PMI_SIZE=2", VP_ERR_NOT_FOUND, "PMI_RANK"},
        {"SLURM_STEP_ID=0", VP_ERR_NOT_FOUND, "SLURM_PROCID"},
        {"SLURM_STEP_ID=0 SLURM_NTASKS=2", VP_ERR_NOT_FOUND, "SLURM_PROCID"},
        {"SLURM_STEP_ID=0 SLURM_PROCID=2", VP_ERR_NOT_FOUND, "SLURM_NTASKS"},
        {"SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_NPROCS=2", VP_ERR_RANGE, "SLURM_PROCID"},
        {"SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NPROCS=?", VP_ERR_FORMAT, "SLURM_NPROCS"},
    };
    struct launched r, poison;
    memset(&poison, 0xA5, sizeof poison);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        void *user = (void *)(uintptr_t)table[i].environment;
        check_case("ranks reject: %s", table[i].environment);
        r = poison;
        CHECK_INT(launched_read(look_up, user, &r, &error), table[i].result);
        CHECK_INT(error.code, table[i].result);
        CHECK_TEXT(error.where, table[i].where);
        CHECK(strlen(error.text) > 10 && !strchr(error.text, '\n'));
        CHECK(memcmp(&r, &poison, sizeof r) == 0);
        CHECK_INT(launched_read(look_up, user, &r, NULL), table[i].result);
    }
    check_case("ranks: texts of errors");
    {
        vp_error error = {VP_OK, -1, "", ""};
        CHECK_INT(launched_read(look_up, (void *)(uintptr_t)"RANK=3 WORLD_SIZE=2", &r, &error), VP_ERR_RANGE);
        CHECK_TEXT(error.text, "is 3, but WORLD_SIZE is 2: a rank must be less than that");
        CHECK_INT(launched_read(look_up, (void *)(uintptr_t)"PMI_RANK=3", &r, &error), VP_ERR_NOT_FOUND);
        CHECK_TEXT(error.text, "is not set, but PMI set PMI_RANK: set both or neither");
        CHECK_INT(launched_read(look_up, (void *)(uintptr_t)"SLURM_STEP_ID=3", &r, &error), VP_ERR_NOT_FOUND);
        CHECK_TEXT(error.text, "is not set, but Slurm set SLURM_STEP_ID: set both or neither");
    }
}

static void test_rank_device(void) {
    struct launched r = {"torchrun", NULL, 13, 16, 5, 8};
    check_case("a rank's device is its local rank modulo the visible devices");
    CHECK_INT(launched_device(&r, 8), 5);
    CHECK_INT(launched_device(&r, 4), 1);
    CHECK_INT(launched_device(&r, 1), 0);
    CHECK_INT(launched_device(&r, 0), -1);
    CHECK_INT(launched_device(&r, INT32_MIN), -1);
    r.local_rank = -1; /* without a local rank, only a single device is unambiguous */
    CHECK_INT(launched_device(&r, 1), 0);
    CHECK_INT(launched_device(&r, 2), -1);
    CHECK_INT(launched_device(&r, 0), -1);
}

int main(void) {
    RUN_TESTS(test_rank, test_rank_errors, test_rank_device);
    return check_done("test_launcher");
}
