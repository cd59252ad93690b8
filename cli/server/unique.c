/* unique.c: gives each request an image that no server cache has seen. */
#include "server/picture.h"

#include "model/image.h"
#include "vlmprof_image.h"

enum { NUMBER_BITS = 64, BITS_LEAST = 32, LEVELS_LEAST = 3, STORED_MOST = 65535, BLOCK_PX = 8 };

/* ---- JPEG */
/* Decodes a copy of the file without rotation, with or without the bits flipped. */
static int decode_stored(const struct picture *picture, const struct jpeg_bit *bits, size_t count, vp_image *image) {
    uint8_t *copy = resize(NULL, picture->byte_count, 1);
    memcpy(copy, picture->bytes, picture->byte_count);
    for (size_t i = 0; i < count; i++) copy[bits[i].at] ^= bits[i].mask;
    for (size_t i = 0; i + 6 < picture->byte_count && i < STORED_MOST; i++) /* no orientation moves the blocks */
        if (!memcmp(copy + i, "Exif\0", 5)) copy[i] = 'e';
    int is_decoded = vp_image_decode(copy, picture->byte_count, image, NULL) == VP_OK;
    free(copy);
    return is_decoded;
}
static int block_differs(const vp_image *one, const vp_image *other, const struct jpeg_bit *bit) {
    for (int32_t y = bit->y_px; y < bit->y_px + BLOCK_PX && y < one->height_px; y++)
        for (int32_t x = bit->x_px; x < bit->x_px + BLOCK_PX && x < one->width_px; x++)
            for (size_t c = 0; c < 3; c++) {
                const size_t at = 3 * ((size_t)y * (size_t)one->width_px + (size_t)x) + c;
                if (abs(one->rgb[at] - other->rgb[at]) >= LEVELS_LEAST) return 1;
            }
    return 0;
}
/* Finds the last bits of the file that change its pixels. Returns 1 if there are enough. */
static int find_bits(struct unique *unique) {
    struct picture *picture = &unique->picture;
    struct jpeg_bit *bits = NULL;
    vp_image plain = {0, 0, NULL}, turned = {0, 0, NULL};
    const size_t count = jpeg_bits((const uint8_t *)picture->bytes, picture->byte_count, &bits);
    if (count >= BITS_LEAST && decode_stored(picture, bits, 0, &plain) && decode_stored(picture, bits, count, &turned)
        && plain.width_px == turned.width_px && plain.height_px == turned.height_px) {
        unique->bits = resize(NULL, NUMBER_BITS, sizeof *unique->bits);
        for (size_t i = count; i-- > 0 && unique->bit_count < NUMBER_BITS;)
            if (block_differs(&plain, &turned, &bits[i]))
                unique->bits[unique->bit_count++] = (struct unique_bit){bits[i].at, bits[i].mask};
    }
    if (plain.rgb) vp_image_free(&plain);
    if (turned.rgb) vp_image_free(&turned);
    free(bits);
    if (unique->bit_count < BITS_LEAST) return 0;
    unique->from = unique->bits[unique->bit_count - 1].at;
    unique->to = unique->bits[0].at + 1;
    return 1;
}

/* ---- PNG */
static void put_u32(char *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (char)(value >> (24 - 8 * i) & 255);
}
static uint32_t get_u32(const char *at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value = value << 8 | (unsigned char)at[i];
    return value;
}
static uint32_t crc32_of(const char *bytes, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}
static uint32_t adler32_of(uint32_t adler, const char *bytes, size_t count) {
    uint32_t low = adler & 0xffff, high = adler >> 16;
    for (size_t i = 0; i < count; i++) {
        low = (low + (unsigned char)bytes[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}
static void add_chunk(struct text_buffer *png, const char *type, const char *data, size_t bytes) {
    const size_t at = png->bytes + 4;
    char number[4];
    put_u32(number, (uint32_t)bytes);
    text_add(png, number, 4);
    text_add(png, type, 4);
    text_add(png, data, bytes);
    put_u32(number, crc32_of(png->data + at, bytes + 4));
    text_add(png, number, 4);
}
/* Adds bytes in uncompressed blocks. has_header 0: the first block's header is in the preceding bits. */
static void add_stored(struct text_buffer *out, const char *bytes, size_t count, int has_header) {
    for (size_t at = 0; at < count; at += STORED_MOST, has_header = 1) {
        const size_t part = count - at < STORED_MOST ? count - at : STORED_MOST;
        const char head[5] = {0, (char)(part & 255), (char)(part >> 8), (char)(~part & 255), (char)(~part >> 8 & 255)};
        text_add(out, head + !has_header, has_header ? 5 : 4);
        text_add(out, bytes + at, part);
    }
}
/* All rows except the last one, compressed, without their final checksum, which is *adler. */
static void first_rows(const uint8_t *rgb, int32_t width_px, int32_t rows, struct text_buffer *stream,
                       uint32_t *adler) {
    struct text_buffer png = {NULL, 0, 0};
    *adler = 1;
    if (!rows) text_add(stream, "\x78\x01", 2);
    else if (add_png(&png, rgb, width_px, rows)) {
        const size_t at = 8 + 12 + 13 + 8, bytes = get_u32(png.data + at - 8); /* after the signature and IHDR */
        text_add(stream, png.data + at, bytes - 4);
        *adler = get_u32(png.data + at + bytes - 4);
    }
    free(png.data);
}
/* The same rows, uncompressed. */
static void plain_rows(const uint8_t *rgb, int32_t width_px, int32_t rows, struct text_buffer *stream,
                       uint32_t *adler) {
    const size_t row_bytes = (size_t)width_px * 3;
    struct text_buffer lines = {NULL, 0, 0};
    for (int32_t y = 0; y < rows; y++) {
        text_add(&lines, "", 1);
        text_add(&lines, (const char *)rgb + (size_t)y * row_bytes, row_bytes);
    }
    stream->bytes = 0;
    text_add(stream, "\x78\x01", 2);
    add_stored(stream, lines.data, lines.bytes, 1);
    *adler = adler32_of(1, lines.data, lines.bytes);
    free(lines.data);
}
/* A PNG from the rows in `stream` and the last row. has_header: as in add_stored. */
static void add_file(struct unique *unique, const struct text_buffer *stream, const uint8_t *row, int has_header) {
    struct picture *picture = &unique->picture;
    struct text_buffer png = {NULL, 0, 0}, line = {NULL, 0, 0}, last = {NULL, 0, 0};
    char head[13] = {0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0}, checksum[4];
    put_u32(head, (uint32_t)picture->width_px);
    put_u32(head + 4, (uint32_t)picture->height_px);
    text_add(&png, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(&png, "IHDR", head, sizeof head);
    add_chunk(&png, "IDAT", stream->data, stream->bytes);
    unique->from = png.bytes + 4; /* the checksum includes the chunk's type */
    unique->row_at = has_header ? 9 : 8;
    text_add(&line, "", 1); /* no filter */
    text_add(&line, (const char *)row, (size_t)picture->width_px * 3);
    unique->row_bytes = line.bytes;
    add_stored(&last, line.data, line.bytes, has_header);
    text_add(&last, "\x01\0\0\xff\xff", 5);
    put_u32(checksum, adler32_of(unique->adler, line.data, line.bytes));
    text_add(&last, checksum, 4);
    add_chunk(&png, "IDAT", last.data, last.bytes);
    unique->to = png.bytes; /* its checksum follows the data */
    add_chunk(&png, "IEND", "", 0);
    free(picture->bytes);
    picture->bytes = png.data;
    picture->byte_count = png.bytes;
    FREE_ALL(line.data, last.data);
}
/* Returns 1 if the file decodes to these pixels. */
static int is_of(const struct picture *picture, const uint8_t *rgb) {
    vp_image image = {0, 0, NULL};
    const size_t values = (size_t)picture->width_px * 3 * (size_t)picture->height_px;
    const int is_same = vp_image_decode((const uint8_t *)picture->bytes, picture->byte_count, &image, NULL) == VP_OK
                        && image.width_px == picture->width_px && image.height_px == picture->height_px
                        && !memcmp(image.rgb, rgb, values);
    if (image.rgb) vp_image_free(&image);
    return is_same;
}
void unique_of_pixels(const uint8_t *rgb, int32_t width_px, int32_t height_px, struct unique *unique) {
    const uint8_t *row = rgb + (size_t)width_px * 3 * (size_t)(height_px - 1);
    struct text_buffer stream = {NULL, 0, 0};
    memset(unique, 0, sizeof *unique);
    unique->picture.media_type = "image/png";
    unique->picture.width_px = width_px;
    unique->picture.height_px = height_px;
    first_rows(rgb, width_px, height_px - 1, &stream, &unique->adler);
    if (height_px > 1) stream.data[2] = (char)(stream.data[2] & ~1); /* another block follows */
    add_file(unique, &stream, row, 1);
    /* the block is padded to a byte with zeros; three of these bits are the next block's header */
    if (!is_of(&unique->picture, rgb)) add_file(unique, &stream, row, 0);
    if (!is_of(&unique->picture, rgb)) { /* not the compressor that is expected here */
        plain_rows(rgb, width_px, height_px - 1, &stream, &unique->adler);
        add_file(unique, &stream, row, 1);
    }
    free(stream.data);
}
/* Writes the number into the lowest bits of the last row and updates the checksums. */
static void mark_row(const struct unique *unique, uint64_t number, char *part) {
    const size_t bytes = unique->to - unique->from;
    char *row = part + unique->row_at;
    uint32_t adler = unique->adler;
    for (size_t bit = 0; bit < NUMBER_BITS && bit + 1 < unique->row_bytes; bit++)
        row[1 + bit] = (char)((row[1 + bit] & ~1) | (int)(number >> bit & 1));
    for (size_t at = 0; at < unique->row_bytes; at += STORED_MOST, row += 5) /* skip the header of each further block */
        adler =
            adler32_of(adler, row + at, unique->row_bytes - at < STORED_MOST ? unique->row_bytes - at : STORED_MOST);
    put_u32(part + bytes - 8, adler);
    put_u32(part + bytes - 4, crc32_of(part, bytes - 4));
}

/* ---- both */
int unique_of_file(const char *path, struct unique *unique, char *reason, size_t capacity) {
    vp_image image = {0, 0, NULL};
    memset(unique, 0, sizeof *unique);
    int code = picture_of_file(path, &unique->picture, reason, capacity);
    if (code || (!strcmp(unique->picture.media_type, "image/jpeg") && find_bits(unique))) return code;
    unique_free(unique);
    code = load_image(path, &image, reason, capacity);
    if (!code) unique_of_pixels(image.rgb, image.width_px, image.height_px, unique);
    if (image.rgb) vp_image_free(&image);
    return code;
}
void unique_mark(const struct unique *unique, uint64_t number, char *part) {
    if (!unique->bit_count) { mark_row(unique, number, part); return; }
    for (size_t i = 0; i < unique->bit_count; i++) {
        char *byte = part + (unique->bits[i].at - unique->from);
        const int mask = unique->bits[i].mask;
        *byte = (char)(number >> i & 1 ? *byte | mask : *byte & ~mask);
    }
}
void unique_free(struct unique *unique) {
    picture_free(&unique->picture);
    free(unique->bits);
    memset(unique, 0, sizeof *unique);
}
