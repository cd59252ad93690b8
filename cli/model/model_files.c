/* model_files.c: reads the texts and the weights of a model from its files. */
#include "model/model_files.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int model_files_is_gguf(const char *name) {
    struct stat info;
    return stat(name, &info) == 0 && S_ISREG(info.st_mode);
}

static int open_gguf(const char *path, vp_gguf **gguf) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_gguf_open(path, gguf, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), path, result, &error);
}
int model_files_open(const char *name, const char *projector, struct model_files *files) {
    int code = 0;
    memset(files, 0, sizeof *files);
    files->name = name;
    if (!model_files_is_gguf(name))
        return projector ? complain(EXIT_USAGE, "--mmproj %s needs --model FILE.gguf, but %s is not a file",
                                    projector, name)
                         : 0;
    code = open_gguf(name, &files->gguf);
    return code || !projector ? code : open_gguf(projector, &files->projector);
}
void model_files_close(struct model_files *files) {
    vp_gguf_close(files->projector);
    vp_gguf_close(files->gguf);
    files->gguf = files->projector = NULL;
}

int model_files_has(const struct model_files *files, const char *name) {
    if (files->gguf) {
        vp_gguf_value value;
        return !strcmp(name, "config.json") || !strcmp(name, "tokenizer.json")
               || (files->projector && !strcmp(name, "preprocessor_config.json"))
               || (!strcmp(name, "chat_template.jinja")
                   && vp_gguf_value_find(files->gguf, "tokenizer.chat_template", &value) == VP_OK);
    }
    char *path = join_path(files->name, name);
    int there = access(path, F_OK) == 0;
    free(path);
    return there;
}
int model_files_read(const struct model_files *files, const char *name, char **text, size_t *bytes,
                     uint64_t *identity) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    if (!files->gguf) return file_read_in(files->name, name, text, bytes, identity);
    result = vp_gguf_file_text(files->gguf, files->projector, name, text, bytes, &error);
    if (result == VP_OK && identity) *identity = hash_bytes(*identity, *text, *bytes);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), name, result, &error);
}

vp_result model_files_checkpoint(const struct model_files *files, const vp_model_config *config,
                                 vp_checkpoint **checkpoint, vp_error *error) {
    return files->gguf ? vp_gguf_checkpoint(files->gguf, files->projector, config, checkpoint, error)
                       : vp_checkpoint_open(files->name, config, checkpoint, error);
}
