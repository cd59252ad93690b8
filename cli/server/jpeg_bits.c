/* jpeg_bits.c: finds bits of a JPEG file that only change its pixels. Source: ITU-T T.81, annexes B (segments), F
 * (sequential) and G (progressive). A coefficient of size s is coded as a Huffman code and s bits of its value.
 * Flipping a bit below the highest one changes the value, but neither its sign nor s. */
#include "server/picture.h"

#include "base/memory.h"

enum { DELTA_LEAST = 24, BLOCK_PX = 8, COMPONENTS = 3, CODE_BITS = 16 };

struct huffman { int32_t least[CODE_BITS + 1], count[CODE_BITS + 1], first[CODE_BITS + 1]; uint8_t values[256]; };
struct component { int id, across, down, quantity, dc, ac; };
struct reader {
    const uint8_t *file; size_t bytes, at; /* at: offset of the next byte */
    size_t byte_at; int left, value;       /* the current byte and the number of its remaining bits */
    int is_over;                           /* 1 after a marker or the end */
    int32_t quantity[4][64];
    struct huffman tables[2][4];           /* DC, AC */
    struct component components[COMPONENTS]; int component_count;
    int32_t width_px, height_px, restart, bands; /* bands: blocks that the last end-of-band run ends */
    int is_progressive, low_bits;          /* low_bits: the bits that a progressive scan omits */
    struct jpeg_bit *bits; size_t bit_count, bit_capacity;
};

/* ---- bits and codes */
static int next_bit(struct reader *reader) {
    if (!reader->left) {
        if (reader->is_over || reader->at >= reader->bytes) { reader->is_over = 1; return 0; }
        reader->byte_at = reader->at;
        reader->value = reader->file[reader->at++];
        if (reader->value == 0xff) {
            if (reader->at >= reader->bytes || reader->file[reader->at]) { reader->is_over = 1; return 0; }
            reader->at++; /* in the data, a byte of 255 is followed by a zero */
        }
        reader->left = 8;
    }
    return reader->value >> --reader->left & 1;
}
static int32_t next_bits(struct reader *reader, int count) {
    int32_t value = 0;
    while (count--) value = value << 1 | next_bit(reader);
    return value;
}
/* Returns -1 if there is no such code. */
static int next_code(struct reader *reader, const struct huffman *table) {
    int32_t code = 0;
    for (int bits = 1; bits <= CODE_BITS && !reader->is_over; bits++) {
        code = code << 1 | next_bit(reader);
        if (code - table->least[bits] < table->count[bits] && code >= table->least[bits])
            return table->values[table->first[bits] + code - table->least[bits]];
    }
    reader->is_over = 1;
    return -1;
}
static void start_bits(struct reader *reader) {
    reader->left = 0;
    reader->bands = 0;
}
/* Continues after a restart marker; without one, the scan is over. */
static void pass_restart(struct reader *reader) {
    start_bits(reader);
    if (reader->at + 1 < reader->bytes && reader->file[reader->at] == 0xff
        && (reader->file[reader->at + 1] & 0xf8) == 0xd0)
        reader->at += 2;
    else reader->is_over = 1;
}

/* ---- coefficients */
/* Keeps the bit if it changes a coefficient by enough and its byte cannot become part of a marker. Returns 1 if it is
 * kept. */
static int keep_bit(struct reader *reader, int size, int32_t quantity, int32_t x_px, int32_t y_px) {
    const int64_t unit = (int64_t)quantity << reader->low_bits;
    struct jpeg_bit *bit;
    int which = 0, is_kept = 0;
    while (which < size - 2 && (unit << which) < DELTA_LEAST) which++;
    if ((size == 1 ? 2 * unit : unit << which) < DELTA_LEAST) { next_bits(reader, size); return 0; }
    for (int left = size - 1; left >= 0; left--) {
        const unsigned char mask = (unsigned char)(next_bit(reader), 1u << reader->left);
        if (left != which || reader->is_over) continue;
        if (reader->bit_count && reader->bits[reader->bit_count - 1].at == reader->byte_at) continue;
        if (reader->value == 0xff || (reader->value ^ mask) == 0xff) continue;
        if (reader->bit_count == reader->bit_capacity) {
            reader->bit_capacity = 2 * reader->bit_capacity + 256;
            reader->bits = resize(reader->bits, reader->bit_capacity, sizeof *reader->bits);
        }
        bit = &reader->bits[reader->bit_count++];
        *bit = (struct jpeg_bit){reader->byte_at, mask, x_px, y_px};
        is_kept = 1;
    }
    return is_kept;
}
/* Reads the coefficients first .. last of a block. x_px below 0: its bits are not used. */
static void read_ac(struct reader *reader, const struct component *component, int first, int last, int32_t x_px,
                    int32_t y_px) {
    int is_kept = x_px < 0;
    if (reader->bands) { reader->bands--; return; }
    for (int k = first; k <= last && !reader->is_over; k++) {
        const int code = next_code(reader, &reader->tables[1][component->ac]), run = code >> 4 & 15, size = code & 15;
        if (code < 0) return;
        if (!size && run < 15) { /* end of the block; in a progressive scan, of as many as the bits specify */
            if (reader->is_progressive) reader->bands = (1 << run) + next_bits(reader, run) - 1;
            return;
        }
        k += run;
        if (!size) continue;
        if (k > last) { reader->is_over = 1; return; }
        if (is_kept) next_bits(reader, size);
        else is_kept = keep_bit(reader, size, reader->quantity[component->quantity][k], x_px, y_px);
    }
}
static void read_block(struct reader *reader, const struct component *component, int32_t x_px, int32_t y_px) {
    const int size = next_code(reader, &reader->tables[0][component->dc]);
    if (size < 0) return;
    next_bits(reader, size & 15);
    read_ac(reader, component, 1, 63, x_px, y_px);
}
static int32_t rounded_up(int32_t number, int32_t by) { return (number + by - 1) / by; }
/* Reads all blocks of a sequential scan of all components. */
static void read_scan(struct reader *reader) {
    const struct component *components = reader->components;
    const int is_one = reader->component_count == 1;
    const int across = is_one ? 1 : components[0].across, down = is_one ? 1 : components[0].down;
    const int32_t columns = rounded_up(reader->width_px, BLOCK_PX * across),
                  units = columns * rounded_up(reader->height_px, BLOCK_PX * down);
    start_bits(reader);
    for (int32_t unit = 0; unit < units && !reader->is_over; unit++) {
        if (reader->restart && unit && unit % reader->restart == 0) pass_restart(reader);
        for (int c = 0; c < reader->component_count; c++) {
            const int wide = is_one ? 1 : components[c].across, high = is_one ? 1 : components[c].down;
            for (int block = 0; block < wide * high && !reader->is_over; block++)
                read_block(reader, &components[c], c ? -1 : (unit % columns * wide + block % wide) * BLOCK_PX,
                           (unit / columns * high + block / wide) * BLOCK_PX);
        }
    }
}
/* Reads the blocks of a first progressive scan of luminance coefficients. */
static void read_band(struct reader *reader, int first, int last) {
    const int32_t columns = rounded_up(reader->width_px, BLOCK_PX),
                  units = columns * rounded_up(reader->height_px, BLOCK_PX);
    start_bits(reader);
    for (int32_t unit = 0; unit < units && !reader->is_over; unit++) {
        if (reader->restart && unit && unit % reader->restart == 0) pass_restart(reader);
        read_ac(reader, &reader->components[0], first, last, unit % columns * BLOCK_PX, unit / columns * BLOCK_PX);
    }
}

/* ---- segments: `data` follows the length. Each function returns 1 if the segment is supported. */
static int take_quantities(struct reader *reader, const uint8_t *data, size_t bytes) {
    while (bytes) {
        const int is_wide = data[0] >> 4, which = data[0] & 15;
        const size_t needed = 1 + (is_wide ? 128 : 64);
        if (is_wide > 1 || which > 3 || bytes < needed) return 0;
        for (int k = 0; k < 64; k++)
            reader->quantity[which][k] = is_wide ? data[1 + 2 * k] << 8 | data[2 + 2 * k] : data[1 + k];
        data += needed;
        bytes -= needed;
    }
    return 1;
}
static int take_codes(struct reader *reader, const uint8_t *data, size_t bytes) {
    while (bytes) {
        int32_t code = 0, count = 0;
        if (bytes < 17 || data[0] >> 4 > 1 || (data[0] & 15) > 3) return 0;
        struct huffman *table = &reader->tables[data[0] >> 4][data[0] & 15];
        for (int bits = 1; bits <= CODE_BITS; bits++, code <<= 1) {
            table->least[bits] = code;
            table->count[bits] = data[bits];
            table->first[bits] = count;
            code += data[bits];
            count += data[bits];
        }
        if (count > 256 || bytes < 17 + (size_t)count) return 0;
        memcpy(table->values, data + 17, (size_t)count);
        data += 17 + count;
        bytes -= 17 + (size_t)count;
    }
    return 1;
}
static int take_frame(struct reader *reader, const uint8_t *data, size_t bytes) {
    if (bytes < 9 || data[0] != 8 || (data[5] != 1 && data[5] != 3) || bytes < 6 + 3 * (size_t)data[5]) return 0;
    reader->height_px = data[1] << 8 | data[2];
    reader->width_px = data[3] << 8 | data[4];
    reader->component_count = data[5];
    for (int c = 0; c < reader->component_count; c++) {
        struct component *component = &reader->components[c];
        *component =
            (struct component){data[6 + 3 * c], data[7 + 3 * c] >> 4, data[7 + 3 * c] & 15, data[8 + 3 * c], 0, 0};
        if (component->across < 1 || component->across > 4 || component->down < 1 || component->down > 4
            || component->quantity > 3) return 0;
        /* then a block of luminance is 8 x 8 pixels of the image */
        if (component->across > reader->components[0].across || component->down > reader->components[0].down) return 0;
    }
    return reader->width_px > 0 && reader->height_px > 0;
}
/* Starts a scan. Returns 1 if its bits are read, 0 if it is skipped, -1 if it is not supported. */
static int take_scan(struct reader *reader, const uint8_t *data, size_t bytes) {
    const int count = bytes ? data[0] : 0;
    if (count < 1 || count > COMPONENTS || bytes < 4 + 2 * (size_t)count || !reader->component_count) return -1;
    for (int i = 0; i < count; i++) {
        int c = 0;
        while (c < reader->component_count && reader->components[c].id != data[1 + 2 * i]) c++;
        if (c == reader->component_count || data[2 + 2 * i] >> 4 > 3 || (data[2 + 2 * i] & 15) > 3) return -1;
        reader->components[c].dc = data[2 + 2 * i] >> 4;
        reader->components[c].ac = data[2 + 2 * i] & 15;
    }
    int first = data[1 + 2 * count];
    int last = data[2 + 2 * count];
    reader->low_bits = reader->is_progressive ? data[3 + 2 * count] & 15 : 0;
    if (!reader->is_progressive) {
        if (count != reader->component_count) return -1;
        read_scan(reader);
        return 1;
    }
    if (!first || last > 63 || last < first || data[3 + 2 * count] >> 4 || data[1] != reader->components[0].id)
        return 0;
    read_band(reader, first, last);
    return 1;
}
/* Reads the segment of a marker. Returns the same values as take_scan. */
static int take_segment(struct reader *reader, int marker, const uint8_t *data, size_t bytes) {
    switch (marker) {
    case 0xdb: return take_quantities(reader, data, bytes) - 1;
    case 0xc4: return take_codes(reader, data, bytes) - 1;
    case 0xdd: if (bytes >= 2) reader->restart = data[0] << 8 | data[1]; return 0;
    case 0xc0: case 0xc1: case 0xc2:
        reader->is_progressive = marker == 0xc2;
        return take_frame(reader, data, bytes) - 1;
    case 0xda: return take_scan(reader, data, bytes);
    default: return marker >= 0xc3 && marker <= 0xcf ? -1 : 0;
    }
}
size_t jpeg_bits(const uint8_t *file, size_t bytes, struct jpeg_bit **bits) {
    struct reader *reader = zeroed(1, sizeof *reader);
    size_t at = 2, count;
    int is_read = 0;
    reader->file = file;
    reader->bytes = bytes;
    while (!is_read && at + 4 <= bytes) {
        const size_t length = (size_t)file[at + 2] << 8 | file[at + 3];
        if (file[at] != 0xff || file[at + 1] == 0xff || file[at + 1] == 0 || (file[at + 1] & 0xf8) == 0xd0) {
            at++; /* data of a skipped scan */
            continue;
        }
        if (length < 2 || at + 2 + length > bytes) break;
        reader->at = at + 2 + length;
        is_read = take_segment(reader, file[at + 1], file + at + 4, length - 2);
        at += 2 + length;
    }
    count = is_read > 0 && !reader->is_over ? reader->bit_count : 0;
    *bits = reader->bits;
    free(reader);
    return count;
}
