// The kind that the operator brings, in two versions that are written differently: v1 says "red:3" where v2 says colour and
// size. v2 is the hub of conversion.
package main

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

const group = "upstream.example.dev"

var (
	v1 = schema.GroupVersion{Group: group, Version: "v1"}
	v2 = schema.GroupVersion{Group: group, Version: "v2"}
)

// Widget is of v2.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Color string `json:"color,omitempty"`
	Size  int64  `json:"size"`
}

type WidgetStatus struct {
	Replicas   int64              `json:"replicas,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// OldWidget is of v1.
type OldWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldWidgetSpec `json:"spec,omitempty"`
	Status            WidgetStatus  `json:"status,omitempty"`
}

type OldWidgetSpec struct {
	Look string `json:"look"`
}

func (*Widget) Hub() {}

func (old *OldWidget) ConvertTo(hub conversion.Hub) error {
	widget := hub.(*Widget)
	widget.ObjectMeta, widget.Status = old.ObjectMeta, old.Status
	at := len(old.Spec.Look)
	for i, one := range old.Spec.Look {
		if one == ':' {
			at = i
		}
	}
	widget.Spec.Color = old.Spec.Look[:at]
	if _, err := fmt.Sscanf(old.Spec.Look[at:], ":%d", &widget.Spec.Size); err != nil {
		return fmt.Errorf("look %q is not of the form color:size", old.Spec.Look)
	}
	return nil
}

func (old *OldWidget) ConvertFrom(hub conversion.Hub) error {
	widget := hub.(*Widget)
	old.ObjectMeta, old.Status = widget.ObjectMeta, widget.Status
	old.Spec.Look = fmt.Sprintf("%s:%d", widget.Spec.Color, widget.Spec.Size)
	return nil
}

func (widget *Widget) DeepCopyObject() runtime.Object   { return copyOf(widget) }
func (list *WidgetList) DeepCopyObject() runtime.Object { return copyOf(list) }
func (old *OldWidget) DeepCopyObject() runtime.Object   { return copyOf(old) }

func copyOf[T any](one *T) *T {
	text, err := json.Marshal(one)
	if err != nil {
		panic(err)
	}
	copied := new(T)
	if err := json.Unmarshal(text, copied); err != nil {
		panic(err)
	}
	return copied
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(v2.WithKind("Widget"), &Widget{})
	scheme.AddKnownTypeWithName(v2.WithKind("WidgetList"), &WidgetList{})
	scheme.AddKnownTypeWithName(v1.WithKind("Widget"), &OldWidget{})
	metav1.AddToGroupVersion(scheme, v1)
	metav1.AddToGroupVersion(scheme, v2)
	return nil
}
