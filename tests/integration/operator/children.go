// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func hashOf(settings map[string]string) string {
	text, err := json.Marshal(settings) // sorted by key
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

func ownedBy(e *Experiment) *metaac.OwnerReferenceApplyConfiguration {
	return metaac.OwnerReference().WithAPIVersion(Version.String()).WithKind("Experiment").
		WithName(e.Name).WithUID(e.UID).WithController(true).WithBlockOwnerDeletion(true)
}

func labelsOf(e *Experiment) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "experiment", "app.kubernetes.io/instance": e.Name}
}

// settings: server-side apply of a built-in kind.
func (r *reconciler) settings(ctx context.Context, e *Experiment) error {
	cm := coreac.ConfigMap(e.Name+"-settings", e.Namespace).WithLabels(labelsOf(e)).
		WithOwnerReferences(ownedBy(e)).WithData(e.Spec.Settings)
	return r.Apply(ctx, cm, owner, client.ForceOwnership)
}

// workers: server-side apply of what rolls out.
func (r *reconciler) workers(ctx context.Context, e *Experiment) error {
	container := coreac.Container().WithName("worker").WithImage("registry.example/worker:1").
		WithEnv(coreac.EnvVar().WithName("NAME").WithValue(e.Name)).
		WithPorts(coreac.ContainerPort().WithName("grpc").WithContainerPort(9000))
	template := coreac.PodTemplateSpec().WithLabels(labelsOf(e)).
		WithAnnotations(map[string]string{"training.example.com/settings": hashOf(e.Spec.Settings)}).
		WithSpec(coreac.PodSpec().WithContainers(container))
	d := appsac.Deployment(e.Name, e.Namespace).WithLabels(labelsOf(e)).WithOwnerReferences(ownedBy(e)).
		WithSpec(appsac.DeploymentSpec().WithReplicas(e.Spec.Replicas).WithTemplate(template).
			WithSelector(metaac.LabelSelector().WithMatchLabels(labelsOf(e))))
	return r.Apply(ctx, d, owner, client.ForceOwnership)
}

// service: read, then created or updated as a whole; a conflict is tried again by the queue.
func (r *reconciler) service(ctx context.Context, e *Experiment) error {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, s, func() error {
		s.Labels = labelsOf(e)
		s.Spec.ClusterIP = corev1.ClusterIPNone
		s.Spec.Selector = labelsOf(e)
		s.Spec.Ports = []corev1.ServicePort{{Name: "grpc", Port: 9000, Protocol: corev1.ProtocolTCP}}
		return controllerutil.SetControllerReference(e, s, r.Scheme())
	})
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache has not seen it yet
	}
	return err
}

// key: created once, and patched in the built-in kinds' own way when the label is stale.
func (r *reconciler) key(ctx context.Context, e *Experiment) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + "-key"}}
	err := r.direct.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		secret.StringData = map[string]string{"key": e.Name}
		if err := controllerutil.SetControllerReference(e, secret, r.Scheme()); err != nil {
			return err
		}
		if err := r.Create(ctx, secret); err != nil {
			return client.IgnoreAlreadyExists(err)
		}
	} else if err != nil {
		return err
	}
	before := secret.DeepCopy()
	metav1.SetMetaDataLabel(&secret.ObjectMeta, "training.example.com/settings", hashOf(e.Spec.Settings))
	if before.Labels["training.example.com/settings"] == secret.Labels["training.example.com/settings"] {
		return nil
	}
	return client.IgnoreNotFound(r.Patch(ctx, secret, client.StrategicMergeFrom(before)))
}
