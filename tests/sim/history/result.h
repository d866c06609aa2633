/* SPDX-License-Identifier: Apache-2.0 */
/* What a history's process leaves to the runner, in memory that both share. */
#pragma once

#include "world.h"

enum { RESULT_MESSAGE = 1000 };

struct result {
    bool over;                    /* it came to its end, or said what was broken */
    char message[RESULT_MESSAGE]; /* what was broken; empty: nothing */
    char kind[120];               /* ... without names and numbers */
    unsigned step;                /* of how many, or where it broke */
    uint64_t hash;
    int64_t virtual_us;
    unsigned classes[N_CLASSES], wire[N_WIRE_COUNTS], torn, unread;
    unsigned refused, reported, reported_deleted, unknown; /* of the second process */
};

/* Where it goes; NULL: to the terminal, and the process ends. */
void result_place(struct result *r);
/* Notes it and ends this process. message NULL: nothing was broken. */
__attribute__((noreturn)) void result_end(const struct world *w, const char *kind,
                                          const char *message);
