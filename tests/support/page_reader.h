/* page_reader.h: a reader of pages, as strict as the program's markup is simple. */
#ifndef PAGE_READER_H
#define PAGE_READER_H
#include "check.h"
enum { DEPTH_MOST = 64, TEXTS_MOST = 4096 };
static const char TAGS[] = " html head meta title style body header h1 h2 h3 p nav a section ul li dl dt dd div figure figcaption span code svg g path rect circle text "
                           "main clipPath table thead tbody tfoot tr th td button small i b noscript script details summary ";
static const char OPEN_ENDED[] = " tr th td thead "; /* HTML closes these by itself */
static inline int is_word(const char *words, const char *word) {
    char spaced[40];
    snprintf(spaced, sizeof spaced, " %s ", word);
    return strstr(words, spaced) != NULL;
}
static inline const char *bad_number(const char *tag, const char *end) { /* of the attributes that draw */
    for (const char *p = tag; p + 4 < end; p++)
        if (!strncmp(p, "nan", 3) || !strncmp(p, "inf", 3) || !strncmp(p, "width=\"-", 8) || !strncmp(p, "height=\"-", 9)) return "a number that draws nothing";
    return NULL;
}
static inline const char *check_attributes(const char *p, const char *end) { /* name="value" or a bare name */
    while (p < end) {
        size_t name = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"), value;
        if (!name) return "an attribute without a name";
        if (!strncmp(p, "on", 2) || !strncmp(p, "src", 3)) return "an attribute that acts or loads";
        if (!strncmp(p, "href=", 5) && p[6] != '#') return "a link to elsewhere";
        p += name;
        if (*p == '=') {
            if (p[1] != '"') return "an attribute without quotes";
            value = strcspn(p + 2, "\"");
            if (memchr(p + 2, '<', value)) return "a < in an attribute";
            p += value + 3;
        }
        while (p < end && (*p == ' ' || *p == '/')) p++;
    }
    return NULL;
}
typedef struct text_box { double left, right, top, bottom; } text_box;
static inline double number_after(const char *tag, const char *end, const char *name) {
    const char *p = strstr(tag, name);
    return p && p < end ? strtod(p + strlen(name), NULL) : 0;
}
/* Letters of 11 px are taken as at least 5 px wide: texts that overlap by this measure overlap on every screen. */
static inline const char *check_texts(text_box *boxes, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (boxes[i].left < boxes[k].right && boxes[k].left < boxes[i].right && boxes[i].top < boxes[k].bottom && boxes[k].top < boxes[i].bottom)
                return "a text over another";
    return NULL;
}
static inline int add_text(text_box *boxes, size_t *count, const char *tag, const char *end) {
    size_t letters = 0;
    double x = number_after(tag, end, " x=\""), y = number_after(tag, end, " y=\""), px, shift;
    const char *anchor = strstr(tag, "text-anchor=\""), *turned = strstr(tag, "rotate(");
    for (const char *p = end + 1; *p && *p != '<'; p++) {
        if (*p == '&') p += strcspn(p, ";");
        letters += ((unsigned char)*p & 0xC0) != 0x80;
    }
    if (turned && turned < end) return 1;
    if (*count == TEXTS_MOST) return 0;
    px = 5 * (double)letters;
    shift = anchor && anchor < end ? (anchor[13] == 'e' ? 1 : 0.5) : 0;
    boxes[*count].left = x - shift * px;
    boxes[*count].right = boxes[*count].left + px;
    boxes[*count].top = y - 8;
    boxes[*count].bottom = y + 1;
    ++*count;
    return 1;
}
static inline const char *page_fault(const char *text) {
    static text_box boxes[TEXTS_MOST];
    static char open[DEPTH_MOST][24];
    size_t depth = 0, count = 0;
    const char *wrong;
    if (strncmp(text, "<!DOCTYPE html>\n", 16)) return "no doctype";
    for (const char *p = text + 16; (p = strchr(p, '<')) != NULL;) {
        const char *end = strchr(p, '>');
        int closes = p[1] == '/';
        size_t bytes = strspn(p + 1 + closes, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        char name[24];
        if (!end || !bytes || bytes >= sizeof name) return "a < that begins no tag";
        snprintf(name, sizeof name, "%.*s", (int)bytes, p + 1 + closes);
        if (!is_word(TAGS, name)) return "a tag that is not the page's";
        if (closes) {
            while (depth && strcmp(open[depth - 1], name) && is_word(OPEN_ENDED, open[depth - 1])) depth--;
            if (!depth || strcmp(open[--depth], name)) return "a tag that closes nothing";
        } else {
            const char *from = p + 1 + bytes + (p[1 + bytes] == ' ');
            if ((wrong = check_attributes(from, end)) || (wrong = bad_number(p, end))) return wrong;
            if (!strcmp(name, "text") && !add_text(boxes, &count, p, end)) return "too many texts";
            while (depth && ((is_word(" td th ", name) && is_word(" td th ", open[depth - 1])) || (!strcmp(name, "tr") && is_word(" td th tr ", open[depth - 1]))))
                depth--;
            if (end[-1] != '/' && strcmp(name, "meta")) { if (depth == DEPTH_MOST) return "too deep"; memcpy(open[depth++], name, sizeof name); }
        }
        if (closes && !strcmp(name, "svg")) {
            if ((wrong = check_texts(boxes, count))) return wrong;
            count = 0;
        }
        p = end + 1;
        if (!closes && (!strcmp(name, "script") || !strcmp(name, "style"))) { /* theirs is not markup */
            char closing[64];
            snprintf(closing, sizeof closing, "</%s>", name);
            p = strstr(p, closing);
            if (!p) return "a script or style without an end";
        }
    }
    return depth ? "a tag that is never closed" : NULL;
}
static inline size_t page_count(const char *text, const char *word) {
    size_t count = 0;
    for (; (text = strstr(text, word)) != NULL; text++) count++;
    return count;
}
/* The nonce of the page's head, or "" if its policy is a different one. */
typedef struct page_nonce { char text[17]; } page_nonce;
static inline page_nonce page_nonce_of(const char *text) {
    static const char policy[] = "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-";
    const char *at = strstr(text, policy);
    page_nonce nonce = {""};
    if (at && strspn(at + sizeof policy - 1, "0123456789abcdef") == 16 && !strncmp(at + sizeof policy + 15, "'\">", 3)) memcpy(nonce.text, at + sizeof policy - 1, 16);
    return nonce;
}
/* Zeros the nonce of a page, which is random. Returns what it was. */
static inline page_nonce blank_nonce(char *text) {
    const page_nonce nonce = page_nonce_of(text);
    for (char *at = text; *nonce.text && (at = strstr(at, nonce.text));) memset(at, '0', 16);
    return nonce;
}
/* Exactly one script has the nonce, and it is the page's last element; the others are data. */
static inline int page_scripts_are_right(const char *text) {
    const page_nonce nonce = page_nonce_of(text);
    char tag[40];
    snprintf(tag, sizeof tag, "<script nonce=\"%s\">", nonce.text);
    const char *script = strstr(text, tag);
    const char *end = script ? strstr(script, "</script>") : NULL;
    return *nonce.text && end && !strcmp(end, "</script>\n</body></html>\n") && page_count(text, nonce.text) == 2
           && page_count(text, "<script") == 1 + page_count(text, "<script type=\"application/json\"");
}
/* How many of these parts follow each other in a text, from the first on. */
static inline size_t parts_in_order(const char *text, const char *const *parts, size_t count) {
    size_t found = 0;
    for (; found < count && (text = strstr(text, parts[found])) != NULL; text++) found++;
    return found;
}
static inline void page_is_good(const char *text) {
    const char *wrong = page_fault(text);
    check_note(!wrong, __FILE__, __LINE__, "the page has %s", wrong ? wrong : "");
    CHECK(!strstr(text, "http://") && !strstr(text, "https://") && !strstr(text, "@import") && !strstr(text, "url(h")
          && !strstr(text, " nan") && !strstr(text, ">nan"));
    CHECK(page_scripts_are_right(text) && strstr(text, "prefers-color-scheme:dark") && strstr(text, "@media print"));
}
#endif
