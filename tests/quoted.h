/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, or other bytes with quotation marks, that a test writes with ' for ", so that cases stay
 * readable. A value cannot hold ' itself. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include <sublet/json.h>

/* A copy in the arena, with quotation marks; NUL ends it. */
static inline char *quoted(struct arena *a, struct str text)
{
    char *copy = arena_cstr(a, text);

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return copy;
}

/* Ends the test's process when it is no JSON: the test itself is wrong. */
static inline cJSON *quoted_json(struct arena *a, struct str text)
{
    const char *copy = quoted(a, text);
    struct err err;
    cJSON *tree = NULL;

    err_init(&err, a);
    if (json_parse(a, str_c(copy), &tree, &err)) {
        fprintf(stderr, "%.*s in %s\n", STR_F(err.message), copy);
        abort();
    }
    return tree;
}
