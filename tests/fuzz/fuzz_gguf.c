/* fuzz_gguf.c: hostile GGUF files: keys, strings, tensors and their values; the texts and the checkpoint that a model makes of them. The input is
 * a file, which is its own mmproj file as well; or the bytes of the first file (u32), that file, and after it the mmproj file that goes with it.
 * libFuzzer entry. */
#include "fuzz.h"
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_tokenizer.h"
#include "vlmprof_gguf.c"

/* every byte that the reader hands out is read */
static uint64_t sum_of(const void *data, uint64_t bytes) {
    uint64_t sum = 0, i;
    for (i = 0; i < bytes; i++) sum += ((const unsigned char *)data)[i];
    return sum;
}
static void check_error(const vp_error *error) {
    MUST(error->text[0] && error->code != VP_OK && vp_utf8_valid_bytes(error->text, strlen(error->text)) == strlen(error->text));
}

static volatile uint64_t seen;
static void read_values(const vp_gguf *gguf) {
    vp_gguf_value value, again;
    uint64_t i;
    for (i = 0; vp_gguf_value_at(gguf, i, &value) == VP_OK; i++) {
        uint64_t offset = 0, count = 0;
        vp_gguf_text text;
        double number;
        char *name;
        seen += sum_of(value.name.text, value.name.bytes) + sum_of(value.data, value.bytes);
        if (value.item == VP_GGUF_STRING)
            for (; vp_gguf_next_text(&value, &offset, &text); count++) seen += sum_of(text.text, text.bytes);
        else
            for (; vp_gguf_next_number(&value, &offset, &number); count++) seen += number > 0;
        MUST(count == value.count && offset == value.bytes);
        if (memchr(value.name.text, 0, value.name.bytes)) continue;
        name = strndup(value.name.text, value.name.bytes);
        MUST(vp_gguf_value_find(gguf, name, &again) == VP_OK && again.data == value.data);
        free(name);
    }
    MUST(vp_gguf_value_at(gguf, i, &value) == VP_ERR_RANGE);
}
static void read_tensors(const vp_gguf *gguf) {
    vp_gguf_tensor tensor;
    uint64_t i;
    for (i = 0; vp_gguf_tensor_at(gguf, i, &tensor) == VP_OK; i++) {
        vp_dtype dtype;
        float values[256];
        MUST(tensor.dimensions >= 1 && tensor.dimensions <= 4);
        seen += sum_of(tensor.name.text, tensor.name.bytes) + sum_of(tensor.data, tensor.bytes);
        if (!vp_gguf_type_dtype(tensor.type, &dtype)) continue;
        MUST(tensor.shape[tensor.dimensions - 1] % vp_dtype_block(dtype) == 0);
        vp_dtype_to_f32(dtype, tensor.data, (size_t)vp_dtype_block(dtype), values);
        seen += values[0] > 0;
    }
    MUST(vp_gguf_tensor_at(gguf, i, &tensor) == VP_ERR_RANGE);
}

/* a file of the model's folder; NULL: refused with a reason */
static char *text_of(const vp_gguf *gguf, const vp_gguf *projector, const char *name, size_t *bytes) {
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL;
    if (vp_gguf_file_text(gguf, projector, name, &text, bytes, &error) == VP_OK) {
        MUST(text && text[*bytes] == 0);
        return text;
    }
    MUST(!text);
    check_error(&error);
    return NULL;
}
static void open_model(const vp_gguf *gguf, const vp_gguf *projector) {
    size_t bytes = 0, preprocessor_bytes = 0;
    char *config = text_of(gguf, projector, "config.json", &bytes), *tokenizer,
         *preprocessor = projector ? text_of(gguf, projector, "preprocessor_config.json", &preprocessor_bytes) : NULL;
    vp_error error = {VP_OK, -1, "", ""};
    vp_model_config shape;
    vp_checkpoint *checkpoint = NULL;
    vp_tokenizer *made = NULL;
    vp_tensor_spec spec;
    vp_tensor tensor;
    if (config && vp_model_config_parse(config, bytes, preprocessor, preprocessor_bytes, &shape, &error) == VP_OK
        && vp_gguf_checkpoint(gguf, projector, &shape, &checkpoint, &error) == VP_OK) {
        for (int64_t i = 0; i < 100 && vp_model_tensor(&shape, i, &spec) == VP_OK; i++)
            if (vp_checkpoint_find(checkpoint, spec.name, &tensor) == VP_OK) seen += sum_of(tensor.data, tensor.bytes);
        vp_checkpoint_close(checkpoint);
    } else if (error.code != VP_OK) check_error(&error);
    free(config);
    free(preprocessor);
    if ((tokenizer = text_of(gguf, projector, "tokenizer.json", &bytes)) != NULL) {
        error.code = VP_OK;
        if (vp_tokenizer_load(tokenizer, bytes, &made, &error) == VP_OK) vp_tokenizer_free(made);
        else check_error(&error);
        free(tokenizer);
    }
    free(text_of(gguf, projector, "chat_template.jinja", &bytes));
}

/* the file of a copy that ends where its memory ends: a byte too far is found; NULL: refused */
static vp_gguf *read_copy(const uint8_t *data, size_t bytes, uint8_t **copy) {
    vp_gguf *gguf = NULL;
    vp_error error = {VP_OK, -1, "", ""};
    *copy = (uint8_t *)malloc(bytes + !bytes);
    MUST(*copy != NULL);
    if (bytes) memcpy(*copy, data, bytes);
    if (vp_gguf_read(*copy, bytes, "fuzzed", &gguf, &error) != VP_OK) {
        MUST(!gguf);
        check_error(&error);
        return NULL;
    }
    read_values(gguf);
    read_tensors(gguf);
    return gguf;
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    uint8_t *copies[2] = {NULL, NULL};
    vp_gguf *gguf, *projector = NULL;
    size_t first = bytes;
    if (bytes >= 8 && memcmp(data, "GGUF", 4) && !memcmp(data + 4, "GGUF", 4)) {
        first = (size_t)(data[0] | data[1] << 8 | data[2] << 16);
        data += 4;
        bytes -= 4;
        if (first > bytes) first = bytes;
        projector = read_copy(data + first, bytes - first, &copies[1]);
    }
    gguf = read_copy(data, first, &copies[0]);
    if (gguf) {
        open_model(gguf, NULL);
        open_model(gguf, projector ? projector : gguf);
    }
    vp_gguf_close(gguf);
    vp_gguf_close(projector);
    free(copies[0]);
    free(copies[1]);
    return 0;
}
