/* SPDX-License-Identifier: Apache-2.0
 *
 * The system's clocks and randomness behind the two small interfaces that tests replace.
 * Nothing else in the program may read a clock or draw a random number. */
#include <sublet/clock.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static int64_t system_wall_us(void *ctx)
{
    struct timespec now;

    (void)ctx;
    int rc = clock_gettime(CLOCK_REALTIME, &now);
    assert(rc == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t system_mono_ms(void *ctx)
{
    struct timespec now;

    (void)ctx;
    int rc = clock_gettime(CLOCK_MONOTONIC, &now);
    assert(rc == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const struct clock CLOCK_SYSTEM = {.wall_us = system_wall_us, .mono_ms = system_mono_ms};

int64_t clock_wall_us(const struct clock *c)
{
    return c->wall_us(c->ctx);
}

int64_t clock_wall_s(const struct clock *c)
{
    int64_t us = c->wall_us(c->ctx);

    return us / 1000000 - (us % 1000000 < 0);
}

int64_t clock_mono_ms(const struct clock *c)
{
    return c->mono_ms(c->ctx);
}

static void read_kernel(unsigned char *p, size_t n)
{
    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0) {
            assert(errno == EINTR); /* the only failure of a blocking call with good arguments */
            continue;
        }
        p += got;
        n -= (size_t)got;
    }
}

/* Every response has an id of its own: a few bytes are taken from a stock, which forgets what it
 * gave out. The program never forks, so there are never two copies of a stock. */
static void system_fill(void *ctx, void *out, size_t n)
{
    static _Thread_local unsigned char stock[512];
    static _Thread_local size_t left;

    (void)ctx;
    if (n > sizeof(stock) / 8) {
        read_kernel(out, n);
        return;
    }
    if (left < n) {
        read_kernel(stock, sizeof(stock));
        left = sizeof(stock);
    }
    left -= n;
    memcpy(out, stock + left, n);
    explicit_bzero(stock + left, n);
}

const struct rng RNG_SYSTEM = {.fill = system_fill};

uint64_t rng_u64(const struct rng *r)
{
    uint64_t value;

    r->fill(r->ctx, &value, sizeof(value));
    return value;
}

void rng_suffix(const struct rng *r, char *out, size_t n)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    enum { LETTERS = sizeof(alphabet) - 1, FAIR = 256 / LETTERS * LETTERS };
    unsigned char bytes[32];
    size_t have = 0, done = 0;

    while (done < n) {
        if (have == 0) {
            r->fill(r->ctx, bytes, sizeof(bytes));
            have = sizeof(bytes);
        }
        unsigned char byte = bytes[--have];
        if (byte < FAIR) /* the bytes above would favour the first letters */
            out[done++] = alphabet[byte % LETTERS];
    }
    out[n] = '\0';
}

void rng_uuid(const struct rng *r, char out[37])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[16];

    r->fill(r->ctx, bytes, sizeof(bytes));
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40); /* RFC 9562: version 4 */
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80); /* variant 10 */

    char *p = out;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[bytes[i] >> 4];
        *p++ = hex[bytes[i] & 15];
    }
    *p = '\0';
}
