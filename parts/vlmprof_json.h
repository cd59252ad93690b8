/* vlmprof_json.h - v0.2.0 - strict reader of JSON texts - MIT licence
 *
 * Do this:
 *     const char *text = "{\"image\": [640, 480]}";
 *     vp_json_node nodes[8];
 *     vp_json json;
 *     int64_t width = 0;
 *     if (vp_json_parse(text, strlen(text), nodes, 8, &json, NULL, NULL) == VP_OK)
 *         (void)vp_json_to_int(&json, vp_json_at(&json, vp_json_get(&json, 0, "image"), 0), &width);
 *     printf("%d\n", (int)width);
 * It prints 640. The writer is in vlmprof.h.
 * memory:  only the caller's buffers, and less than 3 KiB of stack
 * threads: reentrant; a parsed vp_json is read-only and may be shared
 *
 * Includes vlmprof.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_JSON_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_JSON_H
#define VLMPROF_JSON_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

typedef enum vp_json_type { VP_JSON_NULL, VP_JSON_FALSE, VP_JSON_TRUE, VP_JSON_NUMBER, VP_JSON_STRING, VP_JSON_ARRAY,
                            VP_JSON_OBJECT } vp_json_type;
typedef struct vp_json_node {
    uint8_t type;          /* a vp_json_type; keys are VP_JSON_STRING */
    uint8_t escaped;       /* string: contains a backslash */
    uint32_t count;        /* array: elements; object: members (a member is a key node followed by its value); else 0 */
    uint32_t end;          /* index one past this node's subtree: the next sibling */
    uint64_t start, bytes; /* position and size of the value in the text; a string without its quotes, still escaped */
} vp_json_node;
/* Nodes in document order: node 0 is the top-level value, and a container's children follow it. The caller owns text
 * and nodes. */
typedef struct vp_json { const char *text; const vp_json_node *nodes; uint32_t node_count; } vp_json;
#define VP_JSON_NONE UINT32_MAX /* "no such node"; every reader function accepts it, so lookups can be chained */

/* Parses one JSON text strictly. Strings must be UTF-8, and nesting at most 64 levels. Trailing text, comments, NaN and
 * a byte order mark are errors.
 * in:      text    char [bytes]       need not be NUL-terminated
 * in:      nodes   [capacity]         NULL only checks and counts; contents are unspecified on failure
 * out:     json    may be NULL        on VP_OK
 * out:     needed  number of nodes in the text, may be NULL; on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK; VP_ERR_CAPACITY: the text is valid but has more nodes than fit (always so if nodes is NULL);
 *          VP_ERR_FORMAT: malformed; error->offset is the byte offset; VP_ERR_RANGE: nested deeper than 64 levels, or
 *          more than 2^32 - 2 nodes
 * rule:    one pass, no recursion; duplicate keys are allowed here (see vp_json_has_duplicates)
 * source:  RFC 8259; UTF-8 by table 3-7 of the Unicode standard */
VP_API vp_result vp_json_parse(const char *text, size_t bytes, vp_json_node *nodes, size_t capacity, vp_json *json,
                               size_t *needed, vp_error *error);
/* Index of a member's value, or VP_JSON_NONE (also if `object` is VP_JSON_NONE). Linear time. Keys are compared
 * unescaped; of equal keys the last one counts. */
VP_API uint32_t vp_json_get(const vp_json *json, uint32_t object, const char *key);
/* Index of an element, or VP_JSON_NONE. Linear time; to visit all, start at array + 1 and follow `end`. */
VP_API uint32_t vp_json_at(const vp_json *json, uint32_t array, uint32_t index);
/* Returns 1 if a node is a string whose unescaped text equals `text`. */
VP_API int vp_json_equals(const vp_json *json, uint32_t string, const char *text);
/* The same for a text of `bytes` bytes, which may contain NULs. */
VP_API int vp_json_equals_bytes(const vp_json *json, uint32_t string, const char *text, size_t bytes);
/* Finds the first key, in document order, that repeats an earlier one of the same object. Nested objects are ignored.
 * in:      scratch    uint32 [capacity]   capacity at least nodes[object].count
 * out:     duplicate  node index of that key, or VP_JSON_NONE if all differ; on VP_OK
 * returns: VP_OK, VP_ERR_CAPACITY, VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not an object)
 * rule:    keys are compared unescaped; heap sort: n log n for any keys */
VP_API vp_result vp_json_has_duplicates(const vp_json *json, uint32_t object, uint32_t *scratch, size_t capacity,
                                        uint32_t *duplicate);
/* Unescaped text of a string or key, followed by a NUL. \u0000 becomes a NUL byte inside it: *needed becomes the true
 * length.
 * out:     needed  bytes without the final NUL, may be NULL; on VP_OK and VP_ERR_CAPACITY (out NULL only counts)
 * returns: VP_OK, VP_ERR_CAPACITY (fewer than *needed + 1), VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not a
 *          string)
 * rule:    an escaped surrogate without its partner becomes U+FFFD */
VP_API vp_result vp_json_text(const vp_json *json, uint32_t string, char *out, size_t capacity, size_t *needed);
/* A number as an integer: 3, 3.0, 30e-1 are 3.
 * returns: VP_OK, VP_ERR_FORMAT (not whole), VP_ERR_RANGE (not an int64), VP_ERR_NOT_FOUND (no such node),
 *          VP_ERR_MISMATCH (not a number)
 * numeric: exact; never converted through a double */
VP_API vp_result vp_json_to_int(const vp_json *json, uint32_t number, int64_t *value);
/* A number as a double. returns, numeric: as vp_number_parse; VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not a
 * number) */
VP_API vp_result vp_json_to_double(const vp_json *json, uint32_t number, double *value);

/* The double nearest to a JSON number of any length, ties to even; numbers that are too small become subnormal or 0.
 * returns: VP_OK, VP_ERR_FORMAT (not exactly one JSON number: no blanks, no leading +), VP_ERR_RANGE (beyond the
 *          largest double)
 * numeric: correctly rounded; about 40 ns for up to 15 digits and small exponents, else about a microsecond */
VP_API vp_result vp_number_parse(const char *text, size_t bytes, double *value);
/* Writes one complete JSON value, checked, then copied.
 * returns: (in writer->result) VP_ERR_FORMAT: it is not JSON; VP_ERR_RANGE: more than 64 levels */
VP_API void vp_json_raw(vp_json_writer *writer, const char *text, size_t bytes);
/* Number of bytes before the first unprintable character. */
VP_API size_t vp_utf8_visible_bytes(const char *text, size_t bytes);
/* Writes a code point up to U+10FFFF as UTF-8 into out[4]; returns the number of bytes, 1..4. */
VP_API size_t vp_utf8_put(char *out, uint32_t code);
/* Makes NaN, inf, Infinity and their negatives outside strings, which are not JSON but are written by Python's json and
 * by others, empty texts in place, padded with blanks. Returns their number. text char [bytes] */
VP_API int64_t vp_json_blank_words(char *text, size_t bytes);

VP_EXTERN_C_END
#endif /* VLMPROF_JSON_H */

#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_JSON_IMPLEMENTATION)) \
    && !defined(VLMPROF_JSON_IMPLEMENTATION_DONE)
#define VLMPROF_JSON_IMPLEMENTATION_DONE
#ifndef VP_IMPL_JSON_SHARED
#include "vlmprof.h" /* included before, without an implementation */
#endif
#include <math.h>
#include <string.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH VP_API size_t vp_utf8_visible_bytes(const char *text, size_t bytes) {
    size_t at = 0;
    while (at < bytes && vp_utf8_control(text + at, bytes - at) == 0) {
        const unsigned char first = (unsigned char)text[at];
        at += first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4; /* valid: an invalid byte is a control */
    }
    return at;
}

typedef struct vp_impl_json_scan {
    const unsigned char *text;
    size_t bytes, at;
    vp_json_node *nodes;
    size_t capacity;
    uint32_t node_count;
    int32_t depth, outside; /* outside: depth at which the text will be inserted; 0 for a separate text */
    struct { uint32_t node, count; uint8_t type; } open[VP_IMPL_JSON_DEPTH];
    vp_result code;      /* VP_OK until an error; then `message` is its text and `at` its offset */
    const char *message;
} vp_impl_json_scan;

static int vp_impl_json_wrong(vp_impl_json_scan *scan, vp_result code, const char *message) {
    scan->code = code;
    scan->message = message;
    return 0;
}

/* Counts every node, and stores those that fit. */
static int vp_impl_json_add(vp_impl_json_scan *scan, vp_json_type type, int escaped, size_t start, size_t bytes) {
    if (scan->node_count >= VP_JSON_NONE - 1)
        return vp_impl_json_wrong(scan, VP_ERR_RANGE, "more than 4294967294 values and keys");
    if (scan->node_count < scan->capacity) {
        vp_json_node *node = &scan->nodes[scan->node_count];
        node->type = (uint8_t)type;
        node->escaped = (uint8_t)escaped;
        node->count = 0;
        node->end = scan->node_count + 1;
        node->start = start;
        node->bytes = bytes;
    }
    scan->node_count++;
    return 1;
}

static void vp_impl_json_skip_space(vp_impl_json_scan *scan) {
    while (scan->at < scan->bytes) {
        unsigned character = scan->text[scan->at];
        if (character != ' ' && character != '\n' && character != '\r' && character != '\t') break;
        scan->at++;
    }
}

static int vp_impl_json_hex(unsigned digit) {
    if (digit >= '0' && digit <= '9') return (int)(digit - '0');
    if (digit >= 'a' && digit <= 'f') return (int)(digit - 'a' + 10);
    if (digit >= 'A' && digit <= 'F') return (int)(digit - 'A' + 10);
    return -1;
}

/* `at` is on a backslash; moves past the escape. */
static int vp_impl_json_scan_escape(vp_impl_json_scan *scan) {
    if (scan->bytes - scan->at < 2) {
        scan->at = scan->bytes;
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside a string");
    }
    switch (scan->text[scan->at + 1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': scan->at += 2; return 1;
    case 'u': break;
    default:
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                  "unknown escape; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    }
    for (size_t i = 2; i < 6; i++) {
        if (scan->at + i >= scan->bytes) {
            scan->at = scan->bytes;
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside a string");
        }
        if (vp_impl_json_hex(scan->text[scan->at + i]) < 0)
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected four hexadecimal digits after \\u");
    }
    scan->at += 6;
    return 1;
}

/* `at` is on the opening quote; moves past the closing one. */
static int vp_impl_json_scan_string(vp_impl_json_scan *scan) {
    size_t start = ++scan->at;
    int escaped = 0;
    for (;;) {
        unsigned character;
        scan->at += vp_impl_json_plain_words(scan->text + scan->at, scan->bytes - scan->at);
        /* a few bytes one by one, then whole words again */
        do {
            if (scan->at >= scan->bytes)
                return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside a string");
            character = scan->text[scan->at++];
        } while (character >= 0x20 && character < 0x80 && character != '"' && character != '\\');
        scan->at--;
        if (character == '"') break;
        if (character == '\\') {
            escaped = 1;
            if (!vp_impl_json_scan_escape(scan)) return 0;
        } else if (character < 0x20) {
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "control character inside a string; it must be escaped");
        } else {
            size_t step = vp_impl_json_utf8_step(scan->text + scan->at, scan->bytes - scan->at);
            if (step == 0) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "a string is not valid UTF-8");
            scan->at += step;
        }
    }
    scan->at++;
    return vp_impl_json_add(scan, VP_JSON_STRING, escaped, start, scan->at - 1 - start);
}

static size_t vp_impl_json_digits(const unsigned char *text, size_t left) {
    size_t count = 0;
    while (count < left && text[count] >= '0' && text[count] <= '9') count++;
    return count;
}

/* Returns NULL and sets *length to the length of the longest JSON number at the start of `text`. On failure it returns
 * the error's text, and *length is its offset. */
static const char *vp_impl_json_number(const unsigned char *text, size_t left, size_t *length) {
    size_t at = 0, digits;
    if (at < left && text[at] == '-') at++;
    digits = vp_impl_json_digits(text + at, left - at);
    *length = at;
    if (digits == 0) return "expected a digit";
    if (digits > 1 && text[at] == '0') return "a number must not start with 0";
    at += digits;
    if (at < left && text[at] == '.') {
        at++;
        digits = vp_impl_json_digits(text + at, left - at);
        *length = at;
        if (digits == 0) return "expected a digit after the decimal point";
        at += digits;
    }
    if (at < left && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < left && (text[at] == '+' || text[at] == '-')) at++;
        digits = vp_impl_json_digits(text + at, left - at);
        *length = at;
        if (digits == 0) return "expected a digit in the exponent";
        at += digits;
    }
    *length = at;
    return NULL;
}

static int vp_impl_json_scan_number(vp_impl_json_scan *scan) {
    size_t start = scan->at, length;
    const char *message = vp_impl_json_number(scan->text + start, scan->bytes - start, &length);
    scan->at += length;
    if (message) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, message);
    return vp_impl_json_add(scan, VP_JSON_NUMBER, 0, start, length);
}

static int vp_impl_json_scan_word(vp_impl_json_scan *scan, const char *word, vp_json_type type) {
    size_t length = strlen(word), start = scan->at;
    if (scan->bytes - start < length || memcmp(scan->text + start, word, length))
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected a value");
    scan->at += length;
    return vp_impl_json_add(scan, type, 0, start, length);
}

/* `at` is on '{' or '['. */
static int vp_impl_json_open(vp_impl_json_scan *scan, vp_json_type type) {
    if (scan->depth >= VP_IMPL_JSON_DEPTH)
        return vp_impl_json_wrong(scan, VP_ERR_RANGE, "nested deeper than 64 levels");
    scan->open[scan->depth].node = scan->node_count;
    scan->open[scan->depth].count = 0;
    scan->open[scan->depth].type = (uint8_t)type;
    if (!vp_impl_json_add(scan, type, 0, scan->at, 1)) return 0;
    scan->depth++;
    scan->at++;
    return 1;
}

/* `at` is on '}' or ']'. */
static void vp_impl_json_close(vp_impl_json_scan *scan) {
    scan->at++;
    scan->depth--;
    uint32_t index = scan->open[scan->depth].node;
    if (index < scan->capacity) {
        scan->nodes[index].count = scan->open[scan->depth].count;
        scan->nodes[index].end = scan->node_count;
        scan->nodes[index].bytes = scan->at - scan->nodes[index].start;
    }
}

/* Reads one value, or only the opening of a container (then *opened is set). */
static int vp_impl_json_scan_value(vp_impl_json_scan *scan, int *opened) {
    *opened = 0;
    if (scan->at >= scan->bytes)
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends where a value is expected");
    switch (scan->text[scan->at]) {
    case '{': *opened = 1; return vp_impl_json_open(scan, VP_JSON_OBJECT);
    case '[': *opened = 1; return vp_impl_json_open(scan, VP_JSON_ARRAY);
    case '"': return vp_impl_json_scan_string(scan);
    case 't': return vp_impl_json_scan_word(scan, "true", VP_JSON_TRUE);
    case 'f': return vp_impl_json_scan_word(scan, "false", VP_JSON_FALSE);
    case 'n': return vp_impl_json_scan_word(scan, "null", VP_JSON_NULL);
    case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
        return vp_impl_json_scan_number(scan);
    case 0xEF:
        if (scan->at == 0)
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected a value; a byte order mark is not allowed");
        break;
    default: break;
    }
    return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected a value");
}

/* Reads a key and its colon. */
static int vp_impl_json_scan_key(vp_impl_json_scan *scan, int first) {
    if (scan->at >= scan->bytes) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside an object");
    if (scan->text[scan->at] != '"')
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                  first ? "expected a key in double quotes or '}'"
                                        : "expected a key in double quotes after ','");
    if (!vp_impl_json_scan_string(scan)) return 0;
    vp_impl_json_skip_space(scan);
    if (scan->at >= scan->bytes) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside an object");
    if (scan->text[scan->at] != ':') return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected ':' after a key");
    scan->at++;
    return 1;
}

/* Reads what follows a complete value: closing brackets, then a comma (returns 1: another member follows) or the end
 * (returns 0). */
static int vp_impl_json_after_value(vp_impl_json_scan *scan) {
    for (;;) {
        vp_impl_json_skip_space(scan);
        if (scan->depth == scan->outside)
            return scan->at == scan->bytes
                       ? 0
                       : vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected nothing after the value");
        int object = scan->open[scan->depth - 1].type == VP_JSON_OBJECT;
        if (scan->at >= scan->bytes)
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                      object ? "the text ends inside an object" : "the text ends inside an array");
        if (scan->text[scan->at] == ',') { scan->at++; return 1; }
        if (scan->text[scan->at] != (object ? '}' : ']'))
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                      object ? "expected ',' or '}' after a member"
                                             : "expected ',' or ']' after an element");
        vp_impl_json_close(scan);
    }
}

/* Scans the whole text, without recursion; s->code is the result. */
static void vp_impl_json_scan_text(vp_impl_json_scan *scan) {
    int opened = 0, more = 1;
    scan->depth = scan->outside;
    while (more) {
        vp_impl_json_skip_space(scan);
        if (scan->depth > scan->outside) {
            int object = scan->open[scan->depth - 1].type == VP_JSON_OBJECT;
            if (opened && scan->at < scan->bytes && scan->text[scan->at] == (object ? '}' : ']')) {
                vp_impl_json_close(scan);
                opened = 0;
                more = vp_impl_json_after_value(scan);
                continue;
            }
            scan->open[scan->depth - 1].count++;
            if (object && !vp_impl_json_scan_key(scan, opened)) return;
            vp_impl_json_skip_space(scan);
        }
        if (!vp_impl_json_scan_value(scan, &opened)) return;
        if (!opened) more = vp_impl_json_after_value(scan);
    }
}

VP_API vp_result vp_json_parse(const char *text, size_t bytes, vp_json_node *nodes, size_t capacity, vp_json *json,
                               size_t *needed, vp_error *error) {
    vp_impl_json_scan scan;
    memset(&scan, 0, sizeof scan);
    scan.text = (const unsigned char *)text;
    scan.bytes = text ? bytes : 0;
    scan.nodes = nodes;
    scan.capacity = nodes ? capacity : 0;
    vp_impl_json_scan_text(&scan);
    if (scan.code != VP_OK) return vp_error_set(error, scan.code, (int64_t)scan.at, "JSON", scan.message);
    if (needed) *needed = scan.node_count;
    if (scan.node_count > scan.capacity)
        return vp_error_set(error, VP_ERR_CAPACITY, -1, "JSON",
                            "the text has more values and keys than fit in the node buffer");
    if (json) {
        json->text = text;
        json->nodes = nodes;
        json->node_count = scan.node_count;
    }
    return VP_OK;
}

static const vp_json_node *vp_impl_json_node_of(const vp_json *json, uint32_t index, vp_json_type type) {
    if (!json || index >= json->node_count || json->nodes[index].type != type) return NULL;
    return &json->nodes[index];
}

static uint32_t vp_impl_json_hex4(const char *digits) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value = value * 16 + (uint32_t)vp_impl_json_hex((unsigned char)digits[i]);
    return value;
}

VP_API size_t vp_utf8_put(char *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* Takes one escape, or one byte, from *text (before end; the parser has checked it). Writes its UTF-8 bytes and returns
 * their number (1..4). */
static size_t vp_impl_json_unescape(const char **text, const char *end, char out[4]) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = *text, *found;
    if (at[0] != '\\') { out[0] = at[0]; *text = at + 1; return 1; }
    if (at[1] != 'u') {
        found = strchr(from, at[1]);
        out[0] = found ? to[found - from] : at[1];
        *text = at + 2;
        return 1;
    }
    uint32_t code = vp_impl_json_hex4(at + 2);
    at += 6;
    if (code >= 0xD800 && code <= 0xDFFF) {
        uint32_t low = code < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? vp_impl_json_hex4(at + 2) : 0;
        if (low >= 0xDC00 && low <= 0xDFFF) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            at += 6;
        } else {
            code = 0xFFFD;
        }
    }
    *text = at;
    return vp_utf8_put(out, code);
}

static int vp_impl_json_equals(const vp_json *json, const vp_json_node *node, const char *text, size_t bytes) {
    const char *from = json->text + node->start, *end = from + node->bytes;
    char piece[4];
    size_t made, at = 0;
    if (!node->escaped) return node->bytes == bytes && memcmp(from, text, bytes) == 0;
    while (from < end) {
        made = vp_impl_json_unescape(&from, end, piece);
        if (bytes - at < made || memcmp(text + at, piece, made)) return 0;
        at += made;
    }
    return at == bytes;
}

VP_API int vp_json_equals(const vp_json *json, uint32_t string, const char *text) {
    return text ? vp_json_equals_bytes(json, string, text, strlen(text)) : 0;
}

VP_API int vp_json_equals_bytes(const vp_json *json, uint32_t string, const char *text, size_t bytes) {
    const vp_json_node *node = vp_impl_json_node_of(json, string, VP_JSON_STRING);
    return node && text ? vp_impl_json_equals(json, node, text, bytes) : 0;
}

VP_API uint32_t vp_json_get(const vp_json *json, uint32_t object, const char *key) {
    const vp_json_node *node = vp_impl_json_node_of(json, object, VP_JSON_OBJECT);
    uint32_t index, found = VP_JSON_NONE;
    if (!node || !key) return VP_JSON_NONE;
    size_t bytes = strlen(key);
    for (index = object + 1; index < node->end; index = json->nodes[index + 1].end)
        if (vp_impl_json_equals(json, &json->nodes[index], key, bytes)) found = index + 1;
    return found;
}

/* Order of two keys by their unescaped bytes. Equal keys are ordered by position, so that the order is total and every
 * sort gives the same result. */
static int vp_impl_json_key_order(const vp_json *json, uint32_t left, uint32_t right, int *same) {
    const vp_json_node *left_node = &json->nodes[left], *right_node = &json->nodes[right];
    const char *left_text = json->text + left_node->start, *left_end = left_text + left_node->bytes,
               *right_text = json->text + right_node->start, *right_end = right_text + right_node->bytes;
    char left_piece[4], right_piece[4];
    size_t left_rest = 0, right_rest = 0, left_at = 0, right_at = 0, shorter;
    int order = 0;
    if (!left_node->escaped && !right_node->escaped) {
        shorter = (size_t)(left_node->bytes < right_node->bytes ? left_node->bytes : right_node->bytes);
        order = memcmp(left_text, right_text, shorter);
        if (order == 0) order = (left_node->bytes > right_node->bytes) - (left_node->bytes < right_node->bytes);
    } else {
        while (order == 0) {
            if (left_rest == 0 && left_text < left_end) {
                left_rest = vp_impl_json_unescape(&left_text, left_end, left_piece);
                left_at = 0;
            }
            if (right_rest == 0 && right_text < right_end) {
                right_rest = vp_impl_json_unescape(&right_text, right_end, right_piece);
                right_at = 0;
            }
            if (left_rest == 0 || right_rest == 0) { order = (left_rest > 0) - (right_rest > 0); break; }
            order = (int)(unsigned char)left_piece[left_at++] - (int)(unsigned char)right_piece[right_at++];
            left_rest--;
            right_rest--;
        }
    }
    *same = order == 0;
    return order ? order : left < right ? -1 : left > right;
}

/* One step of heap sort: lets heap[at] sink until no child is greater. */
static void vp_impl_json_sink_key(const vp_json *json, uint32_t *heap, uint32_t at, uint32_t count) {
    int same;
    while (at < count / 2) {
        uint32_t child = 2 * at + 1, moved = heap[at];
        if (child + 1 < count && vp_impl_json_key_order(json, heap[child], heap[child + 1], &same) < 0) child++;
        if (vp_impl_json_key_order(json, moved, heap[child], &same) >= 0) return;
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

VP_API vp_result vp_json_has_duplicates(const vp_json *json, uint32_t object, uint32_t *scratch, size_t capacity,
                                        uint32_t *duplicate) {
    const vp_json_node *node = vp_impl_json_node_of(json, object, VP_JSON_OBJECT);
    uint32_t i, key, swap, found = VP_JSON_NONE;
    int same;
    if (!node) return json && object < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    if (capacity < node->count) return VP_ERR_CAPACITY;
    for (i = 0, key = object + 1; key < node->end; key = json->nodes[key + 1].end) scratch[i++] = key;
    for (i = node->count / 2; i > 0; i--) vp_impl_json_sink_key(json, scratch, i - 1, node->count);
    for (i = node->count; i > 1; i--) {
        swap = scratch[0];
        scratch[0] = scratch[i - 1];
        scratch[i - 1] = swap;
        vp_impl_json_sink_key(json, scratch, 0, i - 1);
    }
    for (i = 1; i < node->count; i++) {
        vp_impl_json_key_order(json, scratch[i - 1], scratch[i], &same);
        if (same && scratch[i] < found) found = scratch[i];
    }
    *duplicate = found;
    return VP_OK;
}

VP_API uint32_t vp_json_at(const vp_json *json, uint32_t array, uint32_t index) {
    const vp_json_node *node = vp_impl_json_node_of(json, array, VP_JSON_ARRAY);
    uint32_t at = array + 1;
    if (!node || index >= node->count) return VP_JSON_NONE;
    while (index--) at = json->nodes[at].end;
    return at;
}

VP_API vp_result vp_json_text(const vp_json *json, uint32_t string, char *out, size_t capacity, size_t *needed) {
    const vp_json_node *node = vp_impl_json_node_of(json, string, VP_JSON_STRING);
    char piece[4];
    size_t total = 0, made;
    if (!node) return json && string < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    const char *from = json->text + node->start;
    const char *end = from + node->bytes;
    if (!node->escaped) total = (size_t)node->bytes;
    else while (from < end) total += vp_impl_json_unescape(&from, end, piece);
    if (needed) *needed = total;
    if (!out || capacity <= total) return VP_ERR_CAPACITY;
    from = json->text + node->start;
    if (!node->escaped) {
        memcpy(out, from, total);
        out += total;
    } else {
        while (from < end) {
            made = vp_impl_json_unescape(&from, end, piece);
            memcpy(out, piece, made);
            out += made;
        }
    }
    *out = 0;
    return VP_OK;
}

/* A number's decimal value: digits times 10^exponent. `digits` is their count, from the first nonzero digit, at
 * `first`, to the last nonzero one. There may be one point between them. */
typedef struct vp_impl_decimal { const char *first; int64_t digits, exponent; int negative; } vp_impl_decimal;

/* text: one valid JSON number. Exponents saturate far beyond any value that the digits of a text could compensate. */
static vp_impl_decimal vp_impl_decimal_of(const char *text, size_t bytes) {
    const int64_t limit = INT64_C(100000000000000000);
    const char *at = text, *end = text + bytes;
    vp_impl_decimal decimal;
    int64_t seen = 0, fraction = 0, exponent = 0;
    int after_point = 0, minus = 0;
    decimal.first = NULL;
    decimal.digits = decimal.exponent = 0;
    decimal.negative = *at == '-';
    for (at += decimal.negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') { after_point = 1; continue; }
        fraction += after_point;
        if (*at != '0' && !decimal.first) decimal.first = at;
        if (decimal.first) seen++;
        if (*at != '0') {
            decimal.digits = seen;
            decimal.exponent = -fraction;
        } else if (!after_point) {
            /* zeros of the integer part after the last nonzero digit so far; unused before the first one */
            decimal.exponent++;
        }
    }
    if (at < end) at++;
    if (at < end && (*at == '-' || *at == '+')) minus = *at++ == '-';
    for (; at < end; at++)
        if (exponent < limit) exponent = exponent * 10 + (*at - '0');
    decimal.exponent += minus ? -exponent : exponent;
    return decimal;
}

VP_API vp_result vp_json_to_int(const vp_json *json, uint32_t number, int64_t *value) {
    const vp_json_node *node = vp_impl_json_node_of(json, number, VP_JSON_NUMBER);
    uint64_t magnitude = 0;
    const char *digit;
    int64_t i;
    if (!node) return json && number < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    vp_impl_decimal decimal = vp_impl_decimal_of(json->text + node->start, (size_t)node->bytes);
    if (decimal.digits > 0) {
        if (decimal.exponent < 0) return VP_ERR_FORMAT;
        if (decimal.digits + decimal.exponent > 19) return VP_ERR_RANGE;
        for (digit = decimal.first, i = 0; i < decimal.digits; digit++) {
            if (*digit == '.') continue;
            magnitude = magnitude * 10 + (uint64_t)(*digit - '0');
            i++;
        }
        for (i = 0; i < decimal.exponent; i++) magnitude *= 10;
        if (magnitude > (uint64_t)INT64_MAX + (uint64_t)decimal.negative) return VP_ERR_RANGE;
    }
    *value = !decimal.negative ? (int64_t)magnitude : magnitude > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)magnitude;
    return VP_OK;
}

/* The double nearest to numerator / denominator * 2^exponent, ties to even; its bits. If it overflows, the bits of
 * infinity. Binary long division, one comparison and subtraction per bit: no estimate could be wrong. */
static uint64_t vp_impl_big_ratio(vp_impl_big *numerator, vp_impl_big *denominator, int64_t exponent) {
    int64_t shift = vp_impl_big_bits(numerator) - vp_impl_big_bits(denominator), bits = 53, i;
    uint64_t quotient = 0;
    if (shift > 0) vp_impl_big_shift(denominator, shift);
    else vp_impl_big_shift(numerator, -shift);
    if (vp_impl_big_compare(numerator, denominator) < 0) {
        vp_impl_big_shift(numerator, 1);
        shift--;
    }
    exponent += shift; /* now 1 <= numerator / denominator < 2; the value is numerator / denominator * 2^exponent */
    if (exponent > 1023) return UINT64_C(0x7FF) << 52;
    if (exponent < -1022) bits = 53 + 1022 + exponent; /* subnormal: fewer bits, none at half of the smallest */
    if (bits < 0) return 0;
    for (i = 0; i < bits; i++) {
        quotient <<= 1;
        if (vp_impl_big_compare(numerator, denominator) >= 0) {
            quotient |= 1;
            vp_impl_big_subtract(numerator, denominator);
        }
        vp_impl_big_shift(numerator, 1);
    }
    int order = vp_impl_big_compare(numerator, denominator);
    if (order > 0 || (order == 0 && (quotient & 1))) quotient++;
    /* the hidden bit, and a carry out of the fraction, add one to the exponent field */
    return exponent < -1022 ? quotient : ((uint64_t)(exponent + 1022) << 52) + quotient;
}

VP_API vp_result vp_number_parse(const char *text, size_t bytes, double *value) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    /* a tie between two doubles has at most 768 digits; for later digits only "not zero" matters */
    const int64_t kept = 800;
    vp_impl_big numerator, denominator;
    uint64_t bits = 0;
    uint32_t chunk = 0, scale = 1;
    const char *digit;
    size_t length;
    int64_t i, taken;
    if (!text || vp_impl_json_number((const unsigned char *)text, bytes, &length) || length != bytes)
        return VP_ERR_FORMAT;
    vp_impl_decimal decimal = vp_impl_decimal_of(text, bytes);
    if (decimal.digits > 0 && decimal.digits + decimal.exponent > 310) return VP_ERR_RANGE;
    if (decimal.digits > 0 && decimal.digits + decimal.exponent > -330) {
        taken = decimal.digits < kept ? decimal.digits : kept;
        vp_impl_big_set(&numerator, 0);
        for (digit = decimal.first, i = 0; i < taken; digit++) {
            if (*digit == '.') continue;
            chunk = chunk * 10 + (uint32_t)(*digit - '0');
            scale *= 10;
            if (++i == taken || scale == 1000000000u) {
                vp_impl_big_multiply(&numerator, scale, chunk);
                chunk = 0;
                scale = 1;
            }
        }
        decimal.exponent += decimal.digits - taken;
        if (decimal.digits > taken) {
            vp_impl_big_multiply(&numerator, 10, 1);
            decimal.exponent--;
        }
        /* digits and power are exact doubles, so one operation is correctly rounded (unless double arithmetic uses
         * wider registers) */
        if (decimal.digits <= 15 && decimal.exponent >= -22 && decimal.exponent <= 22
            && sizeof(double_t) == sizeof(double)) {
            double result = (double)(numerator.word[0] | (numerator.count > 1 ? (uint64_t)numerator.word[1] << 32 : 0));
            result = decimal.exponent < 0 ? result / power[-decimal.exponent] : result * power[decimal.exponent];
            *value = decimal.negative ? -result : result;
            return VP_OK;
        }
        vp_impl_big_set(&denominator, 1);
        vp_impl_big_multiply_power5(decimal.exponent < 0 ? &denominator : &numerator,
                                    decimal.exponent < 0 ? -decimal.exponent : decimal.exponent);
        bits = vp_impl_big_ratio(&numerator, &denominator, decimal.exponent);
        if (bits >> 52 == 0x7FF) return VP_ERR_RANGE;
    }
    bits |= (uint64_t)decimal.negative << 63;
    memcpy(value, &bits, sizeof bits);
    return VP_OK;
}

VP_API vp_result vp_json_to_double(const vp_json *json, uint32_t number, double *value) {
    const vp_json_node *node = vp_impl_json_node_of(json, number, VP_JSON_NUMBER);
    if (!node) return json && number < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    return vp_number_parse(json->text + node->start, (size_t)node->bytes, value);
}

VP_API void vp_json_raw(vp_json_writer *writer, const char *text, size_t bytes) {
    vp_impl_json_scan scan;
    memset(&scan, 0, sizeof scan);
    scan.text = (const unsigned char *)text;
    scan.bytes = text ? bytes : 0;
    scan.outside = writer->depth; /* the whole text must stay readable too */
    vp_impl_json_scan_text(&scan);
    if (scan.code != VP_OK) vp_json_fail(writer, scan.code);
    else vp_json_raw_unchecked(writer, text, bytes);
}
VP_API int64_t vp_json_blank_words(char *text, size_t bytes) {
    static const char *const words[] = {"-Infinity", "Infinity", "-inf", "inf", "-nan", "nan", "-NaN", "NaN"};
    int64_t count = 0;
    int in_string = 0;
    for (size_t at = 0; at < bytes; at++) {
        if (in_string && text[at] == '\\') at++;
        else if (text[at] == '"') in_string = !in_string;
        for (size_t i = 0; !in_string && i < sizeof words / sizeof *words; i++) {
            const size_t length = strlen(words[i]);
            if (bytes - at <= length || memcmp(text + at, words[i], length)) continue;
            if (!memchr(" \t\r\n,:]}", text[at + length], 8)) continue;
            memset(text + at, ' ', length);
            text[at] = text[at + 1] = '"';
            at += length - 1;
            count++;
            break;
        }
    }
    return count;
}
VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
