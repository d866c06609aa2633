/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * What becomes of every field of a synced object, by tbl/fields.h. Facts for people: nothing is
 * translated by this table, a test holds it against what is. */
#pragma once

#include <sublet/str.h>

enum treatment {
    TREAT_INSIDE,
    TREAT_PASS,
    TREAT_PRIVILEGED,
    TREAT_REWRITE,
    TREAT_MOVE,
    TREAT_OWN,
    TREAT_DROP,
    TREAT_REFUSE,
    TREAT_UP,
    TREAT_UP_REWRITE,
    TREAT_UP_OWN,
    TREAT_UP_NONE,
};

struct translate_field {
    const char *section, *field;
    enum treatment treatment;
    bool said;        /* a dry run reports the change in a Warning */
    const char *text; /* the reason, or the section of TREAT_INSIDE; may be empty */
};
extern const struct translate_field TRANSLATE_FIELDS[];
extern const size_t TRANSLATE_N_FIELDS;

/* NULL: there is no such row. */
const struct translate_field *translate_field(const char *section, struct str field);
/* The row of "spec.containers[0].image" of a Pod: the last of the way, or the one below which there
 * are none; NULL for another kind or field. */
const struct translate_field *translate_field_at(struct str kind, struct str path);
