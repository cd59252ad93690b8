/* model_files.h: reads the texts and the weights of a model: from a folder of transformers, or from a GGUF file and the
 * mmproj file of its tower. Texts have the names of the files in a folder; the weights are a checkpoint. */
#ifndef VLMPROF_CLI_MODEL_FILES_H
#define VLMPROF_CLI_MODEL_FILES_H
#include "vlmprof_checkpoint.h"
#include "vlmprof_gguf.h"

struct model_files {
    const char *name;           /* the folder, or the GGUF file */
    vp_gguf *gguf, *projector;  /* NULL if there is none */
};

/* Returns 1 if the path names a file, which must then be a GGUF file. */
int model_files_is_gguf(const char *name);

/* Opens the files of --model and --mmproj; projector is NULL without --mmproj. A folder is only remembered. Returns 0
 * or an exit code after a message. The caller calls model_files_close, also after a failure. */
int model_files_open(const char *name, const char *projector, struct model_files *files);
void model_files_close(struct model_files *files);

/* Returns 1 if there is a file with this name. */
int model_files_has(const struct model_files *files, const char *name);
/* Reads the file into a malloc'ed text and, if `identity` is not NULL, adds its bytes to *identity. Returns 0 or an
 * exit code. */
int model_files_read(const struct model_files *files, const char *name, char **text, size_t *bytes,
                     uint64_t *identity);

/* The weights, compared with the config. The checkpoint must be closed before the files are. */
vp_result model_files_checkpoint(const struct model_files *files, const vp_model_config *config,
                                 vp_checkpoint **checkpoint, vp_error *error);

#endif
