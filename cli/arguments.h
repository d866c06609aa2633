/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a command that are no options of a virtual cluster: they are taken out before the
 * configuration is read, which knows only those. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* `name VALUE` or `name=VALUE` leaves argv; otherwise NULL. */
static inline const char *arguments_take(int *argc, char **argv, const char *name)
{
    size_t n = strlen(name);

    for (int i = 0; i < *argc; i++) {
        bool joined = !strncmp(argv[i], name, n) && argv[i][n] == '=';
        bool apart = !strcmp(argv[i], name) && i + 1 < *argc;
        const char *value = joined ? argv[i] + n + 1 : apart ? argv[i + 1] : NULL;

        if (!value)
            continue;
        for (int k = i; k + 1 + apart < *argc; k++)
            argv[k] = argv[k + 1 + apart];
        *argc -= 1 + apart;
        return value;
    }
    return NULL;
}

/* True when `name` was there; it leaves argv. */
static inline bool arguments_take_switch(int *argc, char **argv, const char *name)
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        for (int k = i; k + 1 < *argc; k++)
            argv[k] = argv[k + 1];
        --*argc;
        return true;
    }
    return false;
}

static inline bool arguments_want_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}
