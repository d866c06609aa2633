/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions: one description serves the checker and the dispatch at run time. */
#include "impl.h"

#include <string.h>

static const struct cel_functions *const TABLES[] = {&CEL_OPERATORS, &CEL_STANDARD,   &CEL_STRINGS,
                                                     &CEL_LISTS,     &CEL_KUBERNETES, &CEL_FORMATS,
                                                     &CEL_URLS,      &CEL_SEMVERS,    &CEL_TIMES};

static bool same_name(const struct cel_function *f, struct str name)
{
    return str_eqc(name, f->name);
}

const struct cel_function *cel_function_first(struct str name)
{
    for (size_t t = 0; t < COUNT(TABLES); t++) {
        for (size_t i = 0; i < TABLES[t]->n; i++) {
            if (same_name(&TABLES[t]->rows[i], name))
                return &TABLES[t]->rows[i];
        }
    }
    return NULL;
}

/* A name may continue in a later table: size of a string, size of a list. */
const struct cel_function *cel_function_next(const struct cel_function *f)
{
    struct str name = str_c(f->name);
    bool found = false;

    for (size_t t = 0; t < COUNT(TABLES); t++) {
        const struct cel_function *rows = TABLES[t]->rows;
        size_t i = 0;

        if (!found && (f < rows || f >= rows + TABLES[t]->n))
            continue;
        if (!found)
            i = (size_t)(f - rows) + 1;
        found = true;
        for (; i < TABLES[t]->n; i++) {
            if (same_name(&rows[i], name))
                return &rows[i];
        }
    }
    return NULL;
}
