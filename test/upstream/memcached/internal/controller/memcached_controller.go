// Package controller keeps a Deployment for each Memcached.
package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "hyperkube.upstream/memcached/api/v1alpha1"
)

const typeAvailable = "Available"

type MemcachedReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(memcached.Status.Conditions) == 0 {
		if err := r.say(ctx, memcached, metav1.ConditionUnknown, "Reconciling", "Starting reconciliation"); err != nil {
			return ctrl.Result{}, err
		}
	}
	found := &appsv1.Deployment{}
	err := r.Get(ctx, req.NamespacedName, found)
	if apierrors.IsNotFound(err) {
		wanted, err := r.deploymentFor(memcached)
		if err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.Create(ctx, wanted)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if *found.Spec.Replicas != memcached.Spec.Size {
		found.Spec.Replicas = ptr.To(memcached.Spec.Size)
		if err := r.Update(ctx, found); err != nil {
			return ctrl.Result{}, err
		}
	}
	message := fmt.Sprintf("Deployment for custom resource (%s) with %d replicas created successfully", memcached.Name, memcached.Spec.Size)
	return ctrl.Result{}, r.say(ctx, memcached, metav1.ConditionTrue, "Reconciling", message)
}

func (r *MemcachedReconciler) say(ctx context.Context, memcached *cachev1alpha1.Memcached, status metav1.ConditionStatus, reason, message string) error {
	meta.SetStatusCondition(&memcached.Status.Conditions, metav1.Condition{Type: typeAvailable, Status: status, Reason: reason, Message: message})
	return r.Status().Update(ctx, memcached)
}

func (r *MemcachedReconciler) deploymentFor(memcached *cachev1alpha1.Memcached) (*appsv1.Deployment, error) {
	labels := map[string]string{"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": memcached.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: memcached.Name, Namespace: memcached.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(memcached.Spec.Size),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:    "memcached",
					Image:   "memcached:1.6.26-alpine3.19",
					Ports:   []corev1.ContainerPort{{ContainerPort: memcached.Spec.ContainerPort, Name: "memcached"}},
					Command: []string{"memcached", "--memory-limit=64", "-o", "modern", "-v"},
				}}},
			},
		},
	}
	return deployment, ctrl.SetControllerReference(memcached, deployment, r.Scheme)
}

func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&cachev1alpha1.Memcached{}).Owns(&appsv1.Deployment{}).Named("memcached").Complete(r)
}
