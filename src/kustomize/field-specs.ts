/** The table of kustomize's field specs: the paths of labels, names, images and references in API kinds. */
import type { Gvk } from './ids.ts'
import type { FieldSpec } from './paths.ts'

/** Fields that refer to resources of this kind. */
export interface BackReferences extends Partial<Gvk> {
  readonly fieldSpecs: readonly FieldSpec[]
}

export interface TransformerConfig {
  readonly namePrefix: readonly FieldSpec[]
  readonly nameSuffix: readonly FieldSpec[]
  readonly namespace: readonly FieldSpec[]
  readonly commonLabels: readonly FieldSpec[]
  readonly labels: readonly FieldSpec[]
  readonly templateLabels: readonly FieldSpec[]
  readonly commonAnnotations: readonly FieldSpec[]
  readonly images: readonly FieldSpec[]
  readonly replicas: readonly FieldSpec[]
  readonly varReference: readonly FieldSpec[]
  readonly nameReference: readonly BackReferences[]
}

/** Kinds with a pod template, and the path of its spec. */
const TEMPLATED: readonly (readonly [kind: string, spec: string])[] = [
  ['Pod', 'spec'],
  ['PodTemplate', 'template/spec'],
  ...['Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet', 'Job'].map(
    (kind) => [kind, 'spec/template/spec'] as const,
  ),
  ['CronJob', 'spec/jobTemplate/spec/template/spec'],
]

function inPods(fields: readonly string[], kinds = TEMPLATED): FieldSpec[] {
  return kinds.flatMap(([kind, spec]) =>
    fields.map((field) => ({ kind, path: `${spec}/${field}`, ...(kind === 'Pod' && { version: 'v1' }) })),
  )
}

const created = (path: string, gvk: Partial<Gvk> = {}): FieldSpec => ({ path, create: true, ...gvk })

const METADATA_LABELS: readonly FieldSpec[] = [
  created('metadata/labels'),
  created('spec/template/metadata/labels', { version: 'v1', kind: 'ReplicationController' }),
  ...['Deployment', 'ReplicaSet', 'DaemonSet'].map((kind) => created('spec/template/metadata/labels', { kind })),
  created('spec/template/metadata/labels', { group: 'apps', kind: 'StatefulSet' }),
  created('spec/volumeClaimTemplates[]/metadata/labels', { group: 'apps', kind: 'StatefulSet' }),
  created('spec/template/metadata/labels', { group: 'batch', kind: 'Job' }),
  created('spec/jobTemplate/metadata/labels', { group: 'batch', kind: 'CronJob' }),
  created('spec/jobTemplate/spec/template/metadata/labels', { group: 'batch', kind: 'CronJob' }),
]

/** Pod selectors within a template: labels are added if the selector exists. */
const AFFINITIES: readonly FieldSpec[] = ['Deployment', 'StatefulSet'].flatMap((kind) =>
  [
    ...['podAffinity', 'podAntiAffinity'].flatMap((what) => [
      `affinity/${what}/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels`,
      `affinity/${what}/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels`,
    ]),
    'topologySpreadConstraints/labelSelector/matchLabels',
  ].map((path) => ({ path: `spec/template/spec/${path}`, group: 'apps', kind })),
)

const COMMON_LABELS: readonly FieldSpec[] = [
  created('spec/selector', { version: 'v1', kind: 'Service' }),
  created('spec/selector', { version: 'v1', kind: 'ReplicationController' }),
  ...['Deployment', 'ReplicaSet', 'DaemonSet'].map((kind) => created('spec/selector/matchLabels', { kind })),
  created('spec/selector/matchLabels', { group: 'apps', kind: 'StatefulSet' }),
  ...AFFINITIES,
  { path: 'spec/selector/matchLabels', group: 'batch', kind: 'Job' },
  { path: 'spec/jobTemplate/spec/selector/matchLabels', group: 'batch', kind: 'CronJob' },
  { path: 'spec/selector/matchLabels', group: 'policy', kind: 'PodDisruptionBudget' },
  ...['spec/podSelector', 'spec/ingress/from/podSelector', 'spec/egress/to/podSelector'].map((path) => ({
    path: `${path}/matchLabels`,
    group: 'networking.k8s.io',
    kind: 'NetworkPolicy',
  })),
  ...METADATA_LABELS,
]

const COMMON_ANNOTATIONS: readonly FieldSpec[] = [
  created('metadata/annotations'),
  created('spec/template/metadata/annotations', { version: 'v1', kind: 'ReplicationController' }),
  ...['Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet'].map((kind) =>
    created('spec/template/metadata/annotations', { kind }),
  ),
  created('spec/template/metadata/annotations', { group: 'batch', kind: 'Job' }),
  created('spec/jobTemplate/metadata/annotations', { group: 'batch', kind: 'CronJob' }),
  created('spec/jobTemplate/spec/template/metadata/annotations', { group: 'batch', kind: 'CronJob' }),
]

function envAndVolumes(what: 'configMap' | 'secret'): string[] {
  return [
    what === 'secret' ? 'volumes/secret/secretName' : 'volumes/configMap/name',
    ...['containers', 'initContainers'].flatMap((list) => [
      `${list}/env/valueFrom/${what}KeyRef/name`,
      `${list}/envFrom/${what}Ref/name`,
    ]),
    `volumes/projected/sources/${what}/name`,
  ]
}

const RESOURCE_NAMES: readonly FieldSpec[] = ['Role', 'ClusterRole'].map((kind) => ({
  path: 'rules/resourceNames',
  kind,
}))

/** Pod fields that name service accounts, claims and classes. */
function inWorkloads(field: string): FieldSpec[] {
  const kinds = ['StatefulSet', 'Deployment', 'ReplicationController', 'Job', 'DaemonSet']
  return [
    { path: `spec/${field}`, kind: 'Pod' },
    ...kinds.map((kind) => ({ path: `spec/template/spec/${field}`, kind })),
    { path: `spec/jobTemplate/spec/template/spec/${field}`, kind: 'CronJob' },
  ]
}

const INGRESS_SECRETS = [
  'ingress.kubernetes.io\\/auth-secret',
  'nginx.ingress.kubernetes.io\\/auth-secret',
  'nginx.ingress.kubernetes.io\\/auth-tls-secret',
]
const RBAC = 'rbac.authorization.k8s.io'
const ADMISSION = 'admissionregistration.k8s.io'

const NAME_REFERENCE: readonly BackReferences[] = [
  ...['Deployment', 'ReplicationController', 'ReplicaSet', 'StatefulSet'].map((kind) => ({
    kind,
    fieldSpecs: [{ path: 'spec/scaleTargetRef/name', kind: 'HorizontalPodAutoscaler' }],
  })),
  {
    kind: 'ConfigMap',
    version: 'v1',
    fieldSpecs: [
      ...inPods(envAndVolumes('configMap')),
      { path: 'spec/configSource/configMap', kind: 'Node' },
      ...RESOURCE_NAMES,
      { path: 'metadata/annotations/nginx.ingress.kubernetes.io\\/fastcgi-params-configmap', kind: 'Ingress' },
    ],
  },
  {
    kind: 'Secret',
    version: 'v1',
    fieldSpecs: [
      ...inPods([...envAndVolumes('secret'), 'imagePullSecrets/name']),
      { path: 'spec/tls/secretName', kind: 'Ingress' },
      ...INGRESS_SECRETS.map((name) => ({ path: `metadata/annotations/${name}`, kind: 'Ingress' })),
      { path: 'imagePullSecrets/name', kind: 'ServiceAccount' },
      ...['secretName', 'adminSecretName', 'userSecretName', 'secretRef'].map((name) => ({
        path: `parameters/${name}`,
        kind: 'StorageClass',
      })),
      ...RESOURCE_NAMES,
      {
        path: 'spec/template/spec/containers/env/valueFrom/secretKeyRef/name',
        kind: 'Service',
        group: 'serving.knative.dev',
        version: 'v1',
      },
      { path: 'spec/azureFile/secretName', kind: 'PersistentVolume' },
    ],
  },
  {
    kind: 'Service',
    version: 'v1',
    fieldSpecs: [
      { path: 'spec/serviceName', kind: 'StatefulSet', group: 'apps' },
      ...[
        'rules/http/paths/backend/serviceName',
        'backend/serviceName',
        'rules/http/paths/backend/service/name',
        'defaultBackend/service/name',
      ].map((path) => ({ path: `spec/${path}`, kind: 'Ingress' })),
      { path: 'spec/service/name', kind: 'APIService', group: 'apiregistration.k8s.io' },
      ...['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'].map((kind) => ({
        path: 'webhooks/clientConfig/service',
        kind,
        group: ADMISSION,
      })),
    ],
  },
  { kind: 'Role', group: RBAC, fieldSpecs: [{ path: 'roleRef/name', kind: 'RoleBinding', group: RBAC }] },
  {
    kind: 'ClusterRole',
    group: RBAC,
    fieldSpecs: ['RoleBinding', 'ClusterRoleBinding'].map((kind) => ({ path: 'roleRef/name', kind, group: RBAC })),
  },
  {
    kind: 'ServiceAccount',
    version: 'v1',
    fieldSpecs: [
      ...['RoleBinding', 'ClusterRoleBinding'].map((kind) => ({ path: 'subjects', kind, group: RBAC })),
      ...inWorkloads('serviceAccountName'),
    ],
  },
  { kind: 'PersistentVolumeClaim', version: 'v1', fieldSpecs: inWorkloads('volumes/persistentVolumeClaim/claimName') },
  {
    kind: 'PersistentVolume',
    version: 'v1',
    fieldSpecs: [
      { path: 'spec/volumeName', kind: 'PersistentVolumeClaim' },
      { path: 'rules/resourceNames', kind: 'ClusterRole' },
    ],
  },
  {
    kind: 'StorageClass',
    version: 'v1',
    group: 'storage.k8s.io',
    fieldSpecs: [
      ...['PersistentVolume', 'PersistentVolumeClaim'].map((kind) => ({ path: 'spec/storageClassName', kind })),
      { path: 'spec/volumeClaimTemplates/spec/storageClassName', kind: 'StatefulSet' },
    ],
  },
  { kind: 'PriorityClass', version: 'v1', group: 'scheduling.k8s.io', fieldSpecs: inWorkloads('priorityClassName') },
  {
    kind: 'IngressClass',
    version: 'v1',
    // Upstream includes the version here, so it never matches.
    group: 'networking.k8s.io/v1',
    fieldSpecs: [{ path: 'spec/ingressClassName', kind: 'Ingress' }],
  },
  {
    kind: 'ValidatingAdmissionPolicy',
    group: ADMISSION,
    fieldSpecs: [{ path: 'spec/policyName', kind: 'ValidatingAdmissionPolicyBinding', group: ADMISSION }],
  },
]

const VAR_FIELDS = ['containers', 'initContainers'].flatMap((list) =>
  ['args', 'command', 'env/value', 'volumeMounts/mountPath'].map((field) => `${list}/${field}`),
)

const VAR_REFERENCE: readonly FieldSpec[] = [
  ...TEMPLATED.filter(([kind]) => kind !== 'PodTemplate').flatMap(([kind, spec]) =>
    [...VAR_FIELDS, 'volumes/nfs/server'].map((field) => ({ path: `${spec}/${field}`, kind })),
  ),
  { path: 'spec/template/metadata/annotations', kind: 'Deployment' },
  ...['rules/host', 'tls/hosts', 'tls/secretName'].map((path) => ({ path: `spec/${path}`, kind: 'Ingress' })),
  ...['port', 'targetPort'].map((name) => ({ path: `spec/ports/${name}`, kind: 'Service' })),
  { path: 'spec/volumeClaimTemplates/spec/nfs/server', kind: 'StatefulSet' },
  { path: 'spec/nfs/server', kind: 'PersistentVolume' },
  { path: 'metadata/labels' },
  { path: 'metadata/annotations' },
]

export const DEFAULT_CONFIG: TransformerConfig = {
  namePrefix: [{ path: 'metadata/name' }],
  nameSuffix: [{ path: 'metadata/name' }],
  namespace: [
    created('metadata/name', { kind: 'Namespace' }),
    created('spec/service/namespace', { group: 'apiregistration.k8s.io', kind: 'APIService' }),
    {
      path: 'spec/conversion/webhook/clientConfig/service/namespace',
      group: 'apiextensions.k8s.io',
      kind: 'CustomResourceDefinition',
    },
  ],
  commonLabels: COMMON_LABELS,
  labels: [],
  templateLabels: METADATA_LABELS,
  commonAnnotations: COMMON_ANNOTATIONS,
  images: ['', 'template/spec/'].flatMap((at) =>
    ['containers[]/image', 'initContainers[]/image', 'volumes[]/image/reference'].map((path) =>
      created(`spec/${at}${path}`),
    ),
  ),
  replicas: ['Deployment', 'StatefulSet', 'ReplicaSet', 'ReplicationController'].map((kind) =>
    created('spec/replicas', { kind }),
  ),
  varReference: VAR_REFERENCE,
  nameReference: NAME_REFERENCE,
}

export const EMPTY_CONFIG: TransformerConfig = {
  namePrefix: [],
  nameSuffix: [],
  namespace: [],
  commonLabels: [],
  labels: [],
  templateLabels: [],
  commonAnnotations: [],
  images: [],
  replicas: [],
  varReference: [],
  nameReference: [],
}

/** Merges both lists without duplicates. */
export function mergeConfigs(one: TransformerConfig, other: TransformerConfig): TransformerConfig {
  const specs = (name: Exclude<keyof TransformerConfig, 'nameReference'>): FieldSpec[] =>
    mergeSpecs(one[name], other[name])
  return {
    namePrefix: specs('namePrefix'),
    nameSuffix: specs('nameSuffix'),
    namespace: specs('namespace'),
    commonLabels: specs('commonLabels'),
    labels: specs('labels'),
    templateLabels: specs('templateLabels'),
    commonAnnotations: specs('commonAnnotations'),
    images: specs('images'),
    replicas: specs('replicas'),
    varReference: specs('varReference'),
    nameReference: mergeReferences(one.nameReference, other.nameReference),
  }
}

/** Throws an Error if the lists disagree on `create`. */
export function mergeSpecs(one: readonly FieldSpec[], other: readonly FieldSpec[]): FieldSpec[] {
  const out = [...one]
  const at = new Map(out.map((spec) => [specKey(spec), spec]))
  for (const spec of other) {
    const known = at.get(specKey(spec))
    if (known === undefined) {
      out.push(spec)
      at.set(specKey(spec), spec)
    } else if ((known.create ?? false) !== (spec.create ?? false)) {
      throw new Error(`conflicting fieldspecs`)
    }
  }
  return out
}

function specKey({ group = '', version = '', kind = '', path }: FieldSpec): string {
  return `${group}|${version}|${kind}|${path}`
}

function mergeReferences(one: readonly BackReferences[], other: readonly BackReferences[]): BackReferences[] {
  const key = ({ group = '', version = '', kind = '' }: BackReferences): string => `${group}|${version}|${kind}`
  const out = new Map(one.map((entry) => [key(entry), entry]))
  for (const entry of other) {
    const known = out.get(key(entry))
    out.set(
      key(entry),
      known === undefined ? entry : { ...known, fieldSpecs: mergeSpecs(known.fieldSpecs, entry.fieldSpecs) },
    )
  }
  return [...out.values()]
}
