/** Reads which kinds a cluster serves, from aggregated discovery, and builds the paths of their objects. */
import { send } from './request.ts'

/** A kind of objects at its preferred version. */
export interface Kind {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly isNamespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  /** Names of subresources, such as `log` and `scale`. */
  readonly subresources: readonly string[]
}

interface DiscoveryResource {
  readonly resource: string
  readonly responseKind?: { readonly kind: string }
  readonly scope: 'Namespaced' | 'Cluster'
  readonly singularResource?: string
  readonly verbs?: readonly string[]
  readonly shortNames?: readonly string[]
  readonly subresources?: readonly { readonly subresource: string }[]
}

export interface Discovery {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string }
    readonly versions?: readonly { readonly version: string; readonly resources?: readonly DiscoveryResource[] }[]
  }[]
}

const ACCEPT =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'

/** All kinds that can be listed, sorted by name. */
export async function loadKinds(cluster: string): Promise<readonly Kind[]> {
  const lists = await Promise.all(
    ['/api', '/apis'].map(async (path) => {
      const response = await send(clusterPath(cluster, path), { accept: ACCEPT })
      return (await response.json()) as Discovery
    }),
  )
  return lists.flatMap(kindsOf).sort((a, b) => (a.kind < b.kind ? -1 : Number(a.kind > b.kind)))
}

/** Each resource once, at the first version that has it: the server lists the preferred version first. */
export function kindsOf({ items = [] }: Discovery): readonly Kind[] {
  return items.flatMap(({ metadata: { name: group = '' } = {}, versions = [] }) => {
    const found = new Map<string, Kind>()
    for (const { version, resources = [] } of versions) {
      for (const resource of resources) {
        const isListed = resource.verbs?.includes('list') === true
        if (isListed && !found.has(resource.resource)) found.set(resource.resource, kindOf(group, version, resource))
      }
    }
    return [...found.values()]
  })
}

function kindOf(group: string, version: string, resource: DiscoveryResource): Kind {
  const { verbs = [], shortNames = [], subresources = [] } = resource
  return {
    group,
    version,
    plural: resource.resource,
    singular: resource.singularResource ?? '',
    kind: resource.responseKind?.kind ?? resource.resource,
    isNamespaced: resource.scope === 'Namespaced',
    verbs,
    shortNames,
    subresources: subresources.map(({ subresource }) => subresource),
  }
}

/** The path of a request to a cluster. */
export function clusterPath(cluster: string, path: string): string {
  return `/k8s/clusters/${encodeURIComponent(cluster)}${path}`
}

/** The path of a list, of all namespaces if `namespace` is empty. */
export function listPath({ group, version, plural }: KindAddress, namespace = ''): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const inside = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${root}${inside}/${plural}`
}

export type KindAddress = Pick<Kind, 'group' | 'version' | 'plural'>

/** The path of an object, or of one of its subresources. */
export function objectPath(
  kind: KindAddress,
  { namespace = '', name }: { readonly namespace?: string | undefined; readonly name: string },
  subresource = '',
): string {
  const path = `${listPath(kind, namespace)}/${encodeURIComponent(name)}`
  return subresource === '' ? path : `${path}/${subresource}`
}
