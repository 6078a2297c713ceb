// Zip archives byte by byte, so that a test can write what no decent program would.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One entry, stored or with bytes that are compressed already.
typedef struct zip_entry {
    const char* name;
    const char* data; // NULL: empty
    uint32_t mode;    // Unix mode, 0: none
    uint16_t flags;   // 1: encrypted
    uint16_t method;  // 0 stored, 8 deflate
    uint32_t packed;  // bytes of data, 0: its length as text
    uint32_t size;    // declared size, 0: the same as packed
    uint32_t crc;     // 0: worked out (stored only)
} zip_entry;

typedef struct zip_bytes {
    uint8_t* data;
    size_t length;
} zip_bytes;

static inline uint32_t zip_crc(const char* data, size_t n)
{
    uint32_t crc = 0xFFFFFFFFU;
    for (size_t i = 0; i < n; i++) {
        crc ^= (uint8_t)data[i];
        for (int k = 0; k < 8; k++) {
            crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320U : 0);
        }
    }
    return ~crc;
}

static inline void zip_put(zip_bytes* z, const void* data, size_t n)
{
    z->data = realloc(z->data, z->length + n + 1);
    memcpy(z->data + z->length, data, n);
    z->length += n;
}

static inline void zip_put_int(zip_bytes* z, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const uint8_t b = (uint8_t)(value >> (8 * i));
        zip_put(z, &b, 1);
    }
}

// The part that local and central headers share: flags .. length of the extra field.
static inline void zip_put_common(zip_bytes* z, const zip_entry* e, uint32_t crc, uint32_t packed)
{
    zip_put_int(z, e->flags, 2);
    zip_put_int(z, e->method, 2);
    zip_put_int(z, 0x52800000U, 4); // time and date
    zip_put_int(z, crc, 4);
    zip_put_int(z, packed, 4);
    zip_put_int(z, e->size ? e->size : packed, 4);
    zip_put_int(z, (uint32_t)strlen(e->name), 2);
    zip_put_int(z, 0, 2);
}

static inline zip_bytes zip_make(const zip_entry* entries, size_t count)
{
    zip_bytes z = {0}, directory = {0};
    for (size_t i = 0; i < count; i++) {
        const zip_entry* e = &entries[i];
        const uint32_t packed = e->packed ? e->packed : e->data ? (uint32_t)strlen(e->data) : 0;
        const uint32_t crc = e->crc ? e->crc : zip_crc(e->data ? e->data : "", packed);
        const uint32_t offset = (uint32_t)z.length;
        zip_put(&z, "PK\3\4\24\0", 6);
        zip_put_common(&z, e, crc, packed);
        zip_put(&z, e->name, strlen(e->name));
        zip_put(&z, e->data ? e->data : "", packed);
        zip_put(&directory, "PK\1\2\24\3\24\0", 8); // made by Unix
        zip_put_common(&directory, e, crc, packed);
        zip_put_int(&directory, 0, 2); // comment
        zip_put_int(&directory, 0, 2); // disk
        zip_put_int(&directory, 0, 2); // internal attributes
        zip_put_int(&directory, e->mode << 16, 4);
        zip_put_int(&directory, offset, 4);
        zip_put(&directory, e->name, strlen(e->name));
    }
    const uint32_t start = (uint32_t)z.length;
    if (directory.length) { zip_put(&z, directory.data, directory.length); }
    zip_put(&z, "PK\5\6\0\0\0\0", 8);
    zip_put_int(&z, (uint32_t)count, 2);
    zip_put_int(&z, (uint32_t)count, 2);
    zip_put_int(&z, (uint32_t)directory.length, 4);
    zip_put_int(&z, start, 4);
    zip_put_int(&z, 0, 2);
    free(directory.data);
    return z;
}

static inline void zip_write(const char* path, const zip_entry* entries, size_t count)
{
    zip_bytes z = zip_make(entries, count);
    FILE* f = fopen(path, "wb");
    if (!f || fwrite(z.data, 1, z.length, f) != z.length) { abort(); }
    fclose(f);
    free(z.data);
}
