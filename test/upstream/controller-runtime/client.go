package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const namespace = "default"

// told prints one line: what was done, what came of it, and what of the object matters.
func told(what string, err error, shown ...any) {
	outcome := "ok"
	if err != nil {
		outcome = err.Error()
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			outcome = fmt.Sprintf("%d %s %s", status.Status().Code, status.Status().Reason, outcome)
		}
	}
	text, _ := json.Marshal(shown)
	fmt.Printf("%s: %s %s\n", what, outcome, text)
}

// use asks for everything controller-runtime's client and cache can do, and says what came of each.
func use(ctx context.Context, asked settings) error {
	writer, err := client.NewWithWatch(asked.config, client.Options{Scheme: asked.scheme})
	if err != nil {
		return err
	}
	useTyped(ctx, writer)
	usePatches(ctx, writer)
	useApply(ctx, writer)
	useForms(ctx, writer)
	useSubresources(ctx, writer)
	if err := useWatch(ctx, writer); err != nil {
		return err
	}
	return useCache(ctx, asked, writer)
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}}
}

func useTyped(ctx context.Context, c client.Client) {
	made := configMap("typed", map[string]string{"of": "typed"})
	told("create", c.Create(ctx, made), made.Data, made.Labels)
	told("create again", c.Create(ctx, configMap("typed", nil)))
	stale := made.DeepCopy()
	made.Data["a"] = "2"
	told("update", c.Update(ctx, made), made.Data)
	told("update what is old", c.Update(ctx, stale))
	got := &corev1.ConfigMap{}
	told("get", c.Get(ctx, client.ObjectKeyFromObject(made), got), got.Data)
	told("get nothing", c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "none"}, got))
	told("create in no namespace", c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "none", Name: "x"}}))
	drawn := configMap("", nil)
	drawn.GenerateName = "drawn-"
	told("create with a drawn name", c.Create(ctx, drawn), len(drawn.Name))
	for i := range 5 {
		told("create another", c.Create(ctx, configMap(fmt.Sprintf("page-%d", i), map[string]string{"of": "pages"})))
	}
	list := &corev1.ConfigMapList{}
	pages := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{"of": "pages"}, client.Limit(2)}
	for {
		err := c.List(ctx, list, append(pages, client.Continue(list.Continue))...)
		told("list a page", err, len(list.Items), list.RemainingItemCount)
		if err != nil || list.Continue == "" {
			break
		}
	}
	err := c.List(ctx, list, client.MatchingFields{"metadata.name": "page-3"})
	told("list by field", err, len(list.Items))
	told("list by a field that is none", c.List(ctx, list, client.MatchingFields{"data.a": "1"}))
	dry := client.NewDryRunClient(c)
	told("create as if", dry.Create(ctx, configMap("as-if", nil)))
	told("get what was not made", c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "as-if"}, got))
	wrong := client.Preconditions{UID: new(types.UID)}
	told("delete another", c.Delete(ctx, made, wrong))
	told("delete", c.Delete(ctx, made, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	told("delete again", c.Delete(ctx, made))
	told("delete all", c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace), client.MatchingLabels{"of": "pages"}))
	told("list none", c.List(ctx, list, pages...), len(list.Items))
}

func usePatches(ctx context.Context, c client.Client) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "patched"},
		Spec:       corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{{Name: "a", Port: 80}}},
	}
	told("create a service", c.Create(ctx, service))
	before := service.DeepCopy()
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "b", Port: 81})
	told("patch strategically", c.Patch(ctx, service, client.StrategicMergeFrom(before)), service.Spec.Ports)
	before = service.DeepCopy()
	service.Labels = map[string]string{"x": "y"}
	told("patch by merge", c.Patch(ctx, service, client.MergeFrom(before)), service.Labels)
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	service.Labels["x"] = "z"
	told("patch what is old", c.Patch(ctx, service, locked))
	operations := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/labels/x","value":"q"}]`))
	told("patch by operations", c.Patch(ctx, service, operations))
	strict := client.WithFieldValidation(c, client.FieldValidation(metav1.FieldValidationStrict))
	unknown := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"zork":1}}`))
	told("patch a field that is none", strict.Patch(ctx, service, unknown))
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "patched"}, Spec: WidgetSpec{Size: 1}}
	told("create a widget", c.Create(ctx, widget), widget.Spec, widget.Labels)
	told("patch a widget strategically", c.Patch(ctx, widget, client.RawPatch(types.StrategicMergePatchType, []byte(`{}`))))
	old := widget.DeepCopyObject().(*Widget)
	widget.Spec.Size = 3
	told("patch a widget", c.Patch(ctx, widget, client.MergeFrom(old)), widget.Spec, widget.Generation)
	told("delete the service", c.Delete(ctx, service))
	told("delete the widget", c.Delete(ctx, widget))
}

func useApply(ctx context.Context, c client.Client) {
	mine, theirs := client.FieldOwner("mine"), client.FieldOwner("theirs")
	applied := corev1ac.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1"})
	told("apply", c.Apply(ctx, applied, mine), applied.Data)
	other := corev1ac.ConfigMap("applied", namespace).WithData(map[string]string{"a": "2", "b": "2"})
	told("apply by another", c.Apply(ctx, other, theirs))
	told("apply by force", c.Apply(ctx, other, theirs, client.ForceOwnership), other.Data)
	got := &corev1.ConfigMap{}
	told("get what was applied", c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "applied"}, got), owners(got))
	widget := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "applied", "namespace": namespace}, "spec": map[string]any{"size": int64(2)},
	}}
	widget.SetGroupVersionKind(v2.WithKind("Widget"))
	told("apply a widget", c.Apply(ctx, client.ApplyConfigurationFromUnstructured(widget), mine), widget.Object["spec"], owners(widget))
	bad := widget.DeepCopy()
	bad.SetManagedFields(nil)
	bad.Object["spec"] = map[string]any{"zork": int64(2)}
	told("apply a field that is none", c.Apply(ctx, client.ApplyConfigurationFromUnstructured(bad), mine))
	told("delete what was applied", errors.Join(c.Delete(ctx, got), c.Delete(ctx, widget)))
}

func owners(object client.Object) []string {
	found := []string{}
	for _, entry := range object.GetManagedFields() {
		found = append(found, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.FieldsV1.Raw))
	}
	sort.Strings(found)
	return found
}

func useForms(ctx context.Context, c client.Client) {
	told("create for its metadata", c.Create(ctx, configMap("form", map[string]string{"of": "form"})))
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "form"}, partial)
	told("get metadata", err, partial.Labels, partial.TypeMeta)
	before := partial.DeepCopy()
	partial.Labels["more"] = "yes"
	told("patch metadata", c.Patch(ctx, partial, client.MergeFrom(before)), partial.Labels)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	told("list metadata", c.List(ctx, list, client.MatchingLabels{"more": "yes"}), len(list.Items), list.TypeMeta)
	free := &unstructured.Unstructured{}
	free.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	told("get without type", c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "form"}, free), free.Object["data"])
	free.SetGroupVersionKind(schema.GroupVersionKind{Group: "none.dev", Version: "v1", Kind: "None"})
	told("get of a kind that is none", c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "form"}, free))
	told("delete by metadata", c.Delete(ctx, partial))
	mapping, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: "Widget"})
	told("map", err, mapping.Resource, mapping.Scope.Name())
	isNamespaced, err := apiutil.IsObjectNamespaced(&corev1.Node{}, c.Scheme(), c.RESTMapper())
	told("is a node in a namespace", err, isNamespaced)
}

func useSubresources(ctx context.Context, c client.Client) {
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "parts"}, Spec: WidgetSpec{Size: 4}}
	told("create for its parts", c.Create(ctx, widget))
	widget.Status.Replicas = 9
	told("update status", c.Status().Update(ctx, widget), widget.Status.Replicas, widget.Generation)
	scale := &autoscalingv1.Scale{}
	told("get scale", c.SubResource("scale").Get(ctx, widget, scale), scale.Spec, scale.Status)
	scale.Spec.Replicas = 5
	told("update scale", c.SubResource("scale").Update(ctx, widget, client.WithSubResourceBody(scale)), scale.Spec)
	told("get a part that is none", c.SubResource("zork").Get(ctx, widget, scale))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "parts"}}
	told("create an account", c.Create(ctx, account))
	token := &authenticationv1.TokenRequest{}
	told("create token", c.SubResource("token").Create(ctx, account, token), len(token.Status.Token) > 0)
	told("delete what has parts", errors.Join(c.Delete(ctx, widget), c.Delete(ctx, account)))
}

func useWatch(ctx context.Context, c client.WithWatch) error {
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watching, err := c.Watch(ctx, list, since, client.InNamespace(namespace), client.MatchingLabels{"of": "watch"})
	if err != nil {
		return err
	}
	defer watching.Stop()
	watched := configMap("watched", map[string]string{"of": "watch"})
	told("create what is watched", c.Create(ctx, watched))
	watched.Labels["of"] = "nothing"
	told("change what is watched", c.Update(ctx, watched))
	for range 2 {
		event := <-watching.ResultChan()
		told("see", nil, event.Type, event.Object.(*corev1.ConfigMap).Data)
	}
	told("delete what was watched", c.Delete(ctx, watched))
	return nil
}

func useCache(ctx context.Context, asked settings, c client.Client) error {
	cached, err := cache.New(asked.config, cache.Options{Scheme: asked.scheme})
	if err != nil {
		return err
	}
	index := func(object client.Object) []string { return []string{object.(*Widget).Spec.Color} }
	if err := cached.IndexField(ctx, &Widget{}, "spec.color", index); err != nil {
		return err
	}
	within, stop := context.WithCancel(ctx)
	defer stop()
	go func() { must(cached.Start(within)) }()
	told("fill the cache", nil, cached.WaitForCacheSync(ctx))
	seen := make(chan string, 8)
	if err := follow(ctx, cached, seen); err != nil {
		return err
	}
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cached"}, Spec: WidgetSpec{Color: "green", Size: 1}}
	told("create what is cached", c.Create(ctx, widget))
	told("hear of it", nil, <-seen)
	list := &WidgetList{}
	told("list by index", cached.List(ctx, list, client.MatchingFields{"spec.color": "green"}), len(list.Items))
	told("delete what is cached", c.Delete(ctx, widget))
	told("hear that it is gone", nil, <-seen)
	return nil
}

func follow(ctx context.Context, cached cache.Cache, seen chan<- string) error {
	informer, err := cached.GetInformer(ctx, &Widget{})
	if err != nil {
		return err
	}
	say := func(what string) func(any) {
		return func(object any) {
			if object.(runtime.Object).(*Widget).Name == "cached" {
				seen <- what
			}
		}
	}
	_, err = informer.AddEventHandler(handlers{say("added"), say("deleted")})
	ctrl.Log.Info("following")
	return err
}

type handlers struct{ added, deleted func(any) }

func (h handlers) OnAdd(object any, _ bool) { h.added(object) }
func (handlers) OnUpdate(any, any)          {}
func (h handlers) OnDelete(object any)      { h.deleted(object) }
