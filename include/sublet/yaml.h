/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * YAML 1.1 as Kubernetes reads it (sigs.k8s.io/yaml): one document becomes a JSON tree. Anchors and
 * aliases are expanded under a node limit (alias bombs are errors), merge keys are honoured, keys
 * are turned into strings, and plain scalars have the types that go-yaml v2 gives them: y/n, yes/no
 * and on/off are booleans, 0o17 and 1_000 numbers, dates strings. libyaml does the scanning. */
#pragma once

#include <sublet/json.h>

/* Exactly one document, at most 128 deep; empty input gives null. Errors: BAD_REQUEST with line and
 * reason. A duplicate is reported in go-yaml's words, not by its path: `line 9: key "foo" already
 * set in map`, once for each value but the first (at most 100). */
int yaml_parse(struct arena *a, struct str text, json_duplicate_cb duplicate, void *ctx,
               cJSON **ret, struct err *err) MUST_CHECK;
/* The next document of a stream; rest->p is NULL after the last. Documents end at lines
 * that begin with "---". */
struct str yaml_cut(struct str *rest);
/* A tree as YAML (block style, keys in tree order), for `Accept: application/yaml`. */
void yaml_print(struct buf *b, const cJSON *node);
