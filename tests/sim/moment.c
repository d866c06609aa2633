/* SPDX-License-Identifier: Apache-2.0 */
/* See moment.h. A symbol that the program defines goes before libc's, for libuv, SQLite and OpenSSL
 * as well: that is how time and entropy are replaced. The calls below must never be made for
 * anything real while a world is entered. */
#include "moment.h"

#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <openssl/rand.h>

#define OURS __attribute__((visibility("default")))
/* 2026-02-01T00:00:00Z, and a machine that has been up for a while. */
#define WALL_BEGIN_US ((int64_t)1769904000 * 1000000)
#define PORT          40443
#define MONO_BEGIN_US ((int64_t)100000 * 1000000)

static struct moment *entered;

/* --- chance --- */

uint64_t dice_next(struct moment *m, enum dice which)
{
    uint64_t x = m->state[which];

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    m->state[which] = x;
    return x * 2685821657736338717u;
}

uint64_t dice_below(struct moment *m, enum dice which, uint64_t n)
{
    uint64_t x = dice_next(m, which) >> 16;

    return n ? x % n : 0;
}

bool dice_chance(struct moment *m, enum dice which, unsigned of_thousand)
{
    return dice_below(m, which, 1000) < of_thousand;
}

/* splitmix64: neighbouring seeds give unlike streams. */
void moment_seed(struct moment *m, enum dice which, uint64_t seed)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15u * ((uint64_t)which + 1);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    m->state[which] = (z ^ (z >> 31)) | 1;
}

void moment_init(struct moment *m, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    for (int i = 0; i < N_DICE; i++)
        moment_seed(m, (enum dice)i, seed * N_DICE + (uint64_t)i);
}

static void fill_from(struct moment *m, enum dice which, void *out, size_t n)
{
    unsigned char *p = out;

    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(dice_next(m, which) >> 24);
}

static void fill(void *ctx, void *out, size_t n)
{
    fill_from(ctx, DICE_PRODUCT, out, n);
}

struct rng moment_rng(struct moment *m)
{
    return (struct rng){fill, m};
}

/* --- the agenda --- */

void moment_at(struct moment *m, int64_t after_us, const void *owner, void (*run)(void *arg),
               void *arg)
{
    struct item *i = NEW(struct item), **at = &m->agenda;

    *i = (struct item){NULL, m->now_us + after_us, m->made++, owner, run, arg};
    while (*at && (*at)->at_us <= i->at_us)
        at = &(*at)->next;
    i->next = *at;
    *at = i;
}

void moment_forget(struct moment *m, const void *owner)
{
    for (struct item **at = &m->agenda; *at;) {
        struct item *i = *at;

        if (i->owner != owner) {
            at = &i->next;
            continue;
        }
        *at = i->next;
        mem_free(i);
    }
}

int64_t moment_next(const struct moment *m)
{
    return m->agenda ? m->agenda->at_us : INT64_MAX;
}

bool moment_run_due(struct moment *m)
{
    struct item *i = m->agenda;

    if (!i || i->at_us > m->now_us)
        return false;
    m->agenda = i->next;
    i->run(i->arg);
    mem_free(i);
    return true;
}

/* --- clocks --- */

static int64_t wall_us(void *ctx)
{
    const struct moment *m = ctx;

    return WALL_BEGIN_US + m->now_us + m->jump_us;
}

static int64_t mono_ms(void *ctx)
{
    return (MONO_BEGIN_US + ((const struct moment *)ctx)->now_us) / 1000;
}

struct clock moment_clock(struct moment *m)
{
    return (struct clock){wall_us, mono_ms, m};
}

double moment_real_s(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- what libc and OpenSSL would have said --- */

static int random_bytes(unsigned char *out, int n)
{
    fill(entered, out, (size_t)n);
    return 1;
}

static int random_status(void)
{
    return 1;
}

void moment_enter(struct moment *m)
{
    static RAND_METHOD method;

    method.bytes = random_bytes;
    method.pseudorand = random_bytes;
    method.status = random_status;
    entered = m;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    RAND_set_rand_method(m ? &method : NULL);
#pragma GCC diagnostic pop
}

OURS int clock_gettime(clockid_t id, struct timespec *now)
{
    int64_t us;

    if (!entered ||
        (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE && id != CLOCK_MONOTONIC &&
         id != CLOCK_MONOTONIC_COARSE && id != CLOCK_MONOTONIC_RAW && id != CLOCK_BOOTTIME))
        return (int)syscall(SYS_clock_gettime, id, now);
    us = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE ? wall_us(entered)
                                                             : MONO_BEGIN_US + entered->now_us;
    now->tv_sec = us / 1000000;
    now->tv_nsec = us % 1000000 * 1000;
    return 0;
}

OURS time_t time(time_t *ret)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

OURS int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *now = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

OURS ssize_t getrandom(void *out, size_t n, unsigned flags)
{
    if (!entered)
        return (ssize_t)syscall(SYS_getrandom, out, n, flags);
    fill_from(entered, DICE_SYSTEM, out, n);
    return (ssize_t)n;
}

/* The port that the kernel chose is chance as well, and part of what pods are given. No client ever
 * connects to it. */
OURS int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict n)
{
    int rc = (int)syscall(SYS_getsockname, fd, address, n);

    if (entered && !rc && address->sa_family == AF_INET)
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(PORT);
    return rc;
}

/* No machine loses its power here: what of the real disk is used may be lost with it. */
OURS int fsync(int fd)
{
    (void)fd;
    return 0;
}

OURS int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

OURS int malloc_trim(size_t pad)
{
    (void)pad;
    return 0;
}
