/**
 * Creates the APIServices of the groups that this server serves itself. Their group and version priorities determine
 * the order in discovery. Upstream: cmd/kube-apiserver/app/aggregator.go, v1.36.
 */
import { type APIService, APIServices } from '#apis/apiregistration/v1.ts'
import { semanticEqual } from '#meta/object.ts'

import type { Registry } from '../registry/registry.ts'

const AUTO_MANAGED = 'kube-aggregator.kubernetes.io/automanaged'

/** For each group: its priority, then its versions with theirs. Versions that are not served are left out. */
const priorities: readonly (readonly [group: string, priority: number, versions: Readonly<Record<string, number>>])[] =
  [
    ['', 18_000, { v1: 1 }],
    ['apps', 17_800, { v1: 15 }],
    ['events.k8s.io', 17_750, { v1: 15, v1beta1: 5 }],
    ['authentication.k8s.io', 17_700, { v1: 15, v1beta1: 9, v1alpha1: 1 }],
    ['authorization.k8s.io', 17_600, { v1: 15 }],
    ['autoscaling', 17_500, { v2: 30, v1: 15 }],
    ['batch', 17_400, { v1: 15, v1beta1: 9 }],
    ['certificates.k8s.io', 17_300, { v1: 15, v1beta1: 9, v1alpha1: 1 }],
    ['networking.k8s.io', 17_200, { v1: 15, v1beta1: 9 }],
    ['policy', 17_100, { v1: 15, v1beta1: 9 }],
    ['rbac.authorization.k8s.io', 17_000, { v1: 15 }],
    ['storage.k8s.io', 16_800, { v1: 15, v1beta1: 9, v1alpha1: 1 }],
    ['apiextensions.k8s.io', 16_700, { v1: 15 }],
    ['admissionregistration.k8s.io', 16_700, { v1: 15, v1beta1: 12, v1alpha1: 9 }],
    ['scheduling.k8s.io', 16_600, { v1: 15, v1alpha2: 2 }],
    ['coordination.k8s.io', 16_500, { v1: 15, v1beta1: 13, v1alpha2: 12 }],
    ['node.k8s.io', 16_300, { v1: 15, v1beta1: 9, v1alpha1: 1 }],
    ['discovery.k8s.io', 16_200, { v1: 15, v1beta1: 12 }],
    ['resource.k8s.io', 16_200, { v1: 21, v1beta2: 15, v1beta1: 9, v1alpha3: 1 }],
    ['flowcontrol.apiserver.k8s.io', 16_100, { v1: 21, v1beta3: 18, v1beta2: 15, v1beta1: 12 }],
    ['internal.apiserver.k8s.io', 16_000, { v1alpha1: 9 }],
    ['storagemigration.k8s.io', 15_800, { v1beta1: 9 }],
  ]

/** For aggregated discovery: the first group is apiregistration.k8s.io itself. */
export function priorityOf(group: string, version: string): { readonly group: number; readonly version: number } {
  if (group === APIServices.group) return { group: 20_001, version: 0 }
  const [, priority, versions] = priorities.find(([name]) => name === group) ?? []
  // The numbers of custom resources.
  return { group: priority ?? 1000, version: versions?.[version] ?? 100 }
}

type LocalApiService = Omit<APIService, 'kind' | 'apiVersion'>

/** Those of the group versions for which `isServed` is true. */
export function localApiServices(isServed: (group: string, version: string) => boolean): LocalApiService[] {
  return priorities.flatMap(([group, groupPriorityMinimum, versions]) =>
    Object.entries(versions)
      .filter(([version]) => isServed(group, version))
      .map(([version, versionPriority]) => ({
        metadata: { name: `${version}.${group}`, labels: { [AUTO_MANAGED]: 'onstart' } },
        spec: { ...(group === '' ? {} : { group }), version, groupPriorityMinimum, versionPriority },
        status: {},
      })),
  )
}

/**
 * Creates the APIServices of all served resources; call it after all resources are registered. An APIService of the
 * same name that users created stays unchanged; one of the server that is no longer served is deleted.
 */
export async function ensureApiServices(registry: Registry): Promise<void> {
  const { writer } = registry
  const wanted = localApiServices((group, version) => registry.hasGroupVersion(group, version))
  const place = async (object: (typeof wanted)[number]): Promise<void> => {
    if (!(await writer.ensure(APIServices, object))) await refresh(registry, object)
  }
  await Promise.all(wanted.map(place))
  const names = new Set(wanted.map(({ metadata }) => metadata.name))
  for (const { metadata } of await registry.list(APIServices, '')) {
    if (names.has(metadata.name) || metadata.labels?.[AUTO_MANAGED] !== 'onstart') continue
    await writer.delete(APIServices, { name: metadata.name ?? '' })
  }
}

async function refresh(registry: Registry, { metadata, spec }: LocalApiService): Promise<void> {
  const { name = '' } = metadata
  const isStale = ({ metadata: there, spec: now }: APIService): boolean =>
    there.labels?.[AUTO_MANAGED] !== undefined && !semanticEqual(now, spec)
  const current = await registry.get(APIServices, '', name)
  if (current === undefined || !isStale(current)) return
  await registry.writer.update(APIServices, { name }, (live) => (isStale(live) ? { ...live, spec } : live))
}
