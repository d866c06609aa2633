/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * What the YAML reader and printer share: which type a plain scalar has. Must never be included
 * outside base. */
#pragma once

#include <sublet/yaml.h>

enum yaml_plain_kind { PLAIN_STRING, PLAIN_NULL, PLAIN_BOOL, PLAIN_INT, PLAIN_UINT, PLAIN_FLOAT };

struct yaml_plain {
    enum yaml_plain_kind kind;
    bool truth;
    int64_t i;  /* PLAIN_INT */
    uint64_t u; /* PLAIN_UINT: above INT64_MAX */
    double f;   /* PLAIN_FLOAT; may be infinite or NaN */
};

/* The value of an untagged, unquoted scalar. */
struct yaml_plain yaml_plain_resolve(struct str text);

/* True for what other readers may take for a date or a base-60 number. */
bool yaml_plain_is_odd(struct str text);
