// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the group and version of the kind this operator serves; experiments.yaml defines it.
var Version = schema.GroupVersion{Group: "training.example.com", Version: "v1"}

// Experiment is a Deployment of workers with settings that are rolled out when they change.
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitempty"`
}

// Spec is what the team asks for.
type Spec struct {
	Replicas int32             `json:"replicas"`
	Settings map[string]string `json:"settings,omitempty"`
}

// Status is written in two ways, as operators do: the conditions by server-side apply, the count of
// configurations by an update that is tried again when it meets a conflict.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	Configurations     int64              `json:"configurations,omitempty"`
	SettingsHash       string             `json:"settingsHash,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// ExperimentList is what an informer lists.
type ExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Experiment `json:"items"`
}

// A copy by way of its JSON: no generated code for a handful of objects.
func clone[T any](from *T) *T {
	to := new(T)
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

// DeepCopyObject makes it a runtime.Object.
func (e *Experiment) DeepCopyObject() runtime.Object {
	return clone(e)
}

// DeepCopyObject makes it a runtime.Object.
func (l *ExperimentList) DeepCopyObject() runtime.Object {
	return clone(l)
}

func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(Version, &Experiment{}, &ExperimentList{})
	metav1.AddToGroupVersion(s, Version)
	return nil
}
