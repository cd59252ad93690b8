/* vlmprof_chat.h - v0.2.0 - JSON requests to chat servers, and their streamed answers - MIT licence
 *
 * Builds the body of a request with images and a question, and reads the server's answer piece by piece: text, token
 * counts, and the arrival time of each piece. It supports OpenAI's chat completions (vLLM, SGLang, llama.cpp, TGI,
 * transformers serve and hosted servers), and Ollama's chat API. It opens no connection;
 * vlmprof_server.h does.
 *
 *     vp_chat_request request = {"my-model", "What is this?", &image, 1, 32};
 *     char *body;
 *     size_t bytes;
 *     vp_chat_body(VP_CHAT_COMPLETIONS, &request, &body, &bytes, NULL);
 *     ... send body, then for each piece that arrives ...
 *     vp_chat_reply_feed(&reply, piece, piece_bytes, vp_clock_ns(), NULL); */
#ifndef VLMPROF_CHAT_H
#define VLMPROF_CHAT_H
#include "vlmprof.h"

VP_EXTERN_C_BEGIN

/* The APIs of servers: name for options, path below the base URL, description. FIRST for the first row, X for the
 * others. A new API needs a row here and two functions in vlmprof_chat.c: vp_impl_chat_put_NAME, which writes a body,
 * and vp_impl_chat_read_NAME, which reads an object of the answer. */
#define VP_CHAT_APIS(FIRST, X) \
    FIRST(VP_CHAT_COMPLETIONS, chat, "/v1/chat/completions", "OpenAI's chat completions") \
    X(VP_CHAT_OLLAMA, ollama, "/api/chat", "Ollama's own")
#define VP_CHAT_API_ENUM(id, name, path, text) id,
typedef enum vp_chat_api { VP_CHAT_APIS(VP_CHAT_API_ENUM, VP_CHAT_API_ENUM) VP_CHAT_API_LAST_ } vp_chat_api;
#undef VP_CHAT_API_ENUM
/* The name or the path of an API; NULL for an unknown number. */
VP_API const char *vp_chat_api_name(int32_t api);
VP_API const char *vp_chat_api_path(int32_t api);
/* Returns the length of a URL's base: without an API's path, /v1 and trailing slashes. */
VP_API size_t vp_chat_base_bytes(const char *url);
/* returns: VP_OK; VP_ERR_NOT_FOUND: no API has this name */
VP_API vp_result vp_chat_api_find(const char *name, vp_chat_api *api);

/* ---- requests */
/* The bytes of an image file. media_type: "image/png", "image/jpeg" ... */
typedef struct vp_chat_image { const void *bytes; size_t byte_count; const char *media_type; } vp_chat_image;

/* A member of the body that the caller sets: a path and a JSON value. path: keys separated by dots, [N] for item N of a
 * list, counted from 0, [*] for every item:
 *   "mm_processor_kwargs.max_pixels", "messages[0].content[1].image_url.detail". Missing objects on the path
 *   are created; list items are not. A leading "image_url." means that member of every image part
 *   (Ollama's images have no members)
 * value: JSON text ("1024", "\"low\"", "{\"a\":1}", "null"); a text that is not JSON counts as a string */
typedef struct vp_chat_knob { const char *path, *value; } vp_chat_knob;

typedef struct vp_chat_request {
    const char *model, *text;
    const vp_chat_image *images; int32_t image_count;
    /* [image_count] ascending byte offsets into the text; each image precedes the text at its offset. NULL: all images
     * precede the text. Ollama's images have no position; its model puts them first */
    const size_t *image_places;
    int32_t max_tokens; /* 0: the server decides */
    int ignore_eos;     /* 1: generate exactly max_tokens tokens, if the server has a switch for it (ignore_eos and
                         * min_tokens; Ollama has none) */
    int no_stream;      /* 1: request the answer in one piece; TTFT is then unknown */
    int no_cache;       /* 1: ask the server not to use its prompt cache (llama.cpp's cache_prompt; Ollama has no such
                         * switch) */
    const char *cache_salt; /* vLLM's cache_salt; NULL: no salt. Not sent to Ollama */
    const vp_chat_knob *knobs; size_t knob_count; /* applied last, in order */
} vp_chat_request;

/* Builds the body of a POST. Temperature is 0. Chat completions stream with stream_options.include_usage. Members that
 * hosted servers reject (ignore_eos, min_tokens, cache_prompt, cache_salt) are included only if requested.
 * out:     body, bytes  on success only: malloc'ed UTF-8 JSON, followed by an uncounted NUL
 * returns: VP_OK; VP_ERR_RANGE: counts below 0; VP_ERR_FORMAT: a text that is not UTF-8, invalid image_places, or an
 *          invalid knob path (error->where names it); VP_ERR_NOT_FOUND: a path to a missing list item; VP_ERR_MISMATCH:
 *          a path into a value that is not an object or list; VP_ERR_MEMORY
 * threads: reentrant */
VP_API vp_result vp_chat_body(vp_chat_api api, const vp_chat_request *request, char **body, size_t *bytes,
                              vp_error *error);

/* Base64 with padding (RFC 4648). text: capacity vp_base64_bytes(count) + 1, for a final NUL. Returns the length
 * without it. */
VP_API size_t vp_base64_bytes(size_t count);
VP_API size_t vp_base64(const void *bytes, size_t count, char *text);

/* ---- server-sent events (HTML standard, 9.2.6): "data:" lines between empty lines, fed in pieces of any size */
typedef struct vp_sse vp_sse;
/* Called for each event with data; an uncounted NUL follows the data. A result other than VP_OK stops the feed, which
 * returns it. */
typedef vp_result (*vp_sse_event)(void *user, const char *name, const char *data, size_t data_bytes);
struct vp_sse {
    vp_sse_event event; void *user;
    size_t most_bytes;                  /* largest event */
    char *line; size_t line_bytes, line_capacity;
    char *data; size_t data_bytes, data_capacity;
    char name[64];
    int has_data, after_cr, after_start; /* 0 or 1; start: the first line */
};
VP_API void vp_sse_init(vp_sse *sse, size_t most_bytes, vp_sse_event event, void *user);
/* returns: VP_OK; VP_ERR_RANGE: an event is longer than most_bytes; VP_ERR_MEMORY; the callback's error
 * rule:    lines end with LF, CR LF or CR. Comments, ids, unknown fields and an initial byte order mark are skipped. An
 *          event without a final empty line is dropped. Names are cut to 63 bytes. A field "error", as older llama.cpp
 *          servers send it, becomes the data of an event with that name */
VP_API vp_result vp_sse_feed(vp_sse *sse, const char *bytes, size_t count);
VP_API void vp_sse_free(vp_sse *sse);

/* ---- answers */
/* Token counts reported by the server, up to INT32_MAX; -1: not reported. cached: prompt tokens read from a cache */
typedef struct vp_chat_usage {
    int64_t prompt_tokens, completion_tokens, image_tokens, cached_tokens, reasoning_tokens;
} vp_chat_usage;

/* A piece of the answer: its arrival time and the size of its text, including reasoning. It may contain several tokens,
 * or a part of one. */
typedef struct vp_chat_piece { int64_t at_ns, text_bytes; } vp_chat_piece;

typedef struct vp_chat_reply {
    char *text; size_t text_bytes;           /* the answer; may contain NULs; an uncounted NUL follows */
    char *reasoning; size_t reasoning_bytes; /* a reasoning model's text before the answer; "" if none */
    vp_chat_usage usage;
    char *finish_reason, *model; /* texts from the server; NULL: not reported */
    char *timings;               /* the server's own times as a JSON object; NULL: not reported.
                                              * llama.cpp: "timings"; Ollama: its durations; vLLM: "metrics" */
    char *logprobs;              /* chat completions: choices[0].logprobs as JSON, from the first part that
                                              * has them; NULL: no logprobs */
    vp_chat_piece *pieces; size_t piece_count;
    int64_t first_ns, first_output_ns, last_ns; /* first piece, first piece that is not reasoning, last piece; 0:
                                                 * no such piece */
    int64_t first_chunk_ns;                     /* first part of the reply, with or without text; 0: no part */
    int is_streamed;                            /* 1 if it came as a stream of events or lines */
    int is_complete;                            /* 1 if the server reported that the answer is complete */
    char *failure;                              /* the server's error inside a reply, one line; NULL: no error */
    void *state;                                /* private */
} vp_chat_reply;

/* content_type: the header's value: "text/event-stream" (SSE) or "application/x-ndjson" (one JSON object per line). For
 * any other value or NULL, the first byte decides. most_bytes: limit for the text, an event and a whole JSON. returns:
 * VP_OK; VP_ERR_MEMORY */
VP_API vp_result vp_chat_reply_begin(vp_chat_reply *reply, vp_chat_api api, const char *content_type,
                                     size_t most_bytes);
/* Processes bytes of the body that arrived at now_ns.
 * returns: VP_OK; VP_ERR_FORMAT: not JSON, or unexpected JSON; VP_ERR_RANGE: more than most_bytes; VP_ERR_MEMORY
 * rule:    a first piece with a role and empty text does not count. Usage may come with an empty list of choices or
 *          with any piece; the last one counts. An error inside the stream sets reply->failure and is not a format
 *          error */
VP_API vp_result vp_chat_reply_feed(vp_chat_reply *reply, const char *bytes, size_t count, int64_t now_ns,
                                    vp_error *error);
/* Call this at the end of the body. An answer in one piece is parsed here; its time is that of its last byte.
 * returns: VP_OK, also with reply->failure; VP_ERR_FORMAT: not JSON, or the stream ended before the server marked it as
 *          complete ("[DONE]", a finish reason, Ollama's "done"); VP_ERR_RANGE; VP_ERR_MEMORY */
VP_API vp_result vp_chat_reply_end(vp_chat_reply *reply, vp_error *error);
VP_API void vp_chat_reply_free(vp_chat_reply *reply);

/* The message in the body of an HTTP error, on one line: the text of {"error": "..."}, {"error": {"message": "..."}},
 * {"message": "..."} or {"detail": "..."}; any other body unchanged. It is cut to capacity - 1 bytes. */
VP_API void vp_chat_failure(const char *body, size_t bytes, char *out, size_t capacity);

VP_EXTERN_C_END
#endif /* VLMPROF_CHAT_H */
