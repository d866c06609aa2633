/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * What can be wrong with the dialogue with the host as a whole: HOST_TROUBLE(name, reason, message)
 * The message follows "the host cluster: " and names nothing of the host. */
HOST_TROUBLE(FINE, "", "")
HOST_TROUBLE(TLS, "TLSVerificationFailed",
             "its certificate cannot be verified, or it refuses ours: see host.kubeconfig")
HOST_TROUBLE(DNS, "NameResolutionFailed", "its name cannot be resolved")
HOST_TROUBLE(REFUSED, "ConnectionFailed", "no connection can be made to its API server")
HOST_TROUBLE(TIMEOUT, "Timeout", "its API server does not answer in time")
HOST_TROUBLE(BROKEN, "ConnectionBroken", "connections to its API server break off")
HOST_TROUBLE(UNAUTHORIZED, "Unauthorized",
             "it does not accept the credentials of this virtual cluster: expired or revoked")
HOST_TROUBLE(ERRORS, "ServerErrors", "its API server answers with errors of its own")
