// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	finalizer = "training.example.com/archive"
	owner     = client.FieldOwner("experiment-operator")
)

type reconciler struct {
	client.Client
	direct    client.Reader // past the cache
	events    events.EventRecorder
	namespace string
}

func newReconciler(m ctrl.Manager, namespace string) *reconciler {
	return &reconciler{m.GetClient(), m.GetAPIReader(), m.GetEventRecorder("experiment-operator"), namespace}
}

// Secrets are watched by their metadata only, as operators do that must not hold what is in them.
func (r *reconciler) setUp(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).
		For(&Experiment{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Secret{}, builder.OnlyMetadata).
		Complete(r)
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	e := &Experiment{}
	if err := r.Get(ctx, req.NamespacedName, e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !e.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.archive(ctx, e)
	}
	before := e.DeepCopyObject().(*Experiment)
	if controllerutil.AddFinalizer(e, finalizer) {
		if err := r.Patch(ctx, e, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	for _, child := range []func(context.Context, *Experiment) error{
		r.settings, r.service, r.key, r.workers, r.count, r.status} {
		if err := child(ctx, e); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// The finalizer's work: what is left behind names no owner, so that no collector takes it along.
func (r *reconciler) archive(ctx context.Context, e *Experiment) error {
	if !controllerutil.ContainsFinalizer(e, finalizer) {
		return nil
	}
	left := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + "-archive"},
		Data:       map[string]string{"configurations": fmt.Sprint(e.Status.Configurations)},
	}
	if err := client.IgnoreAlreadyExists(r.Create(ctx, left)); err != nil {
		return err
	}
	r.events.Eventf(e, left, corev1.EventTypeNormal, "Archived", "Archive", "left %s", left.Name)
	before := e.DeepCopyObject().(*Experiment)
	controllerutil.RemoveFinalizer(e, finalizer)
	return client.IgnoreNotFound(r.Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// One more configuration was seen: an update of the status, of whatever is newest.
func (r *reconciler) count(ctx context.Context, e *Experiment) error {
	hash := hashOf(e.Spec.Settings)
	counted := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		newest := &Experiment{}
		if err := r.direct.Get(ctx, client.ObjectKeyFromObject(e), newest); err != nil {
			return err
		}
		if newest.Status.SettingsHash == hash {
			counted = false
			return nil
		}
		newest.Status.SettingsHash = hash
		newest.Status.Configurations++
		counted = true
		return r.Status().Update(ctx, newest)
	})
	if err == nil && counted {
		r.events.Eventf(e, nil, corev1.EventTypeNormal, "Configured", "Configure", "settings are %s", hash)
	}
	return err
}

// What is observed: applied to the status, by the fields that are ours.
func (r *reconciler) status(ctx context.Context, e *Experiment) error {
	d := &appsv1.Deployment{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, d); err != nil {
		return client.IgnoreNotFound(err) // the cache has not seen it; its event comes
	}
	available := metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "Waiting",
		Message: "workers are missing", ObservedGeneration: e.Generation}
	if d.Status.ReadyReplicas == e.Spec.Replicas && d.Status.UpdatedReplicas == e.Spec.Replicas &&
		d.Status.ObservedGeneration == d.Generation {
		available.Status, available.Reason, available.Message = metav1.ConditionTrue, "Ready", "all workers are ready"
	}
	conditions := append([]metav1.Condition(nil), e.Status.Conditions...)
	meta.SetStatusCondition(&conditions, available)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&Experiment{Status: Status{
		ObservedGeneration: e.Generation, ReadyReplicas: d.Status.ReadyReplicas, Conditions: conditions}})
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": content["status"]}}
	u.SetGroupVersionKind(Version.WithKind("Experiment"))
	u.SetNamespace(e.Namespace)
	u.SetName(e.Name)
	return client.IgnoreNotFound(r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership))
}
