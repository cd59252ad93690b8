/* vlmprof_caption.c: implements what vlmprof_caption.h declares */
#include "vlmprof_caption.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------- built-in tokenizer
 * At each position of a text, all rules are tried. A rule returns the end of its token and its reach, which includes
 * lookahead. The furthest reach wins; of equal reaches, the first. The reference's lexer works like this. Each rule was
 * compared with its output (tests/score/test_caption.c has at least one text for each). */
typedef enum vp_impl_caption_kind {
    VP_IMPL_CAPTION_DROP,  /* punctuation that is not a token */
    VP_IMPL_CAPTION_TEXT,  /* a token unchanged */
    VP_IMPL_CAPTION_SAID,  /* a token with a different spelling */
    VP_IMPL_CAPTION_QUOTES /* a token whose typographic quotes become ASCII */
} vp_impl_caption_kind;
typedef struct vp_impl_caption_lexer {
    const char *at, *end, *stop, *reach, *said; /* the best match at p */
    vp_impl_caption_kind kind;
    /* failed searches are not repeated before these positions: > of a tag, @, a hyphen, the end of a file name */
    const char *no_close, *no_at, *no_hyphen, *no_file;
} vp_impl_caption_lexer;

static void vp_impl_caption_offer(vp_impl_caption_lexer *lexer, const char *stop, const char *reach,
                                  vp_impl_caption_kind kind, const char *said) {
    if (stop <= lexer->at || reach <= lexer->reach) return;
    lexer->stop = stop;
    lexer->reach = reach;
    lexer->kind = kind;
    lexer->said = said;
}
static void vp_impl_caption_token(vp_impl_caption_lexer *lexer, const char *stop) {
    vp_impl_caption_offer(lexer, stop, stop, VP_IMPL_CAPTION_TEXT, NULL);
}

static int vp_impl_caption_upper(int ascii) { return ascii >= 'A' && ascii <= 'Z'; }
static int vp_impl_caption_ascii_letter(int ascii) {
    return (ascii >= 'a' && ascii <= 'z') || vp_impl_caption_upper(ascii);
}
static int vp_impl_caption_ascii_digit(int ascii) { return ascii >= '0' && ascii <= '9'; }
static int vp_impl_caption_ascii_alnum(int ascii) {
    return vp_impl_caption_ascii_letter(ascii) || vp_impl_caption_ascii_digit(ascii);
}
/* Returns 1 if `ascii` is one of the characters of a list; 0 for NUL. */
static int vp_impl_caption_in(int ascii, const char *list) { return ascii && strchr(list, ascii) != NULL; }
/* the byte at `at`; 0 past the end and for non-ASCII bytes */
static int vp_impl_caption_at(const vp_impl_caption_lexer *lexer, const char *at) {
    return at < lexer->end && (unsigned char)*at < 0x80 ? *at : 0;
}

/* the byte `count` bytes after `at` <= end, as above */
static int vp_impl_caption_ahead(const vp_impl_caption_lexer *lexer, const char *at, size_t count) {
    return (size_t)(lexer->end - at) > count ? vp_impl_caption_at(lexer, at + count) : 0;
}

/* If the lower-case ASCII text is at `at`, ignoring case, returns its end; otherwise NULL. */
static const char *vp_impl_caption_says(const vp_impl_caption_lexer *lexer, const char *at, const char *text) {
    for (; *text; text++, at++) {
        int ascii = vp_impl_caption_at(lexer, at);
        if ((vp_impl_caption_upper(ascii) ? ascii + 32 : ascii) != *text) return NULL;
    }
    return at;
}

/* non-ASCII letters with their combining marks, as in the reference */
static int vp_impl_caption_unicode_letter(uint32_t code) {
    if (code > 0xFFFF) return 0; /* in Java these are surrogate pairs, which the reference drops */
    if (code == 0xAD || code == 0x670 || (code >= 0x2C2 && code <= 0x36F) || (code >= 0x483 && code <= 0x487)
        || (code >= 0x64B && code <= 0x65E))
        return 1;
    if (code >= 0x591 && code <= 0x5C7) return code != 0x5BE && code != 0x5C0 && code != 0x5C3 && code != 0x5C6;
    if (code >= 0xE31 && code <= 0xE4E) return code != 0xE3F;
    if (code >= 0x900 && code < 0xE00) return code != 0x964 && code != 0x965 && !vp_unicode_is_digit(code);
    /* the largest scripts, without a table search */
    if ((code >= 0x3041 && code <= 0x3094) || (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0xAC00 && code <= 0xD7A3))
        return 1;
    return vp_unicode_class(code) == VP_UNICODE_LETTER;
}

/* size of the letter at `at`, or 0; below, the same for a letter or digit */
static size_t vp_impl_caption_letter(const vp_impl_caption_lexer *lexer, const char *at) {
    size_t bytes = 0;
    if (at >= lexer->end) return 0;
    if ((unsigned char)*at < 0x80) return (size_t)vp_impl_caption_ascii_letter(*at);
    return vp_impl_caption_unicode_letter(vp_unicode_get(at, lexer->end, &bytes)) ? bytes : 0;
}
static size_t vp_impl_caption_alnum(const vp_impl_caption_lexer *lexer, const char *at) {
    size_t bytes = 0;
    if (at >= lexer->end) return 0;
    if ((unsigned char)*at < 0x80) return (size_t)vp_impl_caption_ascii_alnum(*at);
    return vp_unicode_is_digit(vp_unicode_get(at, lexer->end, &bytes)) ? bytes : vp_impl_caption_letter(lexer, at);
}
static const char *vp_impl_caption_letters(const vp_impl_caption_lexer *lexer, const char *at) {
    size_t bytes;
    while ((bytes = vp_impl_caption_letter(lexer, at)) > 0) at += bytes;
    return at;
}
static const char *vp_impl_caption_alnums(const vp_impl_caption_lexer *lexer, const char *at) {
    size_t bytes;
    while ((bytes = vp_impl_caption_alnum(lexer, at)) > 0) at += bytes;
    return at;
}
static const char *vp_impl_caption_ascii_alnums(const vp_impl_caption_lexer *lexer, const char *at) {
    while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(lexer, at))) at++;
    return at;
}
static const char *vp_impl_caption_digits(const vp_impl_caption_lexer *lexer, const char *at) {
    while (vp_impl_caption_ascii_digit(vp_impl_caption_at(lexer, at))) at++;
    return at;
}
/* the position after an apostrophe (' or U+2019) at `at`, or NULL */
static const char *vp_impl_caption_apostrophe(const vp_impl_caption_lexer *lexer, const char *at) {
    if (vp_impl_caption_at(lexer, at) == '\'') return at + 1;
    return lexer->end - at >= 3 && memcmp(at, "\xE2\x80\x99", 3) == 0 ? at + 3 : NULL;
}

/* Letters, and after the first one also digits. A single . ! ? between them may precede a letter: "a.b.c",
 * "hello.world". */
static const char *vp_impl_caption_word(const vp_impl_caption_lexer *lexer, const char *at) {
    if (!vp_impl_caption_letter(lexer, at)) return at;
    for (;;) {
        at = vp_impl_caption_alnums(lexer, at);
        if (!vp_impl_caption_in(vp_impl_caption_at(lexer, at), ".!?") || !vp_impl_caption_letter(lexer, at + 1))
            return at;
        at++;
    }
}

/* the position after 's 'm 'd 're 've 'll at `at`, or NULL */
static const char *vp_impl_caption_clitic(const vp_impl_caption_lexer *lexer, const char *at) {
    const char *after = vp_impl_caption_apostrophe(lexer, at), *found;
    if (!after) return NULL;
    if ((found = vp_impl_caption_says(lexer, after, "re")) || (found = vp_impl_caption_says(lexer, after, "ve")))
        return found;
    if ((found = vp_impl_caption_says(lexer, after, "ll"))) return found;
    return vp_impl_caption_in(vp_impl_caption_at(lexer, after), "msdMSD") ? after + 1 : NULL;
}

/* The longest match of a short pattern of items {class, least, most}: 9 digit, s blank or hyphen, ~ slash or hyphen,
 * b blank, other characters match themselves. NULL if nothing matches. The items are few and short, which bounds depth
 * and attempts. */
static const char *vp_impl_caption_pattern(const vp_impl_caption_lexer *lexer, const char *at, const char *items) {
    const char *best = NULL, *next = at, *found;
    if (!*items) return at;
    int least = items[1] - '0';
    int most = items[2] - '0';
    for (int count = 0; count <= most; count++) {
        if (count >= least && (found = vp_impl_caption_pattern(lexer, next, items + 3)) && (!best || found > best))
            best = found;
        int ascii = vp_impl_caption_at(lexer, next);
        if (!(*items == '9'   ? vp_impl_caption_ascii_digit(ascii)
              : *items == 's' ? vp_impl_caption_in(ascii, " -")
              : *items == 'b' ? ascii == ' '
              : *items == '~' ? vp_impl_caption_in(ascii, "-/")
                              : ascii == *items))
            break;
        next++;
    }
    return best;
}

/* ---- words with an apostrophe, and words that are split in two */
static void vp_impl_caption_rule_contractions(vp_impl_caption_lexer *lexer, const char *word) {
    static const char *const cut[] = {"cannot", "gonna", "gotta", "lemme", "gimme", "wanna"};
    static const char *const whole[] = {"c'mon", "s'mores", "ev'ry", "li'l",      "nat'l",   "e'er",   "o'o",
                                        "c'est", "cap'n",   "ol'",   "somethin'", "dunkin'", "cont'd", "nor'easter"};
    const char *start = lexer->at, *letters_end, *after, *found;
    int ascii = vp_impl_caption_at(lexer, start);
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
        if ((found = vp_impl_caption_says(lexer, start, cut[i])))
            vp_impl_caption_offer(lexer, start + 3, found, VP_IMPL_CAPTION_TEXT, NULL);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(lexer, start, whole[i]))) vp_impl_caption_token(lexer, found);
    if ((found = vp_impl_caption_clitic(lexer, word)))
        vp_impl_caption_offer(lexer, word, found, VP_IMPL_CAPTION_TEXT, NULL);
    after = vp_impl_caption_apostrophe(lexer, word);
    if (lexer->end - word > 3 && memcmp(word, "\xE2\x80\x98", 3) == 0
        && vp_impl_caption_in(vp_impl_caption_at(lexer, word + 3), "tT"))
        after = word + 3;
    if (!after) return;
    letters_end = vp_impl_caption_letters(lexer, start);
    if (letters_end != word) return; /* only for words of letters */
    if (vp_impl_caption_in(vp_impl_caption_at(lexer, word - 1), "nN")
        && vp_impl_caption_in(vp_impl_caption_at(lexer, after), "tT")) {
        if (word - 1 > start) vp_impl_caption_offer(lexer, word - 1, after + 1, VP_IMPL_CAPTION_TEXT, NULL);
        else {
            const char *stop = vp_impl_caption_letters(lexer, after); /* n't */
            vp_impl_caption_offer(lexer, stop, stop, VP_IMPL_CAPTION_QUOTES, NULL);
        }
    }
    if (word == start + 1 && vp_impl_caption_in(ascii, "yY") && vp_impl_caption_letter(lexer, after))
        vp_impl_caption_offer(lexer, after, after + 1, VP_IMPL_CAPTION_TEXT, NULL);
    if (word == start + 1 && vp_impl_caption_in(ascii, "lLdDjJ")) vp_impl_caption_token(lexer, after);
    ascii = vp_impl_caption_at(lexer, after);
    if (word > start + 1 && vp_impl_caption_in(vp_impl_caption_at(lexer, word - 1), "aeiouyAEIOUY")
        && (vp_impl_caption_in(ascii, "aeiou") || vp_impl_caption_upper(ascii)))
        vp_impl_caption_token(lexer, vp_impl_caption_letters(lexer, after));
}

/* At an apostrophe: a separate 's, 'em, 'n', 'til, '90s, '05. */
static void vp_impl_caption_rule_apostrophe(vp_impl_caption_lexer *lexer) {
    static const char *const whole[] = {"em", "til", "till", "cause", "n"};
    const char *after = vp_impl_caption_apostrophe(lexer, lexer->at), *found;
    if (!after) return;
    found = vp_impl_caption_clitic(lexer, lexer->at);
    if (found && *lexer->at != '\'') vp_impl_caption_offer(lexer, found, found, VP_IMPL_CAPTION_QUOTES, NULL);
    else if (found && !vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, found)))
        vp_impl_caption_offer(lexer, found, found + (found < lexer->end), VP_IMPL_CAPTION_QUOTES, NULL);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(lexer, after, whole[i]))) {
            if (whole[i][0] == 'n' && vp_impl_caption_apostrophe(lexer, found))
                found = vp_impl_caption_apostrophe(lexer, found);
            vp_impl_caption_token(lexer, found);
        }
    if ((found = vp_impl_caption_pattern(lexer, after, "922"))) {
        if (*after > '1' && after[1] == '0' && vp_impl_caption_at(lexer, found) == 's')
            vp_impl_caption_token(lexer, found + 1);
        if (found == lexer->end || vp_impl_caption_at(lexer, found) == ' ') vp_impl_caption_token(lexer, found);
    }
    if (after == lexer->at + 1
        && (vp_impl_caption_says(lexer, after, "tis") || vp_impl_caption_says(lexer, after, "twas")))
        vp_impl_caption_offer(lexer, after + 1, after + 3, VP_IMPL_CAPTION_TEXT, NULL);
}

/* makes " text " in lower case, for look-up in lists; key must have room for bytes + 3 */
static void vp_impl_caption_key(char *key, const char *text, size_t bytes) {
    key[0] = key[bytes + 1] = ' ';
    key[bytes + 2] = 0;
    for (size_t i = 0; i < bytes; i++) key[i + 1] = (char)(vp_impl_caption_upper(text[i]) ? text[i] + 32 : text[i]);
}

/* ---- abbreviations that keep their period: always, or only before a number; "u.s."; and a single letter unless a
 * sentence begins after it */
static void vp_impl_caption_rule_abbreviations(vp_impl_caption_lexer *lexer) {
    static const char always[] =
        " adj adm adv al ala alex apr ariz assn assoc asst atty attys aug ave bancorp bhd bldg blvd brig bros calif "
        "capt cf cie cmdr co col colo comdr conn corp cos cpl ct dak dec dept det dr drs elec ens esq est etc ext feb "
        "fla fri ft ga gen gov govs hon inc ind insp intl invt jan jos jr jul jun kan kans ky lieut lt ltd maj mar md "
        "messrs mfg mich minn mlle mme mo mon mont mr mrs ms msgr mt mtg natl neb nev nov oct okla penn pfc ph.d ed.d "
        "ph plc ppte pptes ppty pptys pres prof profs pte ptes pty ptys pvt rd rep reps rev rt sen sens sep sept seq "
        "sfc sgt spc sq sr st ste supt supts sys tel tenn thu thurs treas tue tues univ va vs vt wed wis wisc wm wyo "
        "cont'd ";
    static const char capital[] = " ark az del ill la mass miss ore pa tex wash ";
    static const char before_number[] = " art ca fig figs no nos op pp prop ";
    static const char starters[] =
        " a about according additionally after an as at but earlier he here however if in it last many more now once "
        "one other our she since so some such that the their then there these they this we what when while yet you ";
    const char *start = lexer->at, *stop = start, *after;
    char key[12];
    size_t bytes;
    int ascii;
    while (vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, stop)) && vp_impl_caption_ahead(lexer, stop, 1) == '.'
           && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(lexer, stop, 2))) stop += 2;
    if (stop > start && vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, stop))
        && vp_impl_caption_ahead(lexer, stop, 1) == '.')
        vp_impl_caption_token(lexer, stop + 2);
    for (bytes = 0, stop = start; bytes < 9; bytes++, stop++) { /* the letters before the last period */
        ascii = vp_impl_caption_at(lexer, stop);
        if (ascii == '.' && !vp_impl_caption_ascii_letter(vp_impl_caption_ahead(lexer, stop, 1))) break;
        if (!vp_impl_caption_ascii_letter(ascii) && ascii != '.' && ascii != '\'') return;
    }
    if (!bytes || vp_impl_caption_at(lexer, stop) != '.') return;
    vp_impl_caption_key(key, start, bytes);
    stop++;
    for (after = stop; vp_impl_caption_at(lexer, after) == ' '; after++) {}
    if (bytes == 1) {
        char next[12];
        size_t length = (size_t)(vp_impl_caption_ascii_alnums(lexer, after) - after);
        ascii = vp_impl_caption_at(lexer, after + length);
        if (after > stop && vp_impl_caption_upper(vp_impl_caption_at(lexer, after)) && length < sizeof next - 2) {
            vp_impl_caption_key(next, after, length);
            if ((ascii == ' ' || after + length == lexer->end) && strstr(starters, next)) return;
            if (ascii == '.' && strstr(" mr ms ", next)) return;
        }
        vp_impl_caption_token(lexer, stop);
    }
    if (strstr(always, key) || (vp_impl_caption_upper(*start) && strstr(capital, key)))
        vp_impl_caption_token(lexer, stop);
    if (vp_impl_caption_at(lexer, stop) == ' ') stop++;
    if (strstr(before_number, key) && vp_impl_caption_ascii_digit(vp_impl_caption_at(lexer, stop)))
        vp_impl_caption_offer(lexer, lexer->at + bytes + 1, stop + 1, VP_IMPL_CAPTION_TEXT, NULL);
}

/* ---- numbers, dates, fractions, telephone numbers, words with hyphens and slashes */
static void vp_impl_caption_rule_numbers(vp_impl_caption_lexer *lexer) {
    static const char *const patterns[] = {"912~11912~11924",          "914s11914/11914",          "914/11914",
                                           "(11923)11b01934s01935",    "+02924s11924s11934s01935", "+02924s11934s01935",
                                           "+02924.11924.11934.11935", "924.11934.11935"};
    const char *at = lexer->at, *stop, *found;
    int ascii = vp_impl_caption_at(lexer, at);
    if (!vp_impl_caption_in(ascii, "+-.,:(") && !vp_impl_caption_ascii_digit(ascii)) return;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if ((found = vp_impl_caption_pattern(lexer, at, patterns[i]))) vp_impl_caption_token(lexer, found);
    at += vp_impl_caption_in(ascii, "+-");
    stop = vp_impl_caption_digits(lexer, at);
    while (vp_impl_caption_in(vp_impl_caption_at(lexer, stop), ".,:")
           && vp_impl_caption_ascii_digit(vp_impl_caption_ahead(lexer, stop, 1)))
        stop = vp_impl_caption_digits(lexer, stop + 1);
    if (stop > at) vp_impl_caption_token(lexer, stop);
}

static void vp_impl_caption_rule_hyphens(vp_impl_caption_lexer *lexer) {
    const char *start = lexer->at, *stop, *part;
    if (!vp_impl_caption_ascii_alnum(vp_impl_caption_at(lexer, start)) || start < lexer->no_hyphen) return;
    stop = start;
    while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(lexer, stop))
           || vp_impl_caption_in(vp_impl_caption_at(lexer, stop), ".,"))
        stop++;
    if (vp_impl_caption_at(lexer, stop) != '-' || !vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(lexer, stop, 1))) {
        lexer->no_hyphen = stop;
        return;
    }
    while (vp_impl_caption_at(lexer, stop) == '-'
           && vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(lexer, stop, 1))) {
        part = stop + 1;
        stop = vp_impl_caption_ascii_alnums(lexer, part);
        while (vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, part))
               && vp_impl_caption_ahead(lexer, part, 1) == '.'
               && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(lexer, part, 2)))
            part += 2;
        if (part + 2 > stop && vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, part))
            && vp_impl_caption_ahead(lexer, part, 1) == '.' && part[-1] == '.')
            stop = part + 2;
    }
    vp_impl_caption_token(lexer, stop);
}

/* one part of a/b/c: letters and digits, then up to two hyphens with letters; NULL if there is no such part */
static const char *vp_impl_caption_slash_part(const vp_impl_caption_lexer *lexer, const char *at) {
    const char *stop = vp_impl_caption_ascii_alnums(lexer, at);
    if (stop == at) return NULL;
    for (int i = 0; i < 2 && vp_impl_caption_at(lexer, stop) == '-'
                    && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(lexer, stop, 1));
         i++)
        for (stop++; vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, stop)); stop++) {}
    return stop;
}

static void vp_impl_caption_rule_compounds(vp_impl_caption_lexer *lexer) {
    const char *start = lexer->at, *stop = vp_impl_caption_slash_part(lexer, start), *next;
    size_t bytes;
    for (int i = 0; stop && i < 2; i++) { /* up to two slashes */
        next = stop + (vp_impl_caption_at(lexer, stop) == '\\');
        if (vp_impl_caption_ascii_digit(stop[-1]) && lexer->end - next > 3 && memcmp(next, "\xE2\x81\x84", 3) == 0
            && vp_impl_caption_ascii_digit(next[3]))
            next += 2;
        else if (vp_impl_caption_at(lexer, next) != '/') break;
        if (!(stop = vp_impl_caption_slash_part(lexer, next + 1))) break;
        vp_impl_caption_token(lexer, stop);
    }
    for (stop = start; vp_impl_caption_upper(vp_impl_caption_at(lexer, stop)); stop++) {}
    while (stop > start) { /* AT&T, A+B */
        next = vp_impl_caption_says(lexer, stop, "&amp;");
        if (!next && vp_impl_caption_in(vp_impl_caption_at(lexer, stop), "&+")) next = stop + 1;
        if (!next || !vp_impl_caption_upper(vp_impl_caption_at(lexer, next))) break;
        for (stop = next; vp_impl_caption_upper(vp_impl_caption_at(lexer, stop)); stop++) {}
        vp_impl_caption_token(lexer, stop);
    }
    stop = start;
    int ascii = vp_impl_caption_at(lexer, start);
    /* o'clock, d'you, O'Neill */
    if (vp_impl_caption_in(ascii, "dlno") || (vp_impl_caption_upper(ascii) && ascii != 'I' && ascii != 'Y')) {
        int digits = vp_impl_caption_in(ascii, "dloDLO");
        next = vp_impl_caption_apostrophe(lexer, start + 1);
        bytes = !next ? 0 : digits ? vp_impl_caption_alnum(lexer, next) : vp_impl_caption_letter(lexer, next);
        if (bytes
            && (digits ? vp_impl_caption_alnum(lexer, next + bytes) : vp_impl_caption_letter(lexer, next + bytes)))
            stop = next;
    }
    stop = vp_impl_caption_alnums(lexer, stop);
    while (stop > start) { /* a_b, and hyphens with letters of any kind */
        bytes = vp_impl_caption_in(vp_impl_caption_at(lexer, stop), "-_") ? 1 : 0;
        if (lexer->end - stop >= 3 && (memcmp(stop, "\xE2\x80\x90", 3) == 0 || memcmp(stop, "\xE2\x80\x91", 3) == 0))
            bytes = 3;
        if (!bytes || !vp_impl_caption_alnum(lexer, stop + bytes)) break;
        stop = vp_impl_caption_alnums(lexer, stop + bytes);
    }
    vp_impl_caption_token(lexer, stop);
    if (stop > start && vp_impl_caption_at(lexer, stop) == '.'
        && vp_impl_caption_in(vp_impl_caption_ahead(lexer, stop, 1), ",;:"))
        vp_impl_caption_offer(lexer, stop + 1, stop + 2, VP_IMPL_CAPTION_TEXT,
                              NULL); /* a period before a comma does not end a sentence */
}

/* ---- addresses, file names, @names, #tags, tags in < > */
static int vp_impl_caption_address(int ascii) { return ascii > ' ' && !vp_impl_caption_in(ascii, "\"<>|()"); }

/* the position after the ASCII or other characters of an address that begins at `at` */
static const char *vp_impl_caption_address_run(const vp_impl_caption_lexer *lexer, const char *at) {
    size_t bytes = 1;
    for (; at < lexer->end; at += bytes) {
        uint32_t code = vp_unicode_get(at, lexer->end, &bytes);
        if (code < 0x80 ? !vp_impl_caption_address((int)code) : vp_unicode_is_space(code)) break;
    }
    return at;
}

/* www.a.com/b, a.com/b: starts after the top-level domain (.com ...); the path has at least two characters */
static const char *vp_impl_caption_path(const vp_impl_caption_lexer *lexer, const char *at) {
    if (vp_impl_caption_at(lexer, at) != '/') return at;
    const char *stop = vp_impl_caption_address_run(lexer, at + 1);
    while (stop > at + 1 && vp_impl_caption_in(stop[-1], ".!?(){},-")) stop--;
    return stop > at + 2 ? stop : at;
}

static void vp_impl_caption_rule_addresses(vp_impl_caption_lexer *lexer) {
    static const char *const endings[] = {"com", "net", "org", "edu"};
    const char *start = lexer->at + (*lexer->at == '<'), *stop, *next, *at_sign = NULL, *found; /* <me@x.org> too */
    if ((stop = vp_impl_caption_says(lexer, start, "http://"))
        || (stop = vp_impl_caption_says(lexer, start, "https://"))) {
        for (next = vp_impl_caption_address_run(lexer, stop); next > stop && vp_impl_caption_in(next[-1], ".!?(){},-");)
            next--;
        if (next > stop + 1 && start == lexer->at) vp_impl_caption_token(lexer, next);
    }
    stop = vp_impl_caption_letters(lexer, start);
    for (next = stop;
         start == lexer->at && vp_impl_caption_at(lexer, next) == '.' && vp_impl_caption_letter(lexer, next + 1);) {
        next = vp_impl_caption_letters(lexer, next + 1);
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
            if (next - start > 4 && next[-4] == '.' && (found = vp_impl_caption_says(lexer, next - 3, endings[i]))
                && found == next)
                vp_impl_caption_token(lexer, vp_impl_caption_path(lexer, next));
    }
    if (!vp_impl_caption_ascii_alnum(vp_impl_caption_at(lexer, start)) || start < lexer->no_at) return;
    stop = vp_impl_caption_address_run(lexer, start);
    for (next = start; next < stop && *next != '{' && *next != '}';) next++;
    stop = next;
    for (next = start; next + 1 < stop; next++)
        if (*next == '@' && next[1] != '.') at_sign = next;
    if (!at_sign) {
        lexer->no_at = stop;
        return;
    }
    for (next = at_sign + 1; next < stop && !(*next == '.' && (next + 1 == stop || next[1] == '.')); next++) {}
    if (start == lexer->at) vp_impl_caption_token(lexer, next);
    else if (vp_impl_caption_at(lexer, next) == '>') vp_impl_caption_token(lexer, next + 1);
}

/* letters and digits with periods between them; the last part is a known extension, followed by the end of the text, .
 * ? ! , or white space */
static void vp_impl_caption_rule_files(vp_impl_caption_lexer *lexer) {
    static const char endings[] =
        " bat bmp c class cgi cpp dll doc docx exe gif gz h htm html jar java jpeg jpg mov mp3 mp4 pdf php pl png ppt "
        "ps py sql tar txt wav x xml zip wma wmv avi flv 3gp mpg ";
    const char *stop = vp_impl_caption_alnums(lexer, lexer->at), *start, *best = NULL;
    char key[8];
    if (stop == lexer->at || lexer->at < lexer->no_file) return;
    while (vp_impl_caption_at(lexer, stop) == '.' && vp_impl_caption_alnum(lexer, stop + 1)) {
        start = stop + 1;
        stop = vp_impl_caption_alnums(lexer, start);
        size_t bytes = (size_t)(stop - start);
        if (bytes > 5) continue;
        vp_impl_caption_key(key, start, bytes);
        int ascii = vp_impl_caption_at(lexer, stop);
        if (strstr(endings, key) && (stop >= lexer->end || vp_impl_caption_in(ascii, " \t\n\r.?!,"))) best = stop;
    }
    if (best) vp_impl_caption_offer(lexer, best, best + (best < lexer->end), VP_IMPL_CAPTION_TEXT, NULL);
    else lexer->no_file = stop;
}

static const char *vp_impl_caption_blanks(const vp_impl_caption_lexer *lexer, const char *at) {
    while (vp_impl_caption_at(lexer, at) == ' ') at++;
    return at;
}
static const char *vp_impl_caption_tag_name(const vp_impl_caption_lexer *lexer, const char *at) {
    if (vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, at)))
        while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(lexer, at))
               || vp_impl_caption_in(vp_impl_caption_at(lexer, at), ":.-_"))
            at++;
    return at;
}

static void vp_impl_caption_rule_tags(vp_impl_caption_lexer *lexer) {
    const char *at = lexer->at + 1, *stop;
    int ascii = vp_impl_caption_at(lexer, at), quote;
    if (vp_impl_caption_in(ascii, "!?")) {
        ascii = vp_impl_caption_ahead(lexer, at, 1);
        if ((!vp_impl_caption_ascii_letter(ascii) && ascii != '-') || at < lexer->no_close) return;
        for (stop = at; stop < lexer->end && *stop != '>' && *stop != '\n' && *stop != '\r'; stop++) {}
        if (vp_impl_caption_at(lexer, stop) == '>') vp_impl_caption_token(lexer, stop + 1);
        else lexer->no_close = stop;
        return;
    }
    at += ascii == '/';
    stop = vp_impl_caption_tag_name(lexer, at);
    if (stop == at) return;
    for (;;) { /* names, some with ='value' or ="value" */
        at = vp_impl_caption_blanks(lexer, stop);
        if (at == stop || !vp_impl_caption_ascii_letter(vp_impl_caption_at(lexer, at))) break;
        stop = vp_impl_caption_tag_name(lexer, at);
        at = vp_impl_caption_blanks(lexer, stop);
        if (vp_impl_caption_at(lexer, at) != '=') continue;
        at = vp_impl_caption_blanks(lexer, at + 1);
        quote = vp_impl_caption_at(lexer, at);
        if (!vp_impl_caption_in(quote, "'\"")) return;
        for (at++; at < lexer->end && *at != quote && *at != '\n' && *at != '\r'; at++) {}
        if (vp_impl_caption_at(lexer, at) != quote) return;
        stop = at + 1;
    }
    at += vp_impl_caption_at(lexer, at) == '/';
    at = vp_impl_caption_blanks(lexer, at);
    if (vp_impl_caption_at(lexer, at) == '>') vp_impl_caption_token(lexer, at + 1);
}

/* ---- smileys: :) ;-P <:( and ^_^ */
static void vp_impl_caption_rule_smileys(vp_impl_caption_lexer *lexer) {
    const char *at = lexer->at;
    int paren = vp_impl_caption_at(lexer, at) == '(', ascii;
    const char *face = at + paren;
    if (vp_impl_caption_in(vp_impl_caption_at(lexer, face), "-^x=~<>'")) {
        face++;
        if (vp_impl_caption_at(lexer, face) == '_' || (paren && vp_impl_caption_at(lexer, face) == '.')) face++;
        else if (!paren) face = lexer->end;
        if (vp_impl_caption_in(vp_impl_caption_at(lexer, face), "-^x=~<>'")
            && (!paren || vp_impl_caption_ahead(lexer, face, 1) == ')'))
            vp_impl_caption_token(lexer, face + 1 + paren);
    }
    at += vp_impl_caption_in(vp_impl_caption_at(lexer, at), "<>");
    if (!vp_impl_caption_in(vp_impl_caption_at(lexer, at), ":;=")) return;
    at += vp_impl_caption_in(vp_impl_caption_ahead(lexer, at, 1), "-o*'")
                  && vp_impl_caption_in(vp_impl_caption_ahead(lexer, at, 2), "()DPdpO\\{@|[]")
              ? 2
              : 1;
    ascii = vp_impl_caption_at(lexer, at);
    if (vp_impl_caption_in(ascii, "()DPdpO\\{@|[]")
        && !vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(lexer, at, 1)))
        vp_impl_caption_offer(lexer, at + 1, at + 1 + (at + 1 < lexer->end), VP_IMPL_CAPTION_TEXT, NULL);
}

/* ---- single characters, and runs of one character */
static void vp_impl_caption_rule_ascii(vp_impl_caption_lexer *lexer, int ascii) {
    static const struct { const char *from, *to;
    } said[] = {{"(", "-lrb-"}, {")", "-rrb-"}, {"[", "-lsb-"}, {"]", "-rsb-"}, {"{", "-lcb-"},
                {"}", "-rcb-"}, {"&amp;", "&"}, {"&lt;", "<"},  {"&gt;", ">"}};
    static const char *const dropped[] = {"&quot;", "&apos;", "&nbsp;", "&mdash;", "&ndash;"};
    static const char *const whole[] = {"c++", "c#", "pro-", "anti-", "c.d.s", "s&p-500", "s&ls"};
    const char *start = lexer->at, *stop = start, *found;
    size_t i, count, dots;
    for (i = 0; i < sizeof said / sizeof *said; i++)
        if ((found = vp_impl_caption_says(lexer, start, said[i].from)))
            vp_impl_caption_offer(lexer, found, found, VP_IMPL_CAPTION_SAID, said[i].to);
    for (i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if ((found = vp_impl_caption_says(lexer, start, dropped[i])))
            vp_impl_caption_offer(lexer, found, found, VP_IMPL_CAPTION_DROP, NULL);
    for (i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(lexer, start, whole[i]))) vp_impl_caption_token(lexer, found);
    if ((ascii == '<' || ascii == '>') && vp_impl_caption_ahead(lexer, start, 1) == ascii)
        vp_impl_caption_token(lexer, start + 2);
    if (ascii == 'F' && vp_impl_caption_ahead(lexer, start, 1) == '#') vp_impl_caption_token(lexer, start + 2);
    if (ascii == '&' && vp_impl_caption_ahead(lexer, start, 1) == '#') {
        stop = vp_impl_caption_digits(lexer, start + 2);
        if (stop > start + 2 && vp_impl_caption_at(lexer, stop) == ';') vp_impl_caption_token(lexer, stop + 1);
    }
    for (stop = start; vp_impl_caption_upper(vp_impl_caption_at(lexer, stop)); stop++) {}
    if (vp_impl_caption_at(lexer, stop) == '$') vp_impl_caption_token(lexer, stop + 1); /* US$ */
    if (ascii == '@'
        && (vp_impl_caption_ascii_letter(vp_impl_caption_ahead(lexer, start, 1))
            || vp_impl_caption_ahead(lexer, start, 1) == '_')) {
        for (stop = start + 1;
             vp_impl_caption_ascii_alnum(vp_impl_caption_at(lexer, stop)) || vp_impl_caption_at(lexer, stop) == '_';
             stop++) {}
        vp_impl_caption_token(lexer, stop);
    }
    if (ascii == '#') vp_impl_caption_token(lexer, vp_impl_caption_letters(lexer, start + 1));
    for (count = 0; count < 3 && vp_impl_caption_ahead(lexer, start, 2 * count) == '\\'
                    && vp_impl_caption_ahead(lexer, start, 2 * count + 1) == '*';)
        count++;
    vp_impl_caption_token(lexer, start + 2 * count);
    for (count = 1; vp_impl_caption_in(ascii, "-@#_*") && vp_impl_caption_at(lexer, start + count) == ascii;) count++;
    if (ascii == '-')
        vp_impl_caption_offer(lexer, start + count, start + count,
                              count < 5 ? VP_IMPL_CAPTION_DROP : VP_IMPL_CAPTION_TEXT, NULL);
    for (dots = 0; dots < 5 && vp_impl_caption_ahead(lexer, start, dots) == '.';) dots++;
    if (dots >= 3) vp_impl_caption_offer(lexer, start + dots, start + dots, VP_IMPL_CAPTION_DROP, NULL);
    if (vp_impl_caption_in(ascii, "@#_*")) vp_impl_caption_token(lexer, start + count);
    for (count = 0; vp_impl_caption_in(vp_impl_caption_at(lexer, start + count), "?!");) count++;
    if (count > 1) vp_impl_caption_token(lexer, start + count);
    if (ascii == '\'' && vp_impl_caption_ahead(lexer, start, 1) == ascii)
        vp_impl_caption_offer(lexer, start + 2, start + 2, VP_IMPL_CAPTION_DROP, NULL);
    if (vp_impl_caption_in(ascii, "'`\".?!,:;"))
        vp_impl_caption_offer(lexer, start + 1, start + 1, VP_IMPL_CAPTION_DROP, NULL);
    else if (ascii > ' ' && ascii != 127) vp_impl_caption_token(lexer, start + 1);
}

/* the ASCII form of a typographic quote, or NULL */
static const char *vp_impl_caption_quote(uint32_t code) {
    switch (code) {
        case '`': case 0x91: case 0x2018: case 0x201B: case 0x2039: return "`";
        case 0x92: case 0x2019: case 0x203A: return "'";
        case 0x93: case 0x201C: case 0xAB: return "``";
        case 0x94: case 0x201D: case 0xBB: return "''";
        case 0x201A: return "\xE2\x80\x9A";
        case 0x201E: return "\xE2\x80\x9E";
        case 0x201F: return "\xE2\x80\x9F";
        default: return NULL;
    }
}

static void vp_impl_caption_rule_quotes(vp_impl_caption_lexer *lexer, uint32_t code, size_t bytes) {
    const char *after = lexer->at + bytes, *one = vp_impl_caption_quote(code), *two;
    size_t more = 1;
    if (!one) return;
    vp_impl_caption_offer(lexer, after, after,
                          *one == '`' || *one == '\'' ? VP_IMPL_CAPTION_DROP : VP_IMPL_CAPTION_SAID, one);
    two = after < lexer->end ? vp_impl_caption_quote(vp_unicode_get(after, lexer->end, &more)) : NULL;
    if (!two) return;
    /* `` and '' */
    if (one[1] == 0 && strcmp(one, two) == 0)
        vp_impl_caption_offer(lexer, after + more, after + more, VP_IMPL_CAPTION_DROP, NULL);
    else vp_impl_caption_offer(lexer, after + more, after + more, VP_IMPL_CAPTION_QUOTES, NULL);
}

/* other non-ASCII characters that are not letters: some are replaced, symbols are tokens, and the rest is dropped */
static void vp_impl_caption_rule_symbols(vp_impl_caption_lexer *lexer, uint32_t code, size_t bytes) {
    static const struct { uint32_t code; const char *to;
    } said[] = {{0x80, "$"},   {0xA2, "cents"}, {0xA3, "#"},   {0xA4, "$"},     {0xBC, "1/4"},  {0xBD, "1/2"},
                {0xBE, "3/4"}, {0x20A0, "$"},   {0x20AC, "$"}, {0x2153, "1/3"}, {0x2154, "2/3"}};
    static const uint16_t symbols[][2] = {
        {0xA1, 0xA1},     {0xA5, 0xA9},     {0xAC, 0xAC},     {0xAE, 0xB4},     {0xB6, 0xB9},     {0xBF, 0xBF},
        {0xD7, 0xD7},     {0xF7, 0xF7},     {0x37E, 0x37E},   {0x387, 0x387},   {0x589, 0x589},   {0x5BE, 0x5BE},
        {0x5C0, 0x5C0},   {0x5C3, 0x5C3},   {0x5C6, 0x5C6},   {0x5F3, 0x5F4},   {0x600, 0x60C},   {0x614, 0x614},
        {0x61B, 0x61B},   {0x61E, 0x61F},   {0x66A, 0x66A},   {0x66D, 0x66D},   {0x6D4, 0x6D4},   {0x700, 0x70D},
        {0x7F6, 0x7F8},   {0x964, 0x965},   {0xE3F, 0xE3F},   {0xE4F, 0xE4F},   {0x1FBD, 0x1FBD}, {0x2016, 0x2017},
        {0x2020, 0x2023}, {0x2030, 0x2038}, {0x203B, 0x203B}, {0x203E, 0x2042}, {0x2044, 0x2044}, {0x2070, 0x2070},
        {0x2074, 0x207E}, {0x2080, 0x208E}, {0x20A4, 0x20A4}, {0x2100, 0x214F}, {0x2155, 0x215E}, {0x2190, 0x2BFF},
        {0x3001, 0x3002}, {0x3012, 0x3012}, {0x30FB, 0x30FB}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20}, {0xFF3B, 0xFF40},
        {0xFF5B, 0xFF65}, {0xFFE0, 0xFFE1}, {0xFFE5, 0xFFE6}};
    const char *next = lexer->at + bytes;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].code == code) vp_impl_caption_offer(lexer, next, next, VP_IMPL_CAPTION_SAID, said[i].to);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (code >= symbols[i][0] && code <= symbols[i][1]) vp_impl_caption_token(lexer, next);
    vp_impl_caption_offer(lexer, next, next, VP_IMPL_CAPTION_DROP, NULL);
}

/* the token at p, which is not white space */
static void vp_impl_caption_match(vp_impl_caption_lexer *lexer) {
    const char *word = vp_impl_caption_word(lexer, lexer->at);
    size_t bytes = 1;
    uint32_t code = vp_unicode_get(lexer->at, lexer->end, &bytes);
    lexer->stop = lexer->reach = lexer->at;
    if (code == '<') {
        vp_impl_caption_rule_tags(lexer);
        vp_impl_caption_rule_addresses(lexer);
    }
    if (word > lexer->at) {
        vp_impl_caption_rule_contractions(lexer, word);
        vp_impl_caption_token(lexer, word);
        vp_impl_caption_rule_abbreviations(lexer);
    }
    vp_impl_caption_rule_apostrophe(lexer);
    if (vp_impl_caption_alnum(lexer, lexer->at)) {
        vp_impl_caption_rule_addresses(lexer);
        vp_impl_caption_rule_files(lexer);
        vp_impl_caption_rule_hyphens(lexer);
        vp_impl_caption_rule_compounds(lexer);
    }
    if (code < 0x80) {
        vp_impl_caption_rule_numbers(lexer);
        vp_impl_caption_rule_smileys(lexer);
        vp_impl_caption_rule_ascii(lexer, (int)code);
    }
    if (code == '\'' && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(lexer, lexer->at, 1))
        && lexer->end - lexer->at > 2 && lexer->at[2] != ' ')
        vp_impl_caption_offer(lexer, lexer->at + 1, lexer->at + 3, VP_IMPL_CAPTION_DROP, NULL); /* an opening quote */
    vp_impl_caption_rule_quotes(lexer, code, bytes);
    if (code >= 0x80) vp_impl_caption_rule_symbols(lexer, code, bytes);
    else vp_impl_caption_offer(lexer, lexer->at + 1, lexer->at + 1, VP_IMPL_CAPTION_DROP, NULL);
}

/* ---- tokens to text */
/* Texts are produced twice, first only to count, so that a buffer that is too small is not touched. */
typedef struct vp_impl_caption_text { char *out; size_t bytes; } vp_impl_caption_text; /* out NULL: count */

static void vp_impl_caption_add(vp_impl_caption_text *out, const char *text, size_t bytes) {
    if (out->out && bytes) memcpy(out->out + out->bytes, text, bytes);
    out->bytes += bytes;
}

static void vp_impl_caption_add_code(vp_impl_caption_text *out, uint32_t code) {
    char buffer[4];
    vp_impl_caption_add(out, buffer, vp_unicode_put(buffer, code));
}

static void vp_impl_caption_say(vp_impl_caption_text *out, const char *text) {
    vp_impl_caption_add(out, text, strlen(text));
}

static void vp_impl_caption_emit(const vp_impl_caption_lexer *lexer, vp_impl_caption_text *out) {
    const char *at = lexer->at;
    const size_t before = out->bytes;
    size_t bytes;
    if (lexer->kind == VP_IMPL_CAPTION_DROP) return;
    int tag = *at == '<' && lexer->stop[-1] == '>';
    if (out->bytes) vp_impl_caption_add(out, " ", 1);
    if (lexer->kind == VP_IMPL_CAPTION_SAID) {
        vp_impl_caption_say(out, lexer->said);
        return;
    }
    for (; at < lexer->stop; at += bytes) {
        uint32_t code = vp_unicode_get(at, lexer->stop, &bytes);
        const char *quote = lexer->kind == VP_IMPL_CAPTION_QUOTES ? vp_impl_caption_quote(code) : NULL;
        if (quote) vp_impl_caption_say(out, quote);
        else if (code == '&' && lexer->stop - at >= 5 && memcmp(at, "&amp;", 5) == 0) {
            vp_impl_caption_say(out, "&");
            bytes = 5;
        } else if (code == '(' && !tag) vp_impl_caption_say(out, "-lrb-");
        else if (code == ')' && !tag) vp_impl_caption_say(out, "-rrb-");
        /* a blank inside a token does not split it */
        else if (vp_unicode_is_space(code)) vp_impl_caption_say(out, "\xC2\xA0");
        else if (code == 0x130) vp_impl_caption_say(out, "i\xCC\x87");
        else if (code == 0x3A3)
            vp_impl_caption_add_code(out, vp_unicode_lower_sigma(lexer->at, at, lexer->stop, NULL, NULL));
        else if (code > 32 && code != 127 && code != 0xAD && code < 0x110000) /* no soft hyphens, no stray bytes */
            vp_impl_caption_add_code(out, vp_unicode_lower(code));
    }
    /* soft hyphens and stray bytes are not a word by themselves */
    if (out->bytes == before + (before > 0)) out->bytes = before;
}

static void vp_impl_caption_tokens(const char *text, size_t bytes, vp_impl_caption_text *out) {
    vp_impl_caption_lexer lexer = {0};
    size_t length = 1;
    lexer.end = text + bytes;
    lexer.no_close = lexer.no_at = lexer.no_hyphen = lexer.no_file = text;
    for (lexer.at = text; lexer.at < lexer.end; lexer.at = lexer.stop) {
        if (vp_unicode_is_space(vp_unicode_get(lexer.at, lexer.end, &length))) {
            lexer.stop = lexer.at + length;
            continue;
        }
        vp_impl_caption_match(&lexer);
        vp_impl_caption_emit(&lexer, out);
    }
}

VP_API vp_result vp_caption_tokenise(const char *text, size_t bytes, char *out, size_t capacity, size_t *needed) {
    vp_impl_caption_text text_out;
    if ((!text && bytes) || (!out && capacity)) return VP_ERR_RANGE;
    if (!text) text = "";
    text_out.out = NULL;
    text_out.bytes = 0;
    vp_impl_caption_tokens(text, bytes, &text_out);
    if (needed) *needed = text_out.bytes;
    if (text_out.bytes >= capacity) return VP_ERR_CAPACITY;
    text_out.out = out;
    text_out.bytes = 0;
    vp_impl_caption_tokens(text, bytes, &text_out);
    out[text_out.bytes] = 0;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------------------- corpus scores
 * Words get the numbers 0, 1, 2 ... in order of their first occurrence. An n-gram of 2 to 4 words gets the next free
 * number. Its key is the number of the n-gram without its last word and the number of that word. So two n-grams have
 * the same number only if they consist of the same words. */
enum { VP_IMPL_CAPTION_N = 4 };
#define VP_IMPL_CAPTION_WORDS_MAX ((size_t)1 << 29)

typedef struct vp_impl_caption_list { void *data; size_t count, capacity; } vp_impl_caption_list;
/* start: in the pool of letters */
typedef struct vp_impl_caption_entry { size_t start, bytes; uint64_t hash; } vp_impl_caption_entry;
/* id 0: a free slot */
typedef struct vp_impl_caption_gram { uint32_t prefix, word, id; } vp_impl_caption_gram;
/* the words of a text: an index into `numbers` */
typedef struct vp_impl_caption_line { size_t first, count; } vp_impl_caption_line;
typedef struct vp_impl_caption_book {
    vp_impl_caption_list letters, words, numbers, lines;
    uint32_t *word_table; /* number + 1, or 0 */
    size_t word_table_size;
    vp_impl_caption_gram *gram_table;
    size_t gram_table_size, gram_count;
    /* [n - 1][i]: the n-gram that begins at index i of `numbers`; [0] are the numbers themselves */
    uint32_t *grams[VP_IMPL_CAPTION_N];
    uint32_t *document_count, *in_candidate, *in_reference; /* [numbers of words and n-grams] */
    /* [4 * words of the longest text] distinct n-grams */
    uint32_t *candidate_list, *reference_list;
    double *log_of; /* [images + 1] log of a count */
    size_t line_words_max;
} vp_impl_caption_book;

/* makes room for `more` elements after the last; returns 0 without memory, and the list is then unchanged */
static int vp_impl_caption_reserve(vp_impl_caption_list *list, size_t more, size_t element_bytes) {
    size_t needed, bytes, capacity = list->capacity < 64 ? 64 : list->capacity;
    void *data;
    if (!vp_size_add(list->count, more, &needed)) return 0;
    if (list->data && needed <= list->capacity) return 1;
    while (capacity < needed) capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    if (!vp_size_multiply(capacity, element_bytes, &bytes) || !(data = VP_REALLOC(list->data, bytes))) return 0;
    list->data = data;
    list->capacity = capacity;
    return 1;
}

static uint64_t vp_impl_caption_mix(uint64_t first, uint64_t second) {
    first = (first ^ second) * UINT64_C(0x9E3779B97F4A7C15);
    first = (first ^ first >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return first ^ first >> 29;
}

static uint64_t vp_impl_caption_hash(const char *text, size_t bytes) {
    uint64_t hash = bytes, part;
    for (; bytes >= 8; text += 8, bytes -= 8) {
        memcpy(&part, text, 8);
        hash = vp_impl_caption_mix(hash, part);
    }
    part = 0;
    if (bytes) memcpy(&part, text, bytes);
    return vp_impl_caption_mix(hash, part);
}

/* doubles the size; sizes are powers of two, and tables are at most half full */
static int vp_impl_caption_grow_words(vp_impl_caption_book *book) {
    const vp_impl_caption_entry *words = (const vp_impl_caption_entry *)book->words.data;
    size_t size = book->word_table_size ? book->word_table_size * 2 : 1024, i, at;
    uint32_t *table;
    if (size < book->word_table_size || !(table = (uint32_t *)VP_CALLOC(size, sizeof *table))) return 0;
    for (i = 0; i < book->words.count; i++) {
        for (at = (size_t)words[i].hash & (size - 1); table[at]; at = (at + 1) & (size - 1)) {}
        table[at] = (uint32_t)i + 1;
    }
    VP_FREE(book->word_table);
    book->word_table = table;
    book->word_table_size = size;
    return 1;
}

/* Appends the number of a word. Returns 0 without memory. */
static int vp_impl_caption_add_word(vp_impl_caption_book *book, const char *text, size_t bytes) {
    uint64_t hash = vp_impl_caption_hash(text, bytes);
    vp_impl_caption_entry *word;
    size_t at;
    if (book->words.count * 2 >= book->word_table_size && !vp_impl_caption_grow_words(book)) return 0;
    if (!vp_impl_caption_reserve(&book->numbers, 1, sizeof(uint32_t))) return 0;
    for (at = (size_t)hash & (book->word_table_size - 1); book->word_table[at];
         at = (at + 1) & (book->word_table_size - 1)) {
        word = (vp_impl_caption_entry *)book->words.data + (book->word_table[at] - 1);
        if (word->hash == hash && word->bytes == bytes
            && (!bytes || memcmp((char *)book->letters.data + word->start, text, bytes) == 0))
            break;
    }
    if (!book->word_table[at]) {
        if (!vp_impl_caption_reserve(&book->words, 1, sizeof *word)
            || !vp_impl_caption_reserve(&book->letters, bytes, 1))
            return 0;
        word = (vp_impl_caption_entry *)book->words.data + book->words.count++;
        word->start = book->letters.count;
        word->bytes = bytes;
        word->hash = hash;
        if (bytes) memcpy((char *)book->letters.data + word->start, text, bytes);
        book->letters.count += bytes;
        book->word_table[at] = (uint32_t)book->words.count;
    }
    ((uint32_t *)book->numbers.data)[book->numbers.count++] = book->word_table[at] - 1;
    return 1;
}

static vp_result vp_impl_caption_full(const vp_impl_caption_book *book) {
    return book->numbers.count >= VP_IMPL_CAPTION_WORDS_MAX ? VP_ERR_RANGE : VP_OK;
}

/* Splits a tokenised text. */
static vp_result vp_impl_caption_split(vp_impl_caption_book *book, const vp_caption_text *caption) {
    const char *at = caption->text ? caption->text : "", *end = at + caption->bytes, *start = at;
    vp_impl_caption_line line = {0};
    size_t length = 1;
    if (!caption->text && caption->bytes) return VP_ERR_RANGE;
    line.first = book->numbers.count;
    for (;; at += length) {
        uint32_t code = at < end ? vp_unicode_get(at, end, &length) : ' ';
        if (!vp_unicode_is_space(code)) continue;
        if (vp_impl_caption_full(book) != VP_OK) return VP_ERR_RANGE;
        if (at > start && !vp_impl_caption_add_word(book, start, (size_t)(at - start))) return VP_ERR_MEMORY;
        if (at >= end) break;
        start = at + length;
    }
    line.count = book->numbers.count - line.first;
    if (line.count > book->line_words_max) book->line_words_max = line.count;
    if (!vp_impl_caption_reserve(&book->lines, 1, sizeof line)) return VP_ERR_MEMORY;
    ((vp_impl_caption_line *)book->lines.data)[book->lines.count++] = line;
    return VP_OK;
}

static int vp_impl_caption_grow_grams(vp_impl_caption_book *book) {
    size_t size = book->gram_table_size ? book->gram_table_size * 2 : 1024, i, at;
    vp_impl_caption_gram *table;
    if (size < book->gram_table_size || !(table = (vp_impl_caption_gram *)VP_CALLOC(size, sizeof *table))) return 0;
    for (i = 0; i < book->gram_table_size; i++) {
        const vp_impl_caption_gram *gram = &book->gram_table[i];
        if (!gram->id) continue;
        at = (size_t)vp_impl_caption_mix(gram->prefix, gram->word) & (size - 1);
        while (table[at].id) at = (at + 1) & (size - 1);
        table[at] = *gram;
    }
    VP_FREE(book->gram_table);
    book->gram_table = table;
    book->gram_table_size = size;
    return 1;
}

/* the number of an n-gram; 0 without memory */
static uint32_t vp_impl_caption_gram_number(vp_impl_caption_book *book, uint32_t prefix, uint32_t word) {
    vp_impl_caption_gram *gram;
    if (book->gram_count * 2 >= book->gram_table_size && !vp_impl_caption_grow_grams(book)) return 0;
    size_t at = (size_t)vp_impl_caption_mix(prefix, word) & (book->gram_table_size - 1);
    for (;; at = (at + 1) & (book->gram_table_size - 1)) {
        gram = &book->gram_table[at];
        if (!gram->id) break;
        if (gram->prefix == prefix && gram->word == word) return gram->id;
    }
    gram->prefix = prefix;
    gram->word = word;
    gram->id = (uint32_t)(book->words.count + book->gram_count++);
    return gram->id;
}

static vp_result vp_impl_caption_number_grams(vp_impl_caption_book *book) {
    const vp_impl_caption_line *lines = (const vp_impl_caption_line *)book->lines.data;
    book->grams[0] = (uint32_t *)book->numbers.data;
    for (size_t n = 1; n < VP_IMPL_CAPTION_N; n++) {
        book->grams[n] = (uint32_t *)VP_MALLOC((book->numbers.count + 1) * sizeof(uint32_t));
        if (!book->grams[n]) return VP_ERR_MEMORY;
    }
    for (size_t line = 0; line < book->lines.count; line++)
        for (size_t n = 1; n < VP_IMPL_CAPTION_N; n++)
            for (size_t i = 0; i + n < lines[line].count; i++) {
                size_t at = lines[line].first + i;
                book->grams[n][at] = vp_impl_caption_gram_number(book, book->grams[n - 1][at], book->grams[0][at + n]);
                if (!book->grams[n][at]) return VP_ERR_MEMORY;
            }
    return VP_OK;
}

/* Allocates everything that scoring needs, so that nothing later can fail. */
static vp_result vp_impl_caption_prepare(vp_impl_caption_book *book, size_t image_count) {
    size_t numbers = book->words.count + book->gram_count + 1, longest = book->line_words_max + 1, i, bytes;
    if (!vp_size_multiply(image_count, sizeof(double), &bytes) || !vp_size_add(bytes, sizeof(double), &bytes))
        return VP_ERR_MEMORY;
    book->document_count = (uint32_t *)VP_CALLOC(numbers, sizeof(uint32_t));
    book->in_candidate = (uint32_t *)VP_CALLOC(numbers, sizeof(uint32_t));
    book->in_reference = (uint32_t *)VP_CALLOC(numbers, sizeof(uint32_t));
    book->candidate_list = (uint32_t *)VP_CALLOC(longest, VP_IMPL_CAPTION_N * sizeof(uint32_t));
    book->reference_list = (uint32_t *)VP_CALLOC(longest, VP_IMPL_CAPTION_N * sizeof(uint32_t));
    book->log_of = (double *)VP_MALLOC(bytes);
    if (!book->document_count || !book->in_candidate || !book->in_reference || !book->candidate_list
        || !book->reference_list || !book->log_of)
        return VP_ERR_MEMORY;
    /* an n-gram without a reference counts as occurring in one image */
    for (i = 0; i <= image_count; i++) book->log_of[i] = i ? log((double)i) : 0.0;
    return VP_OK;
}

static void vp_impl_caption_release(vp_impl_caption_book *book) {
    VP_FREE(book->letters.data);
    VP_FREE(book->words.data);
    VP_FREE(book->numbers.data);
    VP_FREE(book->lines.data);
    VP_FREE(book->word_table);
    VP_FREE(book->gram_table);
    for (size_t n = 1; n < VP_IMPL_CAPTION_N; n++) VP_FREE(book->grams[n]);
    VP_FREE(book->document_count);
    VP_FREE(book->in_candidate);
    VP_FREE(book->in_reference);
    VP_FREE(book->candidate_list);
    VP_FREE(book->reference_list);
    VP_FREE(book->log_of);
}

/* counts the images whose references contain an n-gram; in_candidate temporarily contains the last such image */
static void vp_impl_caption_count_documents(vp_impl_caption_book *book, const vp_caption_image *images,
                                            size_t image_count) {
    const vp_impl_caption_line *line = (const vp_impl_caption_line *)book->lines.data;
    for (size_t image = 0; image < image_count; image++) {
        line++; /* the candidate */
        for (size_t reference = 0; reference < images[image].reference_count; reference++, line++)
            for (size_t n = 0; n < VP_IMPL_CAPTION_N; n++)
                for (size_t i = 0; i + n < line->count; i++) {
                    uint32_t number = book->grams[n][line->first + i];
                    if (book->in_candidate[number] == image + 1) continue;
                    book->in_candidate[number] = (uint32_t)(image + 1);
                    book->document_count[number]++;
                }
    }
    memset(book->in_candidate, 0, (book->words.count + book->gram_count + 1) * sizeof(uint32_t));
}

/* Counts a text's n-grams. list receives the distinct ones in text order; first[n] .. first[n + 1] are those of n + 1
 * words. */
static void vp_impl_caption_count(const vp_impl_caption_book *book, const vp_impl_caption_line *line, uint32_t *counts,
                                  uint32_t *list, size_t first[VP_IMPL_CAPTION_N + 1]) {
    size_t n, i, found = 0;
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        first[n] = found;
        for (i = 0; i + n < line->count; i++) {
            uint32_t number = book->grams[n][line->first + i];
            if (!counts[number]++) list[found++] = number;
        }
    }
    first[n] = found;
}

/* CIDEr-D of one reference, summed over n. */
static double vp_impl_caption_similarity(vp_impl_caption_book *book, const vp_impl_caption_line *candidate,
                                         const vp_impl_caption_line *reference, const double norms[VP_IMPL_CAPTION_N],
                                         double log_images) {
    size_t first[VP_IMPL_CAPTION_N + 1], n, i;
    const double bigrams = (double)(candidate->count ? candidate->count - 1 : 0),
                 other = (double)(reference->count ? reference->count - 1 : 0);
    const double penalty = exp(-((bigrams - other) * (bigrams - other)) / 72.0);
    double sum = 0.0;
    vp_impl_caption_count(book, reference, book->in_reference, book->reference_list, first);
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        double product = 0.0, norm = 0.0;
        for (i = first[n]; i < first[n + 1]; i++) {
            const uint32_t number = book->reference_list[i], reference_times = book->in_reference[number],
                           candidate_times = book->in_candidate[number];
            const double weight = log_images - book->log_of[book->document_count[number]],
                         mine = candidate_times * weight, theirs = reference_times * weight;
            product += (mine < theirs ? mine : theirs) * theirs;
            norm += theirs * theirs;
            book->in_reference[number] = 0;
        }
        norm = sqrt(norm);
        if (norms[n] != 0.0 && norm != 0.0) product /= norms[n] * norm;
        sum += product * penalty;
    }
    return sum;
}

/* CIDEr-D of one image: `candidate` is its line, and the lines of its references follow. */
static double vp_impl_caption_image(vp_impl_caption_book *book, const vp_impl_caption_line *candidate,
                                    size_t reference_count, double log_images) {
    size_t first[VP_IMPL_CAPTION_N + 1], n, i;
    double norms[VP_IMPL_CAPTION_N] = {0.0, 0.0, 0.0, 0.0}, similarity = 0.0;
    vp_impl_caption_count(book, candidate, book->in_candidate, book->candidate_list, first);
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        for (i = first[n]; i < first[n + 1]; i++) {
            const uint32_t number = book->candidate_list[i];
            const double weight =
                book->in_candidate[number] * (log_images - book->log_of[book->document_count[number]]);
            norms[n] += weight * weight;
        }
        norms[n] = sqrt(norms[n]);
    }
    for (i = 1; i <= reference_count; i++)
        similarity += vp_impl_caption_similarity(book, candidate, candidate + i, norms, log_images);
    for (i = 0; i < first[VP_IMPL_CAPTION_N]; i++) book->in_candidate[book->candidate_list[i]] = 0;
    return similarity / (double)VP_IMPL_CAPTION_N / (double)reference_count * 10.0;
}

static void vp_impl_caption_score(vp_impl_caption_book *book, const vp_caption_image *images, size_t image_count,
                                  double *each, double *corpus) {
    const vp_impl_caption_line *line = (const vp_impl_caption_line *)book->lines.data;
    double sum = 0.0;
    vp_impl_caption_count_documents(book, images, image_count);
    for (size_t image = 0; image < image_count; image++) {
        const double score =
            vp_impl_caption_image(book, line, images[image].reference_count, book->log_of[image_count]);
        line += images[image].reference_count + 1;
        if (each) each[image] = score;
        sum += score;
    }
    if (corpus) *corpus = sum / (double)image_count;
}

static vp_result vp_impl_caption_read_all(vp_impl_caption_book *book, const vp_caption_image *images,
                                          size_t image_count, size_t *image) {
    for (*image = 0; *image < image_count; ++*image) {
        const vp_caption_image *one = &images[*image];
        if (!one->references || !one->reference_count) return VP_ERR_RANGE;
        vp_result result = vp_impl_caption_split(book, &one->candidate);
        for (size_t i = 0; i < one->reference_count && result == VP_OK; i++)
            result = vp_impl_caption_split(book, &one->references[i]);
        if (result != VP_OK) return result;
    }
    return VP_OK;
}

VP_API vp_result vp_caption_corpus(const vp_caption_image *images, size_t image_count, double *each, double *corpus,
                                   vp_error *error) {
    vp_impl_caption_book book = {0};
    vp_impl_message where = {{0}, 0};
    size_t image = 0;
    if (!images || !image_count) return vp_error_set(error, VP_ERR_RANGE, -1, "captions", "no images to score");
    if (image_count >= VP_IMPL_CAPTION_WORDS_MAX)
        return vp_error_set(error, VP_ERR_RANGE, -1, "captions", "over 2^29 images; score them in parts");
    vp_result result = vp_impl_caption_read_all(&book, images, image_count, &image);
    vp_impl_message_text(&where, "image ");
    vp_impl_message_int(&where, (int64_t)image);
    if (result == VP_ERR_RANGE) {
        if (!images[image].references || !images[image].reference_count)
            vp_error_set(error, result, -1, where.text, "there is no reference caption; omit the image");
        else if (vp_impl_caption_full(&book) != VP_OK)
            vp_error_set(error, result, -1, where.text, "over 2^29 words in total; score the corpus in parts");
        else vp_error_set(error, result, -1, where.text, "a text is NULL");
    } else {
        if (result == VP_OK) result = vp_impl_caption_number_grams(&book);
        if (result == VP_OK) result = vp_impl_caption_prepare(&book, image_count);
        if (result == VP_OK) vp_impl_caption_score(&book, images, image_count, each, corpus);
        else vp_error_set(error, result, -1, "captions", "not enough memory; score the corpus in parts");
    }
    vp_impl_caption_release(&book);
    return result;
}
