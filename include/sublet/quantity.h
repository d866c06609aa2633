/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * resource.Quantity, exactly: a signed integer number of nano units in 128 bits, with the suffix
 * family it was written in. Source: apimachinery pkg/api/resource. */
#pragma once

#include <sublet/json.h>

enum quantity_format { QUANTITY_DECIMAL_SI, QUANTITY_BINARY_SI, QUANTITY_DECIMAL_EXPONENT };

struct quantity {
    /* Rounded up (away from zero) below one nano, as upstream. The binary family is capped at
     * 2^63-1 units when read; everything saturates at 10^29 units. */
    __int128 nano;
    enum quantity_format format;
};

bool quantity_parse(struct str text, struct quantity *ret);
/* Upstream's canonical form: "1500m", "2Gi", "1e3". */
struct str quantity_format(struct arena *a, struct quantity q);
/* What an object holds after a round trip through upstream's type: blanks around it are cut,
 * and the canonical form is taken except where upstream keeps what was written ("+5", "1E3"). */
bool quantity_text(struct arena *a, struct str text, struct str *ret);
int quantity_cmp(struct quantity a, struct quantity b);
/* Do two nodes, strings or numbers, hold the same quantity? "1000m" is "1". Nodes that hold none
 * are compared as JSON; NULL equals nothing. */
bool quantity_equal(struct arena *a, const cJSON *x, const cJSON *y);
/* In the format of a unless a is 0. */
struct quantity quantity_add(struct quantity a, struct quantity b);
struct quantity quantity_sub(struct quantity a, struct quantity b);
struct quantity quantity_from_i64(int64_t units, enum quantity_format format);
bool quantity_is_integer(struct quantity q);
int64_t quantity_units(struct quantity q); /* rounded up, saturating */
int64_t quantity_milli(struct quantity q); /* rounded up, saturating */
