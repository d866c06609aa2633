/* SPDX-License-Identifier: Apache-2.0
 * room: fleet
 *
 * A ledger that moves to another database: a file, or a server. */
#pragma once

#include <sublet/err.h>

#define LEDGER_TABLES 9

struct ledger_table {
    const char *name;
    size_t rows;
    unsigned char sha256[32]; /* of all of them */
};
/* Copies the ledger of one location to another one, which must be empty, and compares both.
 * CONFLICT: a process has one of them open, or the target has something. */
int ledger_copy(struct str from, struct str to, struct ledger_table ret[LEDGER_TABLES],
                struct err *err) MUST_CHECK;
