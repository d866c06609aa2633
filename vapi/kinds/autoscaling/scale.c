/* SPDX-License-Identifier: Apache-2.0 */
/* How a Scale is shown in a Table. It is no kind of its own: vapi/api builds it from an object's
 * replica counts. Source: pkg/printers/internalversion/printers.go printScale(),
 * apiextensions-apiserver pkg/apiserver/helpers.go getScaleColumnsForVersion(). */
#include <sublet/kinds.h>

#include "../rules/cells.h"

static const struct column NAME = {"Name", "string", ""};

#define COUNTS                                                                                     \
    {"Desired", "integer", .cell = show_number, .path = "spec.replicas"},                          \
    {                                                                                              \
        "Available", "integer", .cell = show_number, .path = "status.replicas"                     \
    }

static const struct column COLUMNS[] = {COUNTS, {"Age", "string", .cell = show_age}, {NULL}};
static const struct column CUSTOM_COLUMNS[] = {COUNTS, {"Age", "date", .cell = show_age}, {NULL}};

const struct resource KINDS_SCALE = {.first_column = &NAME, .columns = COLUMNS};
const struct resource KINDS_SCALE_OF_CUSTOM = {.columns = CUSTOM_COLUMNS};
