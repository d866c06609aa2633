/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates in PEM, checked without cryptography. */
#pragma once

#include <sublet/mem.h>

/* Why the bytes are no list of certificates in PEM, in Go's words; NULL when it is one. */
const char *kinds_certificate_problem(struct arena *a, struct str text);
