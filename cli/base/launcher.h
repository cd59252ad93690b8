/* launcher.h: the rank of this process among several, from the environment of torchrun, mpirun or srun. */
#ifndef VLMPROF_CLI_LAUNCHER_H
#define VLMPROF_CLI_LAUNCHER_H
#include "vlmprof.h"

struct launched {
    const char *launcher;     /* "torchrun", "Open MPI", "PMI" (MPICH, Intel MPI, Hydra), "Slurm" or "none" */
    const char *ignored;      /* the next launcher that also set its variables, or NULL */
    int32_t rank, world_size; /* 0..world_size - 1; 0 and 1 for a single process */
    int32_t local_rank;       /* index among the processes of this machine; -1: unknown */
    int32_t local_world_size; /* processes on this machine; -1: unknown */
};

/* Returns the text of a variable, or NULL if it is not set. */
typedef const char *(*variable_lookup)(void *user, const char *name);

/* getenv as a variable_lookup. */
const char *environment(void *user, const char *name);

/* Reads what launchers put into the environment.
 * out:     launched  on VP_OK
 * returns: VP_OK, also if there is no launcher; VP_ERR_NOT_FOUND: one variable of a pair is missing; VP_ERR_FORMAT:
 *          a variable is not a number >= 0; VP_ERR_RANGE: a rank is not below its count. error->where is the
 *          variable's name
 * rule:    the first launcher in this order whose variables are set: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE;
 *          OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE; PMI_RANK, PMI_SIZE, MPI_LOCALRANKID,
 *          MPI_LOCALNRANKS; SLURM_PROCID, SLURM_NTASKS (formerly SLURM_NPROCS), SLURM_LOCALID. Slurm's count is used
 *          only inside a step of srun: there SLURM_STEP_ID is a number below 0xfffffff0. (Batch scripts and the
 *          shells of salloc also have SLURM_NTASKS, but step numbers of that value or more.) If a launcher does not
 * report a          local rank, it is taken from a later launcher with the same rank and count */
vp_result launched_read(variable_lookup lookup, void *user, struct launched *launched, vp_error *error);

/* The device of a process: its local rank modulo the number of devices that it sees. This also works with a launcher
 * that shows each process only its own device. Returns -1 if no device is visible, or if several are and the local rank
 * is unknown. */
int32_t launched_device(const struct launched *launched, int32_t visible_count);

#endif
