/** Groups the kinds of a cluster for the navigation, and names them. */
import type { Kind } from '../api/kinds.ts'

interface NamedGroup {
  readonly title: string
  readonly plurals: readonly string[]
}

const GROUPS: readonly NamedGroup[] = [
  {
    title: 'Workloads',
    plurals: [
      'pods',
      'deployments.apps',
      'statefulsets.apps',
      'daemonsets.apps',
      'jobs.batch',
      'cronjobs.batch',
      'replicasets.apps',
      'horizontalpodautoscalers.autoscaling',
    ],
  },
  {
    title: 'Network',
    plurals: [
      'services',
      'ingresses.networking.k8s.io',
      'endpointslices.discovery.k8s.io',
      'networkpolicies.networking.k8s.io',
      'gateways.gateway.networking.k8s.io',
      'httproutes.gateway.networking.k8s.io',
    ],
  },
  { title: 'Configuration', plurals: ['configmaps', 'secrets', 'resourcequotas', 'limitranges'] },
  {
    title: 'Storage',
    plurals: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses.storage.k8s.io'],
  },
  {
    title: 'Access',
    plurals: [
      'serviceaccounts',
      'roles.rbac.authorization.k8s.io',
      'rolebindings.rbac.authorization.k8s.io',
      'clusterroles.rbac.authorization.k8s.io',
      'clusterrolebindings.rbac.authorization.k8s.io',
    ],
  },
  {
    title: 'Cluster',
    plurals: [
      'nodes',
      'namespaces',
      'events',
      'customresourcedefinitions.apiextensions.k8s.io',
      'leases.coordination.k8s.io',
    ],
  },
]

export interface KindGroup {
  readonly title: string
  readonly isOpen: boolean
  readonly kinds: readonly Kind[]
}

/** The groups that are not empty. Kinds of no named group are custom if their API group is, otherwise `Other kinds`. */
export function groupKinds(kinds: readonly Kind[]): readonly KindGroup[] {
  const byName = new Map(kinds.map((kind) => [qualified(kind), kind]))
  const named = GROUPS.map(({ title, plurals }) => ({
    title,
    isOpen: true,
    kinds: plurals.flatMap((name) => byName.get(name) ?? []),
  }))
  const placed = new Set(named.flatMap((group) => group.kinds))
  const others = kinds.filter((kind) => !placed.has(kind))
  const groups = [
    ...named,
    { title: 'Custom', isOpen: true, kinds: others.filter(isCustom) },
    { title: 'Other kinds', isOpen: false, kinds: others.filter((kind) => !isCustom(kind)) },
  ]
  return groups.filter((group) => group.kinds.length > 0)
}

function isCustom({ group }: Kind): boolean {
  return group.includes('.') && !group.endsWith('.k8s.io')
}

/** `deployments.apps`, `pods`. */
export function qualified({ plural, group }: Pick<Kind, 'plural' | 'group'>): string {
  return group === '' ? plural : `${plural}.${group}`
}

/** The kind as words in the plural: `Persistent Volume Claims`. */
export function titleOf({ kind, plural }: Pick<Kind, 'kind' | 'plural'>): string {
  const words = kind.replaceAll(/([a-z])([A-Z])/g, '$1 $2').replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
  const singular = kind.toLowerCase()
  if (plural.startsWith(singular)) return words + plural.slice(singular.length)
  return plural.endsWith('ies') && singular.endsWith('y') ? `${words.slice(0, -1)}ies` : words
}
