/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Every metric of a virtual cluster and of `sublet fleet`; HELP and TYPE lines and docs/metrics.md follow from here. Names,
 * labels and help of kube-apiserver's own are upstream's; Sublet's begin with `sublet_`.
 *
 * METRIC(id, type, name, labels, help)
 *   labels   names with commas between them; "" for none. No value of a label may be a string that
 *            a tenant chooses. */
METRIC(REQUESTS, COUNTER, "apiserver_request_total",
       "code,component,dry_run,group,resource,scope,subresource,verb,version",
       "Counter of apiserver requests broken out for each verb, dry run value, group, version, "
       "resource, scope, component, and HTTP response code.")
METRIC(REQUEST_DURATION, HISTOGRAM, "apiserver_request_duration_seconds",
       "component,dry_run,group,resource,scope,subresource,verb,version",
       "Response latency distribution in seconds for each verb, dry run value, group, version, "
       "resource, subresource, scope and component.")
METRIC(REQUEST_SLI_DURATION, HISTOGRAM, "apiserver_request_sli_duration_seconds",
       "component,group,resource,scope,subresource,verb,version",
       "Response latency distribution (not counting priority & fairness queue wait times) in "
       "seconds for each verb, group, version, resource, subresource, scope and component.")
METRIC(LONG_RUNNING, GAUGE, "apiserver_longrunning_requests",
       "component,group,resource,scope,subresource,verb,version",
       "Gauge of all active long-running apiserver requests broken out by verb, group, version, "
       "resource, scope and component.")
METRIC(INFLIGHT, GAUGE, "apiserver_current_inflight_requests", "request_kind",
       "Number of currently used inflight request limit of this apiserver per request kind.")
METRIC(LEVEL_EXECUTING, GAUGE, "apiserver_flowcontrol_current_executing_requests", "priority_level",
       "Number of requests executing, by priority level.")
METRIC(LEVEL_QUEUED, GAUGE, "apiserver_flowcontrol_current_inqueue_requests", "priority_level",
       "Number of requests in queues, by priority level.")
METRIC(LEVEL_DISPATCHED, COUNTER, "apiserver_flowcontrol_dispatched_requests_total",
       "priority_level", "Number of requests executed, by priority level.")
METRIC(LEVEL_REJECTED, COUNTER, "apiserver_flowcontrol_rejected_requests_total", "priority_level",
       "Number of requests rejected, by priority level.")
METRIC(REFUSED, COUNTER, "sublet_requests_refused_total", "reason",
       "Requests answered with 429, by exhausted resource.")
METRIC(QUEUED, COUNTER, "sublet_requests_queued_total", "", "Requests that were queued.")
METRIC(QUEUED_SECONDS, COUNTER, "sublet_requests_queued_seconds_total", "",
       "Total time requests spent in queues.")
METRIC(MEMORY_BUDGET, GAUGE, "sublet_memory_budget_bytes", "",
       "Memory limit above which requests get 429; 0: no limit.")
METRIC(MEMORY_USED, GAUGE, "sublet_memory_used_bytes", "",
       "Memory use of the process that counts against the budget.")
METRIC(MEMORY_RESERVED, GAUGE, "sublet_memory_reserved_bytes", "",
       "Memory reserved for requests in progress.")
METRIC(STREAMED, GAUGE, "sublet_streamed_answers", "", "Streamed answers in progress.")
METRIC(STREAMED_TOTAL, COUNTER, "sublet_streamed_answers_total", "", "Answers that were streamed.")
METRIC(CONNECTIONS, GAUGE, "sublet_connections", "", "Open connections of clients.")
METRIC(CONNECTIONS_TOTAL, COUNTER, "sublet_connections_total", "result",
       "Connections of clients that were accepted, or closed at once.")
METRIC(RESOURCE_OBJECTS, GAUGE, "apiserver_resource_objects", "group,resource",
       "Number of stored objects split by kind.")
METRIC(STORAGE_OBJECTS, GAUGE, "apiserver_storage_objects", "resource",
       "Number of stored objects split by kind.")
METRIC(STORE_BYTES, GAUGE, "sublet_store_live_bytes", "", "Bytes of all live objects.")
METRIC(STORE_REVISION, GAUGE, "sublet_store_revision", "", "Newest committed revision.")
METRIC(AUDIT_EVENTS, COUNTER, "apiserver_audit_event_total", "",
       "Counter of audit events generated and sent to the audit backend.")
METRIC(AUDIT_REJECTED, COUNTER, "apiserver_audit_requests_rejected_total", "",
       "Counter of apiserver requests rejected due to an error in audit logging backend.")
METRIC(AUDIT_LOST, COUNTER, "sublet_audit_events_lost_total", "reason",
       "Audit events lost because the buffer or the disk was full.")
METRIC(NOTICES, GAUGE, "sublet_notices", "reason,topic",
       "Standing problems by topic and reason; /readyz/warnings has their messages.")
METRIC(CERTIFICATE_EXPIRY, GAUGE, "sublet_certificate_expiration_timestamp_seconds", "certificate",
       "Expiry time of a certificate of this cluster.")
METRIC(WORKQUEUE_DEPTH, GAUGE, "workqueue_depth", "name", "Current depth of workqueue")
METRIC(WORKQUEUE_ADDS, COUNTER, "workqueue_adds_total", "name",
       "Total number of adds handled by workqueue")
METRIC(WORKQUEUE_RETRIES, COUNTER, "workqueue_retries_total", "name",
       "Total number of retries handled by workqueue")
METRIC(WORKQUEUE_WORKING, GAUGE, "sublet_workqueue_working", "name",
       "Keys of a workqueue that are being processed")
METRIC(GPU_LIMIT, GAUGE, "sublet_gpu_quota_limit", "pool",
       "GPUs of a pool that this virtual cluster may hold now.")
METRIC(GPU_GUARANTEE, GAUGE, "sublet_gpu_quota_guarantee", "pool",
       "GPUs of a pool that are guaranteed to this virtual cluster.")
METRIC(GPU_USED, GAUGE, "sublet_gpu_quota_used", "pool",
       "GPUs of a pool that are charged to pods and claims.")
METRIC(GPU_BORROWED, GAUGE, "sublet_gpu_quota_borrowed", "pool",
       "GPUs that are charged beyond the guarantee.")
METRIC(GPU_QUEUE_PODS, GAUGE, "sublet_gpu_queue_depth", "pool",
       "Pods that wait for GPUs of a pool to come free.")
METRIC(GPU_QUEUE_GPUS, GAUGE, "sublet_gpu_queue_gpus", "pool", "GPUs that those pods wait for.")
METRIC(GPU_QUEUE_WAIT, HISTOGRAM, "sublet_gpu_queue_wait_seconds", "pool",
       "From the creation of a pod that had to wait for GPUs until it was charged for them.")
METRIC(GPU_SCHEDULING, HISTOGRAM, "sublet_gpu_pod_scheduling_seconds", "pool",
       "From the creation of a pod with GPUs until the host had a node for it.")
METRIC(GPU_PODS_CREATED, COUNTER, "sublet_gpu_pods_created_total", "pool",
       "Pods that were created with GPUs of a pool.")
METRIC(GPU_RECLAIMED, COUNTER, "sublet_gpu_pods_reclaimed_total", "pool",
       "Pods that were ended because the fleet took GPUs of a pool back.")
METRIC(GPU_RECLAIMED_SECONDS, COUNTER, "sublet_gpu_reclaimed_gpu_seconds_total", "pool",
       "Time of GPUs that those pods had held since they had a node: what of their work is not saved is lost.")
METRIC(GPU_QUEUE_OLDEST, GAUGE, "sublet_gpu_queue_oldest_seconds", "pool",
       "Time since the creation of the oldest pod that waits for GPUs of a pool; 0: none waits.")
METRIC(REJECTIONS, COUNTER, "sublet_admission_rejections_total", "reason",
       "Writes that the rules of the host or the pools refused: pool, guardrail, rate, quota, pod, "
       "class, node, claim, object, host, or not-ready: it could not be decided yet.")
METRIC(WARNINGS, COUNTER, "sublet_admission_warnings_total", "",
       "Warnings about what pods and data mean on the host.")
METRIC(TELEMETRY_READS, COUNTER, "sublet_telemetry_reads_total", "outcome",
       "Reads of the fleet's series of this virtual cluster's GPUs: answered, or why not (bad-ca, tls, "
       "dns, unreachable, timeout, broken, refused, absent, throttled, status, too-large).")
METRIC(DNS_QUESTIONS, COUNTER, "sublet_dns_questions_total", "outcome", "DNS questions by outcome.")
METRIC(DNS_CACHE_BYTES, GAUGE, "sublet_dns_cache_bytes", "",
       "Memory of cached answers of other resolvers.")
METRIC(PROCESS_OPEN_FDS, GAUGE, "process_open_fds", "", "Number of open file descriptors.")
METRIC(PROCESS_MAX_FDS, GAUGE, "process_max_fds", "", "Maximum number of open file descriptors.")
METRIC(PROCESS_CPU_SECONDS, COUNTER, "process_cpu_seconds_total", "",
       "Total user and system CPU time spent in seconds.")
METRIC(PROCESS_RESIDENT_BYTES, GAUGE, "process_resident_memory_bytes", "",
       "Resident memory size in bytes.")
METRIC(PROCESS_VIRTUAL_BYTES, GAUGE, "process_virtual_memory_bytes", "",
       "Virtual memory size in bytes.")
METRIC(PROCESS_START, GAUGE, "process_start_time_seconds", "",
       "Start time of the process since unix epoch in seconds.")
METRIC(BUILD_INFO, GAUGE, "kubernetes_build_info", "git_version,major,minor,platform",
       "A metric with a constant '1' value labeled by the version of Kubernetes whose API this is.")
METRIC(HEALTHCHECK, GAUGE, "kubernetes_healthcheck", "name,type",
       "This metric records the result of a single healthcheck.")

/* Of `sublet fleet`. A tenant is a host namespace, which the admin names. */
METRIC(FLEET_LEADER, GAUGE, "sublet_fleet_leader", "",
       "1 while this process holds the Lease and keeps the ledger, otherwise 0.")
METRIC(FLEET_UNSEEN, GAUGE, "sublet_fleet_unseen_seconds", "",
       "Time since all nodes and pods of the host were last known to be up to date.")
METRIC(FLEET_UNOBSERVED, COUNTER, "sublet_fleet_unobserved_seconds_total", "",
       "Time in the ledger during which no process observed the host.")
METRIC(FLEET_LEDGER_TROUBLE, GAUGE, "sublet_fleet_ledger_trouble", "",
       "1 while the ledger's PostgreSQL server does not take what was observed; the log says why. Not "
       "of a ledger in a file.")
METRIC(FLEET_LEDGER_WAITING, GAUGE, "sublet_fleet_ledger_waiting_rows", "",
       "Rows that the ledger's PostgreSQL server does not have yet. Not of a ledger in a file.")
METRIC(FLEET_LEDGER_FULL, GAUGE, "sublet_fleet_ledger_full", "",
       "1 when no more rows may wait: nothing is observed or granted until the server has those that "
       "do. Not of a ledger in a file.")
METRIC(FLEET_CAPACITY, GAUGE, "sublet_fleet_capacity_gpus", "pool",
       "GPUs of a pool's nodes: held, idle and unhealthy ones, without what is held beyond it.")
METRIC(FLEET_HELD, GAUGE, "sublet_fleet_held_gpus", "pool,tenant",
       "GPUs that pods of a tenant hold and are billed for.")
METRIC(FLEET_IDLE, GAUGE, "sublet_fleet_idle_gpus", "pool", "GPUs of a pool that no pod holds.")
METRIC(FLEET_UNHEALTHY, GAUGE, "sublet_fleet_unhealthy_gpus", "pool",
       "GPUs of a pool that are not allocatable and not held, and all of nodes that are not Ready.")
METRIC(FLEET_UNMATCHED, GAUGE, "sublet_fleet_unmatched_gpus", "pool",
       "GPUs that pods hold beyond the capacity of their nodes.")
METRIC(FLEET_PODS, GAUGE, "sublet_fleet_pods", "pool,tenant", "Pods that hold GPUs.")
METRIC(FLEET_GPU_SECONDS, COUNTER, "sublet_fleet_gpu_seconds_total", "borrowed,pool,tenant",
       "Time of GPUs that pods of a tenant held since the ledger began, within its guarantee (false) or "
       "beyond it (true).")
METRIC(FLEET_GPU_COST, COUNTER, "sublet_fleet_gpu_cost_micros_total", "currency,pool,tenant",
       "Cost of the GPUs that pods of a tenant held since the ledger began, in millionths of the currency.")
METRIC(FLEET_COUNTED, GAUGE, "sublet_fleet_gpu_counted_timestamp_seconds", "",
       "Until when the ledger is in the counters of GPU time and cost.")
METRIC(FLEET_GRANTED, GAUGE, "sublet_fleet_granted_gpus", "pool,tenant",
       "GPUs that the GPUBinding of a tenant grants.")
METRIC(FLEET_BORROWED, GAUGE, "sublet_fleet_borrowed_gpus", "pool,tenant",
       "GPUs that are granted beyond the guarantee.")
METRIC(FLEET_LENT, GAUGE, "sublet_fleet_lent_gpus", "pool,tenant",
       "GPUs of the guarantee that are not granted: lent, unhealthy, or not free yet.")
METRIC(FLEET_GUARANTEED, GAUGE, "sublet_fleet_guaranteed_gpus", "pool,tenant",
       "GPUs that the GPUBinding of a tenant guarantees.")
METRIC(FLEET_WANTED, GAUGE, "sublet_fleet_wanted_gpus", "pool,tenant",
       "GPUs that a tenant holds or waits for, as it reports.")
METRIC(FLEET_FAIRNESS, GAUGE, "sublet_fleet_fairness_index", "pool",
       "Jain's index of what tenants' pods hold of the lesser of grant and demand: 1 when all have the "
       "same part of it, 1/n when one of n tenants has everything.")
METRIC(FLEET_BINDINGS, GAUGE, "sublet_fleet_bindings", "pool,state",
       "GPUBindings by the reason of their condition Ready; pool is empty where their pool is missing.")
METRIC(FLEET_DISRUPTIONS, COUNTER, "sublet_fleet_gpu_pod_disruptions_total", "pool,reason,tenant",
       "Pods with GPUs that the host ended or is about to, since the process began: evicted, preempted, "
       "reclaimed (the fleet took GPUs back), node-lost, kubelet (shortage or shutdown of the node), other.")
METRIC(FLEET_GRANT_FAILURES, COUNTER, "sublet_fleet_grant_failures_total", "",
       "Writes of grants that the host refused or did not answer; they are tried again.")
METRIC(FLEET_REFUSED, GAUGE, "sublet_fleet_refused_writes", "kind",
       "Writes of grants that the host refuses for what they are, such as by an admission policy: objects, and of "
       "a ResourceQuota parts of pools; each is tried again within 30 s. The kind is that of the object.")
METRIC(FLEET_POOL_UNAVAILABLE, GAUGE, "sublet_fleet_pool_unavailable", "pool,state",
       "1 for a GPUPool that is cordoned, draining, drained, converting or waiting-for-nodes, and for "
       "one whose maintenance is overdue.")
METRIC(FLEET_POOL_CONDITION, GAUGE, "sublet_fleet_pool_condition", "condition,pool,status",
       "Conditions of GPUPools as their status has them: 1 for the status of a condition (true, false, "
       "unknown), 0 for the two others.")
METRIC(FLEET_PRICE, GAUGE, "sublet_fleet_pool_price_micros_per_gpu_hour", "borrowed,currency,mode,pool",
       "Price of a GPU of a pool for an hour within the guarantee (false) and beyond it (true), in "
       "millionths of the currency.")
METRIC(FLEET_BUDGET_SPENT, GAUGE, "sublet_fleet_budget_spent_micros", "currency,pool,tenant",
       "What a tenant's pods cost in a pool since the month began (UTC), in millionths of the currency, "
       "where its GPUBinding has a budget.")
METRIC(FLEET_BUDGET_AMOUNT, GAUGE, "sublet_fleet_budget_amount_micros", "currency,pool,tenant",
       "The budget of a GPUBinding for a month, in millionths of the currency.")
METRIC(FLEET_BUDGET_FORECAST, GAUGE, "sublet_fleet_budget_forecast_micros", "currency,pool,tenant",
       "What the month will have cost at the rate of the last 24 hours, in millionths of the currency; absent "
       "until the ledger has an hour on record.")
METRIC(FLEET_BUDGET_RATIO, GAUGE, "sublet_fleet_budget_ratio", "currency,pool,tenant",
       "What of the budget is spent: 1 is all of it.")
METRIC(FLEET_BUDGET_THRESHOLD, GAUGE, "sublet_fleet_budget_threshold_percent", "currency,pool,tenant",
       "The greatest of warnAt of a budget that is reached; 0: none is.")
METRIC(FLEET_BUDGET_UNREAD, GAUGE, "sublet_fleet_budget_unread_seconds", "",
       "Time since what the month costs was last read from the ledger, or since the process began; where a GPUBinding "
       "has a budget.")
METRIC(FLEET_NODES, GAUGE, "sublet_fleet_nodes", "pool,state",
       "GPU nodes of a pool, or of none (\"\"), that are not-ready, unhealthy, cordoned, untainted, "
       "unmatched, or any.")
METRIC(FLEET_MISUSE_PODS, GAUGE, "sublet_fleet_misuse_pods", "pool,tenant",
       "Pods without GPUs on nodes of a pool, but those of DaemonSets.")
METRIC(FLEET_MISUSE_CPU, GAUGE, "sublet_fleet_misuse_cpu_cores", "pool,tenant",
       "CPU that these pods request.")
METRIC(FLEET_MISUSE_MEMORY, GAUGE, "sublet_fleet_misuse_memory_bytes", "pool,tenant",
       "Memory that these pods request.")
METRIC(FLEET_IDLE_HELD, GAUGE, "sublet_fleet_idle_held_gpus", "pool,state,tenant",
       "GPUs held by pods that have not used them for telemetry.dcgm.idleAfter: warm, with memory of "
       "the GPU in use, or unused.")
METRIC(FLEET_IDLE_HELD_SECONDS, COUNTER, "sublet_fleet_idle_held_gpu_seconds_total",
       "pool,state,tenant", "Time of GPUs in this state, since the process began.")
METRIC(FLEET_UTILISED, GAUGE, "sublet_fleet_utilised_gpus", "pool,tenant",
       "Activity of the GPUs that pods hold, as their exporters measured it, times these GPUs.")
METRIC(FLEET_UNMEASURED, GAUGE, "sublet_fleet_unmeasured_gpus", "pool,tenant",
       "GPUs held by pods of which no exporter said anything lately, or not of each of their GPUs.")
METRIC(FLEET_XIDS, COUNTER, "sublet_fleet_gpu_xid_errors_total", "pool,tenant",
       "Errors (XID) of GPUs while pods of the tenant held them, as their exporters said "
       "(DCGM_FI_DEV_XID_ERRORS changed), since the process began.")
METRIC(FLEET_EXPORTERS, GAUGE, "sublet_fleet_telemetry_exporters", "state",
       "DCGM exporters that are answering, failing, or new: not read yet; and Ready nodes with GPUs of "
       "a pool that have none (absent).")
METRIC(FLEET_EXPORTER_FAILURES, COUNTER, "sublet_fleet_telemetry_failures_total", "reason",
       "Reads of exporters without an answer of one: none in time (timeout), no connection "
       "(unreachable), one that broke off (broken), a server of TLS (tls), another HTTP status than "
       "200 (status), too many bytes (too-large, or memory: of all answers together), or not what "
       "exporters say (parse).")
METRIC(FLEET_TELEMETRY_AGE, GAUGE, "sublet_fleet_telemetry_age_seconds", "",
       "Time since the last answer of the exporter that answered longest ago.")
METRIC(FLEET_SERIES_REFUSED, COUNTER, "sublet_fleet_telemetry_series_refused_total", "reason",
       "Samples of exporters that count for no pod: of a pod that holds no GPUs (no-pod), or holds "
       "them on another node (other-node), or is another one of its name (other-uid), or of a GPU that "
       "two tenants are said to have (shared), or with a value that cannot be (out-of-range).")
METRIC(FLEET_EVENTS_DROPPED, COUNTER, "sublet_fleet_events_dropped_total", "",
       "Events that were not written: too many, refused, or not answered.")
METRIC(FLEET_NOT_SHOWN, GAUGE, "sublet_fleet_series_not_shown", "",
       "Tenants and pools beyond the limit of series that have none.")
