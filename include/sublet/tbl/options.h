/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * Every option of a virtual cluster; flags, variables, --help, the reference page and
 * values.schema.json follow from here. `pools`, `bindings`, `authentication`, `init`, `sync.toHost`, `sync.fromHost` and
 * `kubeconfig.additionalSecrets` are the keys that are not options.
 *
 * OPTION(type, member, path, flag, env, default, values, help)
 *   member   of struct config; its C type follows from `type`:
 *            STRING struct str, INT/DURATION(ms)/QUANTITY int64_t, BOOL bool, ENUM an enum, LIST
 * str_list values   ENUM, STRING: the words that are allowed ("" for any string); BOOL: words for
 * false|true, or ""; INT, DURATION, QUANTITY: "min..max" */
OPTION(STRING, name, "name", "--name", "SUBLET_NAME", "sublet", "",
       "name of the virtual cluster (a DNS label)")
OPTION(STRING, host_namespace, "host.namespace", "--namespace", "SUBLET_HOST_NAMESPACE", "", "",
       "host namespace of everything this virtual cluster runs; empty: the pod's own")
OPTION(STRING, host_kubeconfig, "host.kubeconfig", "--host-kubeconfig", "SUBLET_HOST_KUBECONFIG",
       "", "", "kubeconfig of the host; empty: in-cluster credentials")
OPTION(STRING, service_namespace, "host.serviceNamespace", NULL, "SUBLET_HOST_SERVICE_NAMESPACE",
       "", "",
       "host namespace of this API's own Service, where pods find it; empty: host.namespace")
OPTION(STRING, pod_service_account, "host.podServiceAccount", NULL,
       "SUBLET_HOST_POD_SERVICE_ACCOUNT", "", "",
       "ServiceAccount of the host that host pods have, without its token; empty: default")
OPTION(INT, host_qps, "host.qps", NULL, "SUBLET_HOST_QPS", "500", "1..100000",
       "requests per second toward the host")
OPTION(INT, host_burst, "host.burst", NULL, "SUBLET_HOST_BURST", "1000", "1..100000",
       "requests toward the host that may exceed the rate at once")
OPTION(INT, host_dry_qps, "host.dryRunQps", NULL, "SUBLET_HOST_DRY_RUN_QPS", "10", "1..100000",
       "dry runs per second toward the host, verdicts included, apart from host.qps; the burst is "
       "four times it")
OPTION(STRING, listen_address, "listen.address", "--listen", "SUBLET_LISTEN_ADDRESS",
       "0.0.0.0:8443", "", "address and port the API is served on")
OPTION(LIST, listen_names, "listen.names", NULL, "SUBLET_LISTEN_NAMES", "", "",
       "further names and addresses of the serving certificate")
OPTION(DURATION, certificate_life_ms, "listen.certificateLifetime", NULL,
       "SUBLET_LISTEN_CERTIFICATE_LIFETIME", "8760h", "10s..87600h",
       "lifetime of the serving certificate and the kubeconfig's; renewed at two thirds")
OPTION(STRING, kubeconfig_server, "kubeconfig.server", NULL, "SUBLET_KUBECONFIG_SERVER", "", "",
       "URL of this API in the kubeconfig and its Secret; empty: made of the listen address")
OPTION(STRING, kubeconfig_context, "kubeconfig.context", NULL, "SUBLET_KUBECONFIG_CONTEXT", "", "",
       "name of its context, cluster and user; empty: the name of the virtual cluster")
OPTION(STRING, data_dir, "store.path", "--data-dir", "SUBLET_STORE_PATH", "/data", "",
       "directory of the store, the certificates and the kubeconfig")
OPTION(INT, max_objects, "store.maxObjects", NULL, "SUBLET_STORE_MAX_OBJECTS", "1000000",
       "100..100000000", "live objects the virtual cluster may hold")
OPTION(QUANTITY, max_bytes, "store.maxBytes", NULL, "SUBLET_STORE_MAX_BYTES", "1Gi", "1Mi..1Ti",
       "live bytes the virtual cluster may hold")
OPTION(INT, history_events, "store.historyEvents", NULL, "SUBLET_STORE_HISTORY_EVENTS", "16384",
       "128..10000000", "changes kept for watches that resume: at most so many ...")
OPTION(QUANTITY, history_bytes, "store.historyBytes", NULL, "SUBLET_STORE_HISTORY_BYTES", "16Mi",
       "64Ki..1Ti", "... and so many bytes on disk ...")
OPTION(DURATION, history_ms, "store.historyDuration", NULL, "SUBLET_STORE_HISTORY_DURATION", "5m",
       "10s..8760h", "... and so old; a watch from before is answered with 410 Expired")
OPTION(QUANTITY, history_memory, "store.historyMemory", NULL, "SUBLET_STORE_HISTORY_MEMORY", "1Mi",
       "4Ki..1Ti",
       "what memory keeps of them, for ten seconds at most; older changes are read from disk for "
       "the watches that need them")
OPTION(DURATION, lease_duration_ms, "lease.duration", NULL, "SUBLET_LEASE_DURATION", "40s",
       "10s..10m",
       "how long a process that does not renew the Lease on the host keeps the others read-only")
OPTION(BOOL, lease_away_read_only, "lease.hostAway", NULL, "SUBLET_LEASE_HOST_AWAY", "serve",
       "serve|readOnly",
       "what a process does that cannot confirm the Lease, because the host is away: serve writes "
       "(nothing goes to the host), or reads only")
OPTION(BOOL, grants, "grants.enabled", NULL, "SUBLET_GRANTS_ENABLED", "false", "",
       "of `sublet fleet`: grants GPUs of GPUPools to the namespaces of GPUBindings")
OPTION(DURATION, grants_grace_ms, "grants.grace", NULL, "SUBLET_GRANTS_GRACE", "2m", "0s..24h",
       "of `sublet fleet`: notice before pods beyond a lowered grant are ended")
OPTION(DURATION, grants_pause_ms, "grants.lendPause", NULL, "SUBLET_GRANTS_LEND_PAUSE", "5m",
       "0s..24h",
       "of `sublet fleet`: how long GPUs that their lender took back are not lent again")
OPTION(BOOL, grants_kai_queues, "grants.kaiQueues", NULL, "SUBLET_GRANTS_KAI_QUEUES", "false", "",
       "of `sublet fleet`: keeps Queues of KAI, so that GPUPools can have mode kai-fraction")
OPTION(BOOL, grants_device_claims, "grants.deviceClaims", NULL, "SUBLET_GRANTS_DEVICE_CLAIMS",
       "false", "",
       "of `sublet fleet`: reads ResourceSlices and ResourceClaims, so that GPUPools can have mode dra")
OPTION(LIST, grants_labels, "grants.labels", NULL, "SUBLET_GRANTS_LABELS", "", "",
       "of `sublet fleet`: keys of labels of GPUBindings that reports can be made by, such as "
       "cost-center")
OPTION(STRING, ledger_postgres, "ledger.postgres.file", NULL, "SUBLET_LEDGER_POSTGRES_FILE", "", "",
       "of `sublet fleet`: file with the connection string of a PostgreSQL database for the ledger, "
       "which others than its owner and group cannot read; empty: the ledger is in store.path")
OPTION(BOOL, dcgm, "telemetry.dcgm.enabled", NULL, "SUBLET_TELEMETRY_DCGM_ENABLED", "false", "",
       "of `sublet fleet`: reads the DCGM exporters of the host's GPU nodes: who uses the GPUs they "
       "hold")
OPTION(STRING, dcgm_namespace, "telemetry.dcgm.namespace", NULL, "SUBLET_TELEMETRY_DCGM_NAMESPACE",
       "gpu-operator", "", "host namespace of the exporters' pods")
OPTION(STRING, dcgm_selector, "telemetry.dcgm.selector", NULL, "SUBLET_TELEMETRY_DCGM_SELECTOR",
       "app=nvidia-dcgm-exporter", "", "labels of the exporters' pods, as a selector of Kubernetes")
OPTION(INT, dcgm_port, "telemetry.dcgm.port", NULL, "SUBLET_TELEMETRY_DCGM_PORT", "9400",
       "1..65535", "port of the exporters, on the addresses of their pods; without TLS")
OPTION(STRING, dcgm_path, "telemetry.dcgm.path", NULL, "SUBLET_TELEMETRY_DCGM_PATH", "/metrics", "",
       "path of their metrics")
OPTION(DURATION, dcgm_interval_ms, "telemetry.dcgm.interval", NULL,
       "SUBLET_TELEMETRY_DCGM_INTERVAL", "60s", "1s..1h",
       "how often each is read; what it said counts for three of these")
OPTION(STRING, dcgm_idle_below_text, "telemetry.dcgm.idleBelow", NULL,
       "SUBLET_TELEMETRY_DCGM_IDLE_BELOW", "0.05", "",
       "activity of a GPU, of 1, below which it is idle")
OPTION(DURATION, dcgm_idle_after_ms, "telemetry.dcgm.idleAfter", NULL,
       "SUBLET_TELEMETRY_DCGM_IDLE_AFTER", "30m", "0s..168h",
       "how long all GPUs of a pod are idle before it counts as one that does not use them")
OPTION(STRING, telemetry_fleet, "telemetry.fleet", NULL, "SUBLET_TELEMETRY_FLEET", "", "",
       "URL of the page of `sublet fleet`, from which /metrics/dcgm comes: the tenant's own GPUs as "
       "the host's DCGM exporters see them; empty: it is not served")
OPTION(STRING, telemetry_fleet_ca, "telemetry.fleetCA", NULL, "SUBLET_TELEMETRY_FLEET_CA", "", "",
       "file of the CA of its certificate, PEM; empty: the system's")
OPTION(STRING, telemetry_fleet_token, "telemetry.fleetToken", NULL, "SUBLET_TELEMETRY_FLEET_TOKEN",
       "/var/run/secrets/sublet-fleet/token", "",
       "file of the token of this process for the fleet, of audience sublet-fleet")
OPTION(STRING, cluster_domain, "network.clusterDomain", NULL, "SUBLET_NETWORK_CLUSTER_DOMAIN",
       "cluster.local", "", "DNS domain of the virtual cluster")
OPTION(STRING, api_address, "network.apiAddress", NULL, "SUBLET_NETWORK_API_ADDRESS", "", "",
       "IP address under which pods reach this API; empty: that of the host Service")
OPTION(STRING, dns_listen, "network.dns.listen", NULL, "SUBLET_NETWORK_DNS_LISTEN", "", "",
       "address and port, such as 0.0.0.0:1053, on which the tenant's DNS is served over UDP and "
       "TCP; empty: it is off, and pods resolve with the host's")
OPTION(STRING, dns_address, "network.dns.address", NULL, "SUBLET_NETWORK_DNS_ADDRESS", "", "",
       "IP address under which pods reach it, on port 53; empty: that of the host Service NAME-dns")
OPTION(LIST, dns_forwarders, "network.dns.forwarders", NULL, "SUBLET_NETWORK_DNS_FORWARDERS", "",
       "",
       "addresses (and ports) of the resolvers that answer for all other names; none: no name is "
       "forwarded; empty: those of the process's own /etc/resolv.conf")
OPTION(LIST, dns_stubs, "network.dns.stubDomains", NULL, "SUBLET_NETWORK_DNS_STUB_DOMAINS", "", "",
       "domains with resolvers of their own: \"corp.example 10.0.0.10 10.0.0.11:5353\"")
OPTION(LIST, dns_hosts, "network.dns.hosts", NULL, "SUBLET_NETWORK_DNS_HOSTS", "", "",
       "names with fixed addresses, as in /etc/hosts: \"10.0.0.5 git.corp.example\"; "
       "\"*.corp.example\" stands for all names below; they win over everything else")
OPTION(LIST, dns_aliases, "network.dns.aliases", NULL, "SUBLET_NETWORK_DNS_ALIASES", "", "",
       "names that stand for other names: \"git.corp.example gitea.shared.svc.cluster.local\"; "
       "\"*.old.example *.new.example\" for all names below; the target is resolved as the tenant's "
       "own query of it would be")
OPTION(LIST, dns_hidden, "network.dns.hiddenDomains", NULL, "SUBLET_NETWORK_DNS_HIDDEN_DOMAINS", "",
       "",
       "domains that do not exist for the tenant unless stubDomains has them; empty: cluster.local "
       "and the cluster domain of the host that /etc/resolv.conf shows")
OPTION(LIST, dns_searches, "network.dns.searches", NULL, "SUBLET_NETWORK_DNS_SEARCHES", "", "",
       "domains that pods search after those of the virtual cluster; empty: those of the process's "
       "own /etc/resolv.conf, without the host cluster's")
OPTION(LIST, dns_clients, "network.dns.clients", NULL, "SUBLET_NETWORK_DNS_CLIENTS", "", "",
       "address ranges that are answered beside the tenant's own pods")
OPTION(QUANTITY, dns_cache, "network.dns.cache", NULL, "SUBLET_NETWORK_DNS_CACHE", "256Ki",
       "0..1Gi", "memory for answers of other resolvers, which are kept for at most 30 seconds")
OPTION(INT, dns_forward_rate, "network.dns.forwardRate", NULL, "SUBLET_NETWORK_DNS_FORWARD_RATE",
       "100", "1..100000",
       "queries per second that one pod may have forwarded; the burst is twice it")
OPTION(ENUM, pod_security, "policy.podSecurity", "--pod-security", "SUBLET_POLICY_POD_SECURITY",
       "baseline", "privileged|baseline|restricted", "Pod Security Standard every pod must meet")
OPTION(ENUM, verdict, "policy.verdict", "--verdict", "SUBLET_POLICY_VERDICT", "warn",
       "off|warn|enforce",
       "dry run of pods and resizes on the host: none, one whose refusal is a Warning, or one that "
       "refuses the write")
OPTION(DURATION, verdict_timeout_ms, "policy.verdictTimeout", NULL, "SUBLET_POLICY_VERDICT_TIMEOUT",
       "2s", "10ms..1m", "how long a write waits for the host's dry run")
OPTION(LIST, webhook_urls, "policy.webhookUrls", NULL, "SUBLET_POLICY_WEBHOOK_URLS", "", "",
       "URLs outside the virtual cluster that its webhooks may be at, with all paths below each: "
       "https://HOST[:PORT][/PATH]; empty: own Services only")
OPTION(LIST, labels_allow, "policy.labels.allow", NULL, "SUBLET_POLICY_LABELS_ALLOW", "", "",
       "label keys that go down as they are; \"example.com/\" stands for all below it")
OPTION(LIST, labels_up, "policy.labels.fromHost", NULL, "SUBLET_POLICY_LABELS_FROM_HOST", "", "",
       "label keys that come up where the host writes them into the tenant's host objects")
OPTION(LIST, annotations_allow, "policy.annotations.allow", NULL, "SUBLET_POLICY_ANNOTATIONS_ALLOW",
       "", "", "annotation keys that go down; without it none does")
OPTION(LIST, annotations_up, "policy.annotations.fromHost", NULL,
       "SUBLET_POLICY_ANNOTATIONS_FROM_HOST", "", "",
       "annotation keys that come up likewise")
OPTION(ENUM, tolerations, "policy.tolerations", NULL, "SUBLET_POLICY_TOLERATIONS", "drop",
       "drop|refuse",
       "tolerations that the pod's pool does not grant: dropped with a Warning, or a 403")
OPTION(ENUM, price_warnings, "policy.priceWarnings", NULL, "SUBLET_POLICY_PRICE_WARNINGS", "dryRun",
       "never|dryRun|always",
       "Warnings that say what the GPUs of pods cost an hour, where the pool has a price: of writes "
       "with --dry-run=server, of all, or none")
OPTION(LIST, cpu_nodes, "policy.cpuNodes", NULL, "SUBLET_POLICY_CPU_NODES", "", "",
       "labels (key=value), all of which nodes for pods without GPUs have; empty: any node of no "
       "pool and without GPUs")
OPTION(LIST, plain_resources, "policy.plainResources", NULL, "SUBLET_POLICY_PLAIN_RESOURCES", "", "",
       "extended resources that are no devices: nodes that have no others are open to pods without "
       "GPUs; \"example.com/\" stands for all of the domain")
OPTION(BOOL, pull_always, "policy.imagePullPolicy", NULL, "SUBLET_POLICY_IMAGE_PULL_POLICY",
       "asWritten", "asWritten|always",
       "of containers and image volumes on the host; always: a private image that another tenant's "
       "pod left on a node is not used without the right to pull it")
OPTION(INT, pods_per_minute, "policy.podsPerMinute", NULL, "SUBLET_POLICY_PODS_PER_MINUTE", "0",
       "0..1000000", "pods without GPUs created in a minute; the next is a 403; 0: no limit")
OPTION(LIST, storage_classes, "policy.storageClasses", NULL, "SUBLET_POLICY_STORAGE_CLASSES", "",
       "",
       "storage classes claims may name, the first being the default; empty: the host's default "
       "alone")
OPTION(BOOL, fleet_bindings, "fleet.bindings", NULL, "SUBLET_FLEET_BINDINGS", "false", "",
       "pools and quota by the GPUBindings of the host namespace, which `sublet fleet` grants, beside "
       "pools and bindings of this file; changes take effect at once")
OPTION(DURATION, lend_after_ms, "fleet.lendAfter", NULL, "SUBLET_FLEET_LEND_AFTER", "5m", "1s..24h",
       "with fleet.bindings: how long GPUs of a guarantee are not wanted before the fleet may lend "
       "them")
OPTION(BOOL, nodes_per_pool, "sync.nodes", NULL, "SUBLET_SYNC_NODES", "real", "real|perPool",
       "the host's nodes, by name; or one node for each bound pool and one for pods without "
       "devices, with what this tenant has and can still get")
OPTION(LIST, node_labels, "sync.nodeLabels", NULL, "SUBLET_SYNC_NODE_LABELS", "", "",
       "further labels of host nodes that are shown")
OPTION(
    BOOL, kubelets, "sync.kubelets", NULL, "SUBLET_SYNC_KUBELETS", "off", "off|own",
    "nodes/NAME/proxy: refused, or the kubelet's statistics, metrics and pods, cut to the tenant's "
    "own pods")
OPTION(INT, kubelet_addresses, "sync.kubeletAddresses", NULL, "SUBLET_SYNC_KUBELET_ADDRESSES", "0",
       "0..64",
       "with sync.kubelets: of how many nodes the InternalIP is an address of this process, that of "
       "a host Service NAME-kubelet-N, where port 10250 serves the same; other nodes have none")
OPTION(INT, max_failed_pods, "sync.maxFailedPods", NULL, "SUBLET_SYNC_MAX_FAILED_PODS", "500",
       "0..100000", "failed pods kept on the host; beyond it the oldest are deleted")
OPTION(INT, max_services, "sync.maxServices", NULL, "SUBLET_SYNC_MAX_SERVICES", "100", "0..100000",
       "Services with a cluster IP of the host's, and as many headless ones; the next is a 403")
OPTION(BOOL, metrics_from_host, "metrics.source", NULL, "SUBLET_METRICS_SOURCE", "off", "off|host",
       "where metrics.k8s.io (kubectl top, HorizontalPodAutoscalers) comes from: nowhere, or the "
       "host's metrics API, cut to the tenant's own pods")
OPTION(BOOL, metrics_whole_nodes, "metrics.nodes", NULL, "SUBLET_METRICS_NODES", "own", "own|whole",
       "what a node's usage is: that of the tenant's own pods on it, or of the whole node, other "
       "tenants' pods included")
OPTION(BOOL, controllers_native, "controllers", "--controllers", "SUBLET_CONTROLLERS", "native",
       "external|native", "who runs the workload controllers: this process or upstream's manager")
OPTION(STRING, audit_policy, "audit.policy", NULL, "SUBLET_AUDIT_POLICY", "", "",
       "audit policy (audit.k8s.io/v1) as YAML; what it matches is recorded; empty: no audit log")
OPTION(STRING, audit_policy_file, "audit.policyFile", "--audit-policy-file",
       "SUBLET_AUDIT_POLICY_FILE", "", "", "the same, from a file")
OPTION(STRING, audit_path, "audit.path", "--audit-log-path", "SUBLET_AUDIT_PATH", "-", "",
       "file of the audit log, a JSON event per line; -: the standard output")
OPTION(QUANTITY, audit_max_size, "audit.maxSize", NULL, "SUBLET_AUDIT_MAX_SIZE", "100Mi",
       "64Ki..1Ti", "size at which the audit log is rotated")
OPTION(INT, audit_max_backups, "audit.maxBackups", NULL, "SUBLET_AUDIT_MAX_BACKUPS", "10",
       "0..10000", "rotated audit logs that are kept; 0: all of them")
OPTION(INT, audit_max_age, "audit.maxAge", NULL, "SUBLET_AUDIT_MAX_AGE", "0", "0..36500",
       "days a rotated audit log is kept; 0: for ever")
OPTION(BOOL, audit_refuse, "audit.whenFull", NULL, "SUBLET_AUDIT_WHEN_FULL", "drop", "drop|refuse",
       "what is lost when the disk is too slow for the audit log: events, or new requests (500)")
OPTION(INT, max_mutating, "limits.mutatingRequests", NULL, "SUBLET_LIMITS_MUTATING_REQUESTS", "200",
       "1..10000", "writes under way at once; beyond it they queue by user")
OPTION(INT, max_reading, "limits.readRequests", NULL, "SUBLET_LIMITS_READ_REQUESTS", "400",
       "1..10000", "reads under way at once; beyond it they queue by user")
OPTION(INT, max_watches, "limits.watchesPerUser", NULL, "SUBLET_LIMITS_WATCHES_PER_USER", "2000",
       "10..100000", "watches and streams one user may have open; the next is a 429")
OPTION(INT, max_watches_all, "limits.watches", NULL, "SUBLET_LIMITS_WATCHES", "4000", "10..1000000",
       "watches and streams of all users together; the next is a 429")
OPTION(QUANTITY, memory_limit, "limits.memory", NULL, "SUBLET_LIMITS_MEMORY", "0", "0..16Ti",
       "process memory beyond which requests get 429; 0: four fifths of the container's limit")
OPTION(DURATION, request_timeout_ms, "limits.requestTimeout", NULL, "SUBLET_LIMITS_REQUEST_TIMEOUT",
       "1m", "1s..1h", "when a request that is no watch or stream is answered with 504")
OPTION(STRING, log_level, "log.level", "--log-level", "SUBLET_LOG_LEVEL", "info",
       "error|warn|info|debug", "least severity that is logged")
