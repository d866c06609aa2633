/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that belong to one command and are no options of a virtual cluster: they are removed
 * from argv before the configuration is read, which knows only options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Removes `name VALUE` or `name=VALUE` from argv and returns VALUE; otherwise NULL. */
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

/* Removes `name` from argv; true when it was there. */
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
