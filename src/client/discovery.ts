/**
 * Discovers the kinds that a server serves, built-in and custom. It uses aggregated discovery if the server supports
 * it, else one request for each group version.
 */
import type { Kind, Subresource } from '#apis/kinds.ts'
import { parseJson } from '#lib/json/json.ts'
import { type GroupKind, type GroupResource, parseApiVersion } from '#meta/kind.ts'

import type { ApiClient } from './api-client.ts'

export interface ServedKind extends Kind {
  /** True in the group's preferred version. */
  readonly isPreferred: boolean
}

export interface DiscoveryResult {
  readonly kinds: readonly ServedKind[]
  /** `group/version` names whose discovery failed because their aggregated server does not respond. */
  readonly unknown: readonly string[]
}

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'
const MAX_BYTES = 64 << 20

interface Names {
  readonly group?: string
  readonly version?: string
  readonly kind?: string
}

interface GroupDiscovery {
  readonly metadata: { readonly name?: string }
  readonly versions?: readonly VersionDiscovery[]
}

interface VersionDiscovery {
  readonly version: string
  readonly freshness?: string
  readonly resources?: readonly ResourceDiscovery[]
}

interface ResourceDiscovery {
  readonly resource: string
  readonly responseKind?: Names
  readonly scope: string
  readonly singularResource: string
  readonly verbs?: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly subresources?: readonly {
    readonly subresource: string
    readonly responseKind?: Names
    readonly verbs?: readonly string[]
  }[]
}

/** All kinds: the core group first, then groups and versions in the server's order of preference. */
export async function discover(client: ApiClient, signal?: AbortSignal): Promise<DiscoveryResult> {
  const documents = await Promise.all(['/api', '/apis'].map((path) => read(client, path, signal)))
  const groups = documents.flatMap(({ items }) => items ?? [])
  const versions = groups.flatMap(({ metadata: { name = '' }, versions: all = [] }) =>
    all.map((version, at) => ({ group: name, version, isPreferred: at === 0 })),
  )
  return {
    kinds: versions.flatMap(({ group, version, isPreferred }) =>
      (version.resources ?? []).map((resource) => kindOf(group, version.version, resource, isPreferred)),
    ),
    unknown: versions
      .filter(({ version }) => version.freshness === 'Stale')
      .map(({ group, version }) => `${group}/${version.version}`),
  }
}

async function read(
  client: ApiClient,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly items?: readonly GroupDiscovery[] }> {
  const response = await client.ask({ method: 'GET', path, accept: AGGREGATED, signal })
  const document = parseJson(await response.bytes(MAX_BYTES)) as { kind?: string }
  if (document.kind === 'APIGroupDiscoveryList') return document as { items: GroupDiscovery[] }
  throw new Error(`The server does not answer ${path} in the form of aggregated discovery (Kubernetes 1.27 and later)`)
}

function kindOf(group: string, version: string, resource: ResourceDiscovery, isPreferred: boolean): ServedKind {
  const { responseKind = {}, subresources = [] } = resource
  const kind = responseKind.kind ?? ''
  return {
    // The group version that serves the resource counts, not the one in its objects.
    group,
    version,
    kind,
    plural: resource.resource,
    singular: resource.singularResource,
    listKind: `${kind}List`,
    namespaced: resource.scope === 'Namespaced',
    shortNames: resource.shortNames ?? [],
    categories: resource.categories ?? [],
    verbs: resource.verbs ?? [],
    subresources: subresources.map(({ subresource: name, responseKind: of = {}, verbs = [] }): Subresource => ({
      name,
      kind: { group: of.group ?? '', version: of.version ?? '', kind: of.kind ?? '' },
      verbs,
    })),
    isPreferred,
  }
}

/** Looks up kinds by resource name, short name or object. */
export class KindMap {
  readonly #kinds: readonly ServedKind[]

  constructor(kinds: readonly ServedKind[]) {
    this.#kinds = kinds
  }

  /** The kind of an object; without a version, in the preferred version of its group. */
  ofObject({
    apiVersion = '',
    kind = '',
  }: {
    readonly apiVersion?: string
    readonly kind?: string
  }): ServedKind | undefined {
    const { group, version } = parseApiVersion(apiVersion)
    return this.#kinds.find((one) => one.kind === kind && one.group === group && one.version === version)
  }

  ofKind({ group, kind }: GroupKind): ServedKind | undefined {
    return this.#first((one) => one.kind === kind && one.group === group)
  }

  ofResource({ group, resource }: GroupResource): ServedKind | undefined {
    return this.#first((one) => one.plural === resource && one.group === group)
  }

  /** `po`, `pods`, `pod`, `deploy.apps`, `deployments.v1.apps`. A full name wins over a short name of another kind. */
  named(text: string): ServedKind | undefined {
    const [name = '', ...rest] = text.toLowerCase().split('.')
    const isFullName = ({ plural, singular }: ServedKind): boolean => plural === name || singular === name
    const isShortName = ({ shortNames }: ServedKind): boolean => shortNames.includes(name)
    const fits = (one: ServedKind): boolean =>
      rest.length === 0 ||
      one.group === rest.join('.') ||
      rest.join('.') === [one.version, one.group].filter(Boolean).join('.')
    return this.#first((one) => isFullName(one) && fits(one)) ?? this.#first((one) => isShortName(one) && fits(one))
  }

  #first(fits: (kind: ServedKind) => boolean): ServedKind | undefined {
    return this.#kinds.find((one) => one.isPreferred && fits(one)) ?? this.#kinds.find(fits)
  }
}
