package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "hyperkube.upstream/memcached/api/v1alpha1"
)

func sample(name, namespace string, size int32) *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       cachev1alpha1.MemcachedSpec{Size: size},
	}
}

var _ = Describe("Memcached controller", func() {
	const name = "test-memcached"
	var key types.NamespacedName

	BeforeEach(func() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "memcached-"}}
		Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
		key = types.NamespacedName{Name: name, Namespace: namespace.Name}
	})

	It("reconciles a custom resource into a Deployment and says so in its status", func() {
		Expect(k8sClient.Create(ctx, sample(name, key.Namespace, 1))).To(Succeed())
		reconciler := &MemcachedReconciler{Client: k8sClient, Scheme: scheme.Scheme}
		_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		Expect(err).NotTo(HaveOccurred())
		deployment := &appsv1.Deployment{}
		Expect(k8sClient.Get(ctx, key, deployment)).To(Succeed())
		Expect(deployment.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort).To(Equal(int32(11211)))
		_, err = reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		Expect(err).NotTo(HaveOccurred())
		memcached := &cachev1alpha1.Memcached{}
		Expect(k8sClient.Get(ctx, key, memcached)).To(Succeed())
		condition := meta.FindStatusCondition(memcached.Status.Conditions, typeAvailable)
		Expect(condition.Status).To(Equal(metav1.ConditionTrue))
		Expect(condition.Reason).To(Equal("Reconciling"))
	})

	It("is refused with the message of the schema when it is too large", func() {
		err := k8sClient.Create(ctx, sample(name, key.Namespace, 6))
		Expect(apierrors.IsInvalid(err)).To(BeTrue())
		Expect(err.Error()).To(ContainSubstring("spec.size: Invalid value: 6: spec.size in body should be less than or equal to 5"))
	})

	It("follows changes in a manager, and makes the Deployment again when somebody deletes it", func() {
		manager, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"}})
		Expect(err).NotTo(HaveOccurred())
		Expect((&MemcachedReconciler{Client: manager.GetClient(), Scheme: manager.GetScheme()}).SetupWithManager(manager)).To(Succeed())
		go func() {
			defer GinkgoRecover()
			Expect(manager.Start(ctx)).To(Succeed())
		}()
		memcached := sample(name, key.Namespace, 2)
		Expect(k8sClient.Create(ctx, memcached)).To(Succeed())
		replicas := func() int32 {
			deployment := &appsv1.Deployment{}
			if k8sClient.Get(ctx, key, deployment) != nil {
				return 0
			}
			return *deployment.Spec.Replicas
		}
		Eventually(replicas, time.Minute).Should(Equal(int32(2)))
		Eventually(func() error {
			if err := k8sClient.Get(ctx, key, memcached); err != nil {
				return err
			}
			memcached.Spec.Size = 4
			return k8sClient.Update(ctx, memcached)
		}, time.Minute).Should(Succeed())
		Eventually(replicas, time.Minute).Should(Equal(int32(4)))
		Expect(k8sClient.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: key.Namespace}})).To(Succeed())
		Eventually(replicas, time.Minute).Should(Equal(int32(4)))
	})
})
