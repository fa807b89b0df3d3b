package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const finalizer = group + "/farewell"

func addExtensions(scheme *runtime.Scheme) error { return apiextensions.AddToScheme(scheme) }

func operate(ctx context.Context, asked settings) error {
	manager, err := ctrl.NewManager(asked.config, ctrl.Options{
		Scheme:                        asked.scheme,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                !asked.isAlone,
		LeaderElectionID:              "widgets." + group,
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: asked.host, Port: asked.port, CertDir: asked.folder,
		}),
	})
	if err != nil {
		return err
	}
	hooks := &hooks{}
	if err := ctrl.NewWebhookManagedBy(manager, &Widget{}).WithDefaulter(hooks).WithValidator(hooks).Complete(); err != nil {
		return err
	}
	if err := inject(ctx, manager.GetAPIReader(), manager.GetClient(), asked.folder); err != nil {
		return err
	}
	if asked.isAlone {
		return manager.Start(ctx)
	}
	reconciler := &reconciler{Client: manager.GetClient(), recorder: manager.GetEventRecorder("widgets")}
	err = ctrl.NewControllerManagedBy(manager).For(&Widget{}).Owns(&corev1.ConfigMap{}).Complete(reconciler)
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// inject tells the server whom to trust, where the definition and the configurations have been made without.
func inject(ctx context.Context, reader client.Reader, writer client.Client, folder string) error {
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return err
	}
	definition := &apiextensions.CustomResourceDefinition{}
	mutating := &admissionregistration.MutatingWebhookConfiguration{}
	validating := &admissionregistration.ValidatingWebhookConfiguration{}
	trust := map[client.Object]func(){
		definition: func() { definition.Spec.Conversion.Webhook.ClientConfig.CABundle = authority },
		mutating: func() {
			for i := range mutating.Webhooks {
				mutating.Webhooks[i].ClientConfig.CABundle = authority
			}
		},
		validating: func() {
			for i := range validating.Webhooks {
				validating.Webhooks[i].ClientConfig.CABundle = authority
			}
		},
	}
	for object, change := range trust {
		name := "widgets." + group
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
			return err
		}
		before := object.DeepCopyObject().(client.Object)
		change()
		if err := writer.Patch(ctx, object, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

type hooks struct{}

func (*hooks) Default(_ context.Context, widget *Widget) error {
	if widget.Annotations["refuse"] == "default" {
		return errors.New("no default for it")
	}
	if widget.Spec.Color == "" {
		widget.Spec.Color = "blue"
	}
	if widget.Labels == nil {
		widget.Labels = map[string]string{}
	}
	widget.Labels["defaulted"] = "yes"
	return nil
}

func (*hooks) ValidateCreate(ctx context.Context, widget *Widget) (admission.Warnings, error) {
	return judge(ctx, widget)
}

func (*hooks) ValidateUpdate(ctx context.Context, before, widget *Widget) (admission.Warnings, error) {
	if before.Spec.Color != widget.Spec.Color && before.Annotations["fixed"] != "" {
		return nil, fmt.Errorf("color of %s may not change from %s", widget.Name, before.Spec.Color)
	}
	return judge(ctx, widget)
}

func (*hooks) ValidateDelete(_ context.Context, widget *Widget) (admission.Warnings, error) {
	if widget.Annotations["keep"] != "" {
		return admission.Warnings{"ask first"}, errors.New("it is to be kept")
	}
	return nil, nil
}

func judge(ctx context.Context, widget *Widget) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	switch widget.Annotations["refuse"] {
	case "slowly":
		time.Sleep(3 * time.Second)
	case "panic":
		panic("it has hurt itself")
	case "invalid":
		path := field.NewPath("spec", "size")
		kind := v2.WithKind("Widget").GroupKind()
		return nil, apierrors.NewInvalid(kind, widget.Name, field.ErrorList{field.Invalid(path, widget.Spec.Size, "is odd")})
	case "conflict":
		return nil, apierrors.NewConflict(v2.WithResource("widgets").GroupResource(), widget.Name, errors.New("taken"))
	}
	if widget.Spec.Size > 10 {
		return nil, fmt.Errorf("size %d is more than 10", widget.Spec.Size)
	}
	if widget.Spec.Size == 0 {
		return admission.Warnings{"a widget of no size", "asked by " + request.UserInfo.Username}, nil
	}
	return nil, nil
}

type reconciler struct {
	client.Client
	recorder events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.farewell(ctx, widget)
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		if err := r.Update(ctx, widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		owned.Data = map[string]string{"look": fmt.Sprintf("%s:%d", widget.Spec.Color, widget.Spec.Size)}
		return controllerutil.SetControllerReference(widget, owned, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done != controllerutil.OperationResultNone {
		r.recorder.Eventf(widget, owned, corev1.EventTypeNormal, "Reconciled", "Write", "config map %s", done)
	}
	before := copyOf(widget)
	widget.Status.Replicas = widget.Spec.Size
	meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: widget.Generation,
	})
	return ctrl.Result{}, r.Status().Patch(ctx, widget, client.MergeFrom(before))
}

func (r *reconciler) farewell(ctx context.Context, widget *Widget) error {
	last := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: "farewell-" + widget.Name}}
	if err := r.Create(ctx, last); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if controllerutil.RemoveFinalizer(widget, finalizer) {
		return r.Update(ctx, widget)
	}
	return nil
}
