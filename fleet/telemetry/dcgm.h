/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What NVIDIA's dcgm-exporter says of the GPUs of a node: Prometheus' text exposition format
 * (0.0.4), of which the fields of DCGM are kept (DCGM_FI_*). Pure. Source: Prometheus' exposition
 * formats; NVIDIA/dcgm-exporter, internal/pkg/rendermetrics. */
#pragma once

#include <sublet/err.h>

#define DCGM_MOST_BYTES    ((size_t)4 << 20) /* of an answer; beyond these it is refused */
#define DCGM_MOST_LINES    65536
#define DCGM_MOST_NAME     256
#define DCGM_MOST_VALUE    1024 /* of a label that is kept */
#define DCGM_MOST_FAMILIES 256
#define DCGM_MOST_DEVICES  4096

enum dcgm_label {
    DCGM_GPU,      /* "gpu": its number on the node */
    DCGM_UUID,     /* "UUID" */
    DCGM_INSTANCE, /* "GPU_I_ID": of MIG; empty: a whole GPU */
    DCGM_PROFILE,  /* "GPU_I_PROFILE" */
    DCGM_MODEL,    /* "modelName" */
    DCGM_HOSTNAME, /* "Hostname", or "hostname" since 2026-05 */
    DCGM_NAMESPACE,
    DCGM_POD,
    DCGM_POD_UID, /* "pod_uid", where the exporter is set to say so */
    DCGM_CONTAINER,
    N_DCGM_LABELS
};
/* A GPU, or an instance of one, as a container has it: empty strings where no pod does. */
struct dcgm_device {
    struct str labels[N_DCGM_LABELS];
    bool disputed; /* pods of two namespaces are said to have it */
};
struct dcgm_family {
    struct str name; /* "DCGM_FI_DEV_FB_USED" */
    struct str type; /* "gauge", "counter", ..., "untyped" */
    struct str help; /* as written, escaped; UTF-8 */
};
struct dcgm_sample {
    uint16_t device, family; /* indexes */
    double value;            /* finite */
};
struct dcgm {
    struct dcgm_device *devices;
    struct dcgm_family *families;
    struct dcgm_sample *samples; /* at most one for a device and a family: the first of them */
    size_t n_devices, n_families, n_samples;
};
/* Strings are in the answer or the arena. A line that is not of the format, or one limit passed,
 * refuses all of it, as Prometheus does: an answer that was cut says nothing. Values that are not
 * finite are none. Left out is a line that names no GPU (links, switches, processors), and one with
 * one of these labels twice: exporters can be set to add labels of pods, which tenants choose. */
int dcgm_parse(struct arena *a, struct str text, struct dcgm *ret, struct err *err) MUST_CHECK;
/* Index of a family, or -1. */
int dcgm_family(const struct dcgm *d, const char *name);
