/**
 * The conformance tests of v1.36 in groups, with what each group needs: nothing, nodes or containers. A test belongs to
 * the longest matching prefix of its name. Names are upstream's without tags and begin with the special interest group.
 */

/** Weakest first: each needs what the ones before it need as well. */
export const NEEDS = ['api', 'controllers', 'kubelet', 'network', 'multinode'] as const

export type Need = (typeof NEEDS)[number]

export interface Entry {
  readonly group: string
  readonly needs: Need
  readonly tests: readonly string[]
}

/** Undefined for a test that no prefix knows: a newer suite. */
export function entryOf(fullName: string): Entry | undefined {
  const name = plainName(fullName)
  let found: Entry | undefined
  let longest = 0
  for (const entry of CATALOG) {
    for (const prefix of entry.tests) {
      if (prefix.length <= longest || !(name === prefix || name.startsWith(`${prefix} `))) continue
      found = entry
      longest = prefix.length
    }
  }
  return found
}

/** `[sig-node] Pods [NodeConformance] should …  [Conformance]` as `node: Pods should …`. */
export function plainName(fullName: string): string {
  const area = /^\[sig-([\w-]+)\]\s*/.exec(fullName)
  const rest = area ? fullName.slice(area[0].length) : fullName
  // [DRA] is the only tag that is also the name of what is tested.
  const words = rest.replaceAll(/\s*\[(?!DRA\])[A-Z]\w*(:[\w.]+)?\]/g, '').trim()
  return area ? `${area[1]}: ${words}` : words
}

export const CATALOG: readonly Entry[] = [
  {
    group: 'am-discovery',
    needs: 'api',
    tests: [
      'api-machinery: AggregatedDiscovery',
      'api-machinery: Discovery',
      'api-machinery: Servers with support for Table',
      'api-machinery: server',
    ],
  },
  { group: 'am-chunking', needs: 'api', tests: ['api-machinery: Servers with support for API'] },
  { group: 'am-watch', needs: 'api', tests: ['api-machinery: Watchers'] },
  { group: 'am-field-validation-ssa', needs: 'api', tests: ['api-machinery: FieldValidation'] },
  { group: 'am-crd', needs: 'api', tests: ['api-machinery: CustomResourceDefinition'] },
  { group: 'am-crd', needs: 'network', tests: ['api-machinery: CustomResourceFieldSelectors'] },
  { group: 'am-crd-openapi', needs: 'api', tests: ['api-machinery: CustomResourcePublishOpenAPI'] },
  { group: 'am-crd-conversion', needs: 'network', tests: ['api-machinery: CustomResourceConversionWebhook'] },
  {
    group: 'am-admission-webhooks',
    needs: 'kubelet',
    tests: [
      'api-machinery: AdmissionWebhook should be able to create',
      'api-machinery: AdmissionWebhook should include',
      'api-machinery: AdmissionWebhook should reject',
    ],
  },
  {
    group: 'am-admission-webhooks',
    needs: 'network',
    tests: [
      'api-machinery: AdmissionWebhook listing',
      'api-machinery: AdmissionWebhook patching/updating',
      'api-machinery: AdmissionWebhook should be able to deny',
      'api-machinery: AdmissionWebhook should deny',
      'api-machinery: AdmissionWebhook should honor',
      'api-machinery: AdmissionWebhook should mutate',
      'api-machinery: AdmissionWebhook should not',
      'api-machinery: AdmissionWebhook should unconditionally',
    ],
  },
  {
    group: 'am-vap-map',
    needs: 'api',
    tests: ['api-machinery: MutatingAdmissionPolicy', 'api-machinery: ValidatingAdmissionPolicy'],
  },
  { group: 'am-aggregation', needs: 'network', tests: ['api-machinery: Aggregator'] },
  { group: 'am-flowcontrol', needs: 'api', tests: ['api-machinery: API'] },
  { group: 'am-garbage-collector', needs: 'controllers', tests: ['api-machinery: Garbage'] },
  {
    group: 'am-namespaces',
    needs: 'api',
    tests: ['api-machinery: Namespaces should apply', 'api-machinery: Namespaces should patch'],
  },
  {
    group: 'am-namespaces',
    needs: 'controllers',
    tests: ['api-machinery: Namespaces should ensure that all services'],
  },
  {
    group: 'am-namespaces',
    needs: 'kubelet',
    tests: ['api-machinery: Namespaces should ensure that all pods', 'api-machinery: OrderedNamespaceDeletion'],
  },
  {
    group: 'am-quota',
    needs: 'api',
    tests: ['api-machinery: ResourceQuota should be', 'api-machinery: ResourceQuota should manage'],
  },
  {
    group: 'am-quota',
    needs: 'controllers',
    tests: [
      'api-machinery: ResourceQuota should apply',
      'api-machinery: ResourceQuota should create',
      'api-machinery: ResourceQuota should verify',
    ],
  },
  { group: 'am-events', needs: 'api', tests: ['instrumentation: Events'] },
  {
    group: 'auth-serviceaccounts',
    needs: 'api',
    tests: [
      'auth: ServiceAccounts should create',
      'auth: ServiceAccounts should run',
      'auth: ServiceAccounts should update',
    ],
  },
  {
    group: 'auth-serviceaccounts',
    needs: 'controllers',
    tests: ['auth: ServiceAccounts should allow', 'auth: ServiceAccounts should guarantee'],
  },
  { group: 'auth-serviceaccounts', needs: 'kubelet', tests: ['auth: ServiceAccounts should mount'] },
  { group: 'auth-serviceaccounts', needs: 'network', tests: ['auth: ServiceAccounts ServiceAccountIssuerDiscovery'] },
  { group: 'auth-csr', needs: 'api', tests: ['auth: Certificates'] },
  { group: 'auth-subjectreview', needs: 'api', tests: ['auth: SubjectReview'] },
  { group: 'apps-deployment', needs: 'kubelet', tests: ['apps: Deployment'] },
  {
    group: 'apps-replicaset',
    needs: 'kubelet',
    tests: [
      'apps: ReplicaSet Replace',
      'apps: ReplicaSet Replicaset',
      'apps: ReplicaSet should adopt',
      'apps: ReplicaSet should list',
      'apps: ReplicaSet should validate',
    ],
  },
  { group: 'apps-replicaset', needs: 'network', tests: ['apps: ReplicaSet should serve'] },
  {
    group: 'apps-replicationcontroller',
    needs: 'controllers',
    tests: [
      'apps: ReplicationController should get',
      'apps: ReplicationController should release',
      'apps: ReplicationController should surface',
    ],
  },
  {
    group: 'apps-replicationcontroller',
    needs: 'kubelet',
    tests: ['apps: ReplicationController should adopt', 'apps: ReplicationController should test'],
  },
  { group: 'apps-replicationcontroller', needs: 'network', tests: ['apps: ReplicationController should serve'] },
  { group: 'apps-statefulset', needs: 'kubelet', tests: ['apps: StatefulSet'] },
  {
    group: 'apps-daemonset',
    needs: 'kubelet',
    tests: [
      'apps: Daemon set should list',
      'apps: Daemon set should retry',
      'apps: Daemon set should run',
      'apps: Daemon set should update',
      'apps: Daemon set should verify',
    ],
  },
  { group: 'apps-daemonset', needs: 'multinode', tests: ['apps: Daemon set should rollback'] },
  { group: 'apps-controllerrevision', needs: 'kubelet', tests: ['apps: ControllerRevision'] },
  { group: 'apps-job', needs: 'kubelet', tests: ['apps: Job'] },
  { group: 'apps-cronjob', needs: 'api', tests: ['apps: CronJob should support'] },
  {
    group: 'apps-cronjob',
    needs: 'controllers',
    tests: ['apps: CronJob should not', 'apps: CronJob should replace', 'apps: CronJob should schedule'],
  },
  {
    group: 'apps-disruption',
    needs: 'controllers',
    tests: ['apps: DisruptionController Listing', 'apps: DisruptionController should create'],
  },
  {
    group: 'apps-disruption',
    needs: 'kubelet',
    tests: [
      'apps: DisruptionController should block',
      'apps: DisruptionController should observe',
      'apps: DisruptionController should update/patch',
    ],
  },
  { group: 'node-pod-lifecycle', needs: 'api', tests: ['node: Pods Extended Pods'] },
  { group: 'node-pod-lifecycle', needs: 'kubelet', tests: ['node: Pods Extended (pod', 'node: Pods should'] },
  { group: 'node-probes', needs: 'kubelet', tests: ['node: Probing'] },
  { group: 'node-hooks', needs: 'network', tests: ['node: Container Lifecycle', 'node: PreStop'] },
  {
    group: 'node-container-runtime',
    needs: 'kubelet',
    tests: ['node: Container Runtime', 'node: Containers', 'node: Kubelet', 'node: KubeletManagedEtcHosts'],
  },
  { group: 'node-init-containers', needs: 'kubelet', tests: ['node: InitContainer'] },
  { group: 'node-ephemeral-containers', needs: 'kubelet', tests: ['node: Ephemeral'] },
  {
    group: 'node-env-sources',
    needs: 'api',
    tests: [
      'node: ConfigMap should fail',
      'node: ConfigMap should run',
      'node: ConfigMap should update',
      'node: Secrets should fail',
      'node: Secrets should patch',
    ],
  },
  {
    group: 'node-env-sources',
    needs: 'kubelet',
    tests: ['node: ConfigMap should be', 'node: Downward', 'node: Secrets should be', 'node: Variable'],
  },
  { group: 'node-security-context', needs: 'kubelet', tests: ['node: Security'] },
  { group: 'node-sysctls', needs: 'api', tests: ['node: Sysctls should reject'] },
  { group: 'node-sysctls', needs: 'kubelet', tests: ['node: Sysctls should support'] },
  {
    group: 'node-runtimeclass',
    needs: 'api',
    tests: ['node: RuntimeClass should reject', 'node: RuntimeClass should support'],
  },
  { group: 'node-runtimeclass', needs: 'controllers', tests: ['node: RuntimeClass should schedule'] },
  { group: 'node-inplace-resize', needs: 'kubelet', tests: ['node: Pod'] },
  { group: 'node-image-volume', needs: 'kubelet', tests: ['node: ImageVolume'] },
  { group: 'node-taint-eviction', needs: 'controllers', tests: ['node: NoExecuteTaintManager Single'] },
  { group: 'node-taint-eviction', needs: 'kubelet', tests: ['node: NoExecuteTaintManager Multiple'] },
  { group: 'node-api-objects', needs: 'api', tests: ['node: Lease', 'node: Node', 'node: PodTemplates'] },
  { group: 'node-dra-api', needs: 'api', tests: ['node: [DRA]'] },
  { group: 'net-pod-connectivity', needs: 'network', tests: ['network: Networking'] },
  {
    group: 'net-services',
    needs: 'api',
    tests: ['network: Services should complete', 'network: Services should delete', 'network: Services should find'],
  },
  { group: 'net-services', needs: 'kubelet', tests: ['network: Service'] },
  {
    group: 'net-services',
    needs: 'network',
    tests: ['network: Services should be', 'network: Services should have', 'network: Services should serve'],
  },
  {
    group: 'net-endpoints',
    needs: 'api',
    tests: ['network: API', 'network: EndpointSlice should support creating', 'network: Endpoints'],
  },
  {
    group: 'net-endpoints',
    needs: 'controllers',
    tests: [
      'network: EndpointSlice should create and',
      'network: EndpointSliceMirroring',
      'network: EndpointsController should create and',
    ],
  },
  {
    group: 'net-endpoints',
    needs: 'kubelet',
    tests: ['network: EndpointSlice should create Endpoints', 'network: EndpointsController should create Endpoints'],
  },
  { group: 'net-endpoints', needs: 'network', tests: ['network: EndpointSlice should support a'] },
  { group: 'net-dns', needs: 'kubelet', tests: ['network: DNS should support'] },
  { group: 'net-dns', needs: 'network', tests: ['network: DNS should provide', 'network: DNS should resolve'] },
  { group: 'net-proxy-subresource', needs: 'network', tests: ['network: Proxy'] },
  { group: 'net-hostport', needs: 'network', tests: ['network: HostPort'] },
  { group: 'net-ingress-api', needs: 'api', tests: ['network: Ingress', 'network: IngressClass'] },
  { group: 'net-servicecidr-api', needs: 'api', tests: ['network: ServiceCIDR'] },
  { group: 'sched-limitrange', needs: 'api', tests: ['scheduling: LimitRange'] },
  { group: 'sched-predicates', needs: 'controllers', tests: ['scheduling: SchedulerPredicates'] },
  { group: 'sched-preemption-priority', needs: 'controllers', tests: ['scheduling: SchedulerPreemption'] },
  { group: 'stor-emptydir', needs: 'kubelet', tests: ['storage: EmptyDir'] },
  { group: 'stor-configmap-volume', needs: 'api', tests: ['storage: ConfigMap should be immutable'] },
  {
    group: 'stor-configmap-volume',
    needs: 'kubelet',
    tests: [
      'storage: ConfigMap binary',
      'storage: ConfigMap optional',
      'storage: ConfigMap should be consumable',
      'storage: ConfigMap updates',
    ],
  },
  { group: 'stor-secret-volume', needs: 'api', tests: ['storage: Secrets should be immutable'] },
  {
    group: 'stor-secret-volume',
    needs: 'kubelet',
    tests: ['storage: Secrets optional', 'storage: Secrets should be able', 'storage: Secrets should be consumable'],
  },
  { group: 'stor-downwardapi-volume', needs: 'kubelet', tests: ['storage: Downward'] },
  { group: 'stor-projected-volume', needs: 'kubelet', tests: ['storage: Projected'] },
  { group: 'stor-subpath', needs: 'kubelet', tests: ['storage: Subpath'] },
  { group: 'stor-pv-pvc', needs: 'api', tests: ['storage: PersistentVolumes CSI Conformance should apply'] },
  { group: 'stor-pv-pvc', needs: 'controllers', tests: ['storage: PersistentVolumes CSI Conformance should run'] },
  {
    group: 'stor-api-objects',
    needs: 'api',
    tests: ['storage: CSIInlineVolumes', 'storage: CSINodes', 'storage: CSIStorageCapacity', 'storage: StorageClasses'],
  },
  {
    group: 'stor-api-objects',
    needs: 'controllers',
    tests: ['storage: VolumeAttachment', 'storage: VolumeAttributesClass'],
  },
  {
    group: 'cli-kubectl',
    needs: 'api',
    tests: [
      'cli: Kubectl client Kubectl api-versions',
      'cli: Kubectl client Kubectl cluster-info',
      'cli: Kubectl client Kubectl diff',
      'cli: Kubectl client Kubectl run',
      'cli: Kubectl client Kubectl server-side',
      'cli: Kubectl client Kubectl version',
      'cli: Kubectl client Proxy',
    ],
  },
  {
    group: 'cli-kubectl',
    needs: 'kubelet',
    tests: [
      'cli: Kubectl client Kubectl describe',
      'cli: Kubectl client Kubectl expose',
      'cli: Kubectl client Kubectl label',
      'cli: Kubectl client Kubectl patch',
      'cli: Kubectl client Kubectl replace',
      'cli: Kubectl logs',
    ],
  },
  { group: 'cli-kubectl', needs: 'network', tests: ['cli: Kubectl client Guestbook', 'cli: Kubectl client Update'] },
  { group: 'arch-two-nodes', needs: 'multinode', tests: ['architecture: Conformance'] },
]
