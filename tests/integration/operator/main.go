// SPDX-License-Identifier: Apache-2.0

// An operator as teams write them, on controller-runtime with its defaults: built-in kinds travel as
// protobuf, the informers start as KUBE_FEATURE_WatchListClient says, two replicas elect a leader.
// It exists to be run against a virtual cluster and against a real one, with the same outcome. It
// must never do what an ordinary operator would not, such as reading anything but its cache by turns.
package main

import (
	"flag"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// One JSON line per message of any of the libraries, so that a test can tell errors from the rest.
func setUpLog() {
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}

func options(namespace string, lease time.Duration) manager.Options {
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(addToScheme(scheme))
	renew, retry := lease*4/5, time.Second
	return manager.Options{
		Scheme:                        scheme,
		Metrics:                       server.Options{BindAddress: "0"},
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection:                true,
		LeaderElectionID:              "experiments",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	}
}

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "cannot go on")
		os.Exit(1)
	}
}

func main() {
	namespace := flag.String("namespace", "default", "where the experiments are")
	identity := flag.String("identity", "", "of this replica, in its log")
	lease := flag.Duration("lease", 15*time.Second, "how long others wait for this replica when it leads and is silent")
	flag.Parse()
	setUpLog()
	m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options(*namespace, *lease))
	must(err)
	must(newReconciler(m, *namespace).setUp(m))
	ctrl.Log.Info("starting", "identity", *identity)
	must(m.Start(ctrl.SetupSignalHandler()))
}
