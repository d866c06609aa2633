/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The DCGM exporters of a host: pods of one namespace and selector, each read once in an interval
 * at the address that the host shows of it. */
#pragma once

#include <sublet/clock.h>
#include <sublet/str.h>

struct exporters;
struct host;
struct uv_loop_s;
struct exporters_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct host *host; /* outlives it */
    struct str host_namespace, selector, path;
    unsigned port;
    int64_t interval_ms;
    /* The exporter on a node answered. False: it was no answer of an exporter. */
    bool (*answered)(void *ctx, struct str node, struct str body);
    void *ctx;
};
struct exporters *exporters_open(const struct exporters_options *options);
/* No callback after it, but closed(), from the loop. */
void exporters_close(struct exporters *e, void (*closed)(void *ctx), void *ctx);
void exporters_restart(struct exporters *e); /* the host went back; takes NULL */

enum exporter_state {
    EXPORTER_ANSWERING,
    EXPORTER_FAILING, /* its last answer was none */
    EXPORTER_NEW,     /* not read yet */
    N_EXPORTER_STATES
};
extern const char *const EXPORTER_STATES[N_EXPORTER_STATES];
/* Why a read ended without an answer of an exporter. */
enum exporter_failure {
    EXPORTER_TIMEOUT,
    EXPORTER_UNREACHABLE, /* no connection */
    EXPORTER_BROKEN,      /* ... or it broke off */
    EXPORTER_TLS,         /* it speaks TLS, which is not spoken to it */
    EXPORTER_STATUS,      /* another HTTP status than 200 */
    EXPORTER_TOO_LARGE,
    EXPORTER_MEMORY, /* answers of others had what there is for all of them */
    EXPORTER_PARSE,  /* what it says is not what exporters say */
    N_EXPORTER_FAILURES
};
extern const char *const EXPORTER_FAILURES[N_EXPORTER_FAILURES]; /* "timeout", ... */
struct exporters_view {
    size_t n[N_EXPORTER_STATES];
    uint64_t failures[N_EXPORTER_FAILURES]; /* since the process began */
    int64_t age_ms; /* since the answer, or else the begin, of the one that is longest ago */
};
struct exporter_row {
    struct str node; /* good until the loop goes on */
    enum exporter_state state;
    enum exporter_failure why; /* of EXPORTER_FAILING */
    int64_t age_ms;            /* since its last answer, or since it is known */
};
void exporters_each(const struct exporters *e,
                    void (*visit)(void *ctx, const struct exporter_row *row), void *ctx);
#define EXPORTERS_MOST 5000 /* more are not read */
struct exporters_view exporters_look(const struct exporters *e);
