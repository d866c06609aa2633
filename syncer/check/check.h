/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The parts of `sublet check --host`. Each looks at one answer of the host and reports what it
 * finds; check.c sends the requests one after another. */
#pragma once

#include <uv.h>

#include <sublet/config_bound.h>
#include <sublet/host.h>
#include <sublet/host_check.h>

struct host_right {
    bool cluster, required;
    const char *group, *resource, *verbs, *without;
    struct str ns, name; /* not in host.namespace; of this object only */
};

struct host_check {
    struct arena *arena;
    const struct config *config; /* from host_check_bindings() on: live */
    struct config live;
    struct config_bound *bound; /* NULL: nothing that the fleet grants */
    uv_loop_t loop;
    struct host *host;
    host_finding_cb found;
    void *ctx;
    int missing;
    const cJSON *namespace;          /* NULL: not readable */
    cJSON *cluster_queues;           /* of our LocalQueues: its name: that of the LocalQueue */
    struct str trouble;              /* why the host cannot be used at all */
    const struct host_right *rights; /* those of every host, and those of configured kinds */
    size_t n_rights, right, look, secret;
    struct str verbs;    /* of that right, not reviewed yet */
    struct buf lacking;  /* verbs of it that are denied */
    bool unsure, closed; /* unsure: a review failed */
};

/* --- check.c --- */
void host_check_report(struct host_check *c, enum host_finding level, const char *what,
                       struct str text);
void host_check_send(struct host_check *c, const char *method, struct str path, struct str body,
                     host_done_cb done);
/* NULL: no answer, or not JSON. */
cJSON *host_check_body(struct host_check *c, const struct host_answer *answer);
/* The part that was begun is finished: begins the next one. */
void host_check_next(struct host_check *c);
/* The item of a list with this name, or NULL. */
const cJSON *host_check_item(const cJSON *list, struct str name);
/* `to`: each object of the host that the configuration names, and the option that does. */
void host_check_name(struct host_check *c, cJSON *to, struct str object, struct str by);

/* --- rights.c --- */
void host_check_gather_rights(struct host_check *c);
/* The next verb of c->rights[c->right]; after the last one, what was found is reported. */
void host_check_review_next(struct host_check *c);

/* --- secrets.c --- */
void host_check_secret(struct host_check *c); /* number c->secret of config->kubeconfigs */

/* Looks, for the table in check.c. A judgement gets an object or a list of the host; `named` gives
 * what the configuration names of a kind: the look is left out where that is empty. */
typedef void host_check_judge(struct host_check *c, const cJSON *tree);
typedef cJSON *host_check_names(struct host_check *c);

/* --- objects.c --- */
host_check_judge host_check_namespace, host_check_quota, host_check_limits, host_check_bindings,
    host_check_nodes, host_check_classes, host_check_priorities, host_check_runtimes;
host_check_names host_check_named_bindings, host_check_named_priorities, host_check_named_runtimes;

/* --- services.c --- */
host_check_judge host_check_aliases, host_check_kubelets;
host_check_names host_check_named_aliases, host_check_named_kubelets;

/* --- queues.c --- */
host_check_judge host_check_queues, host_check_cluster_queues, host_check_groups;
host_check_names host_check_named_queues, host_check_named_cluster_queues,
    host_check_grouped_by_kai, host_check_grouped_by_volcano, host_check_grouped_natively;
