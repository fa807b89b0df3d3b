/** Writes `src/apis/catalog.ts`: the served resources, without values that its reader can derive. */
import { createHash } from 'node:crypto'

import { RESOURCE_GATES } from './corrections.ts'
import type { ApiResource, Facts } from './facts.ts'

const EVERY_VERB = 'create delete deletecollection get list patch update watch'

export interface ServedGroup {
  readonly name: string
  readonly versions: readonly {
    readonly apiVersion: string
    readonly version: string
    readonly resources: readonly ApiResource[]
  }[]
}

/** Core first, then the groups in the order of discovery, each with its versions in order of preference. */
export function servedGroups(facts: Facts): ServedGroup[] {
  const others = facts.groups.map(({ metadata, versions }) => ({
    name: metadata.name,
    versions: versions.map(({ version }) => served(facts, `${metadata.name}/${version}`)),
  }))
  return [{ name: '', versions: [served(facts, 'v1')] }, ...others]
}

function served(facts: Facts, apiVersion: string): ServedGroup['versions'][number] {
  const resources = facts.resources.get(apiVersion)
  if (resources === undefined) throw new Error(`Discovery has no resources of "${apiVersion}"`)
  return { apiVersion, version: apiVersion.slice(apiVersion.indexOf('/') + 1), resources }
}

export function renderCatalog(facts: Facts): string {
  const groups = servedGroups(facts)
  const lines = groups.map(({ name, versions }) => {
    const rendered = versions.map(({ version, resources }) => {
      const rows = resources.filter((resource) => !resource.name.includes('/'))
      const text = rows.map((row) => `      ${renderResource(row, resources, { name, version, groups })},\n`).join('')
      return `    ['${version}', [\n${text}    ]],\n`
    })
    return `  ['${name}', [\n${rendered.join('')}  ]],\n`
  })
  return `${INTERFACE}
export const catalog: readonly (readonly [
  group: string,
  versions: readonly (readonly [version: string, resources: readonly CatalogResource[]])[],
])[] = [
${lines.join('')}]
`
}

const INTERFACE = `/** One resource of a group version. What is absent is the common case, as \`kinds.ts\` fills it in. */
export interface CatalogResource {
  readonly plural: string
  readonly kind: string
  /** Absent: true. */
  readonly namespaced?: boolean
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  /** Absent: all eight. */
  readonly verbs?: readonly string[]
  readonly hash?: string
  /** The apiVersion of stored objects, where it is another one. */
  readonly stored?: string
  readonly gate?: string
  /** By name: verbs, and the kind and apiVersion of the body where they are others than the resource's. */
  readonly subresources?: Readonly<Record<string, readonly [verbs: string, kind?: string, apiVersion?: string]>>
}
`

interface RenderTarget {
  readonly name: string
  readonly version: string
  readonly groups: readonly ServedGroup[]
}

function renderResource(resource: ApiResource, all: readonly ApiResource[], target: RenderTarget): string {
  const { name, kind, namespaced, shortNames, categories, verbs, storageVersionHash: hash } = resource
  if (resource.singularName !== kind.toLowerCase()) throw new Error(`Unexpected singular of "${name}"`)
  const parts = [
    `plural: '${name}'`,
    `kind: '${kind}'`,
    namespaced ? '' : 'namespaced: false',
    shortNames === undefined ? '' : `shortNames: ${list(shortNames)}`,
    categories === undefined ? '' : `categories: ${list(categories)}`,
    verbs.join(' ') === EVERY_VERB ? '' : `verbs: ${list(verbs)}`,
    hash === undefined ? '' : `hash: '${hash}'`,
    hash === undefined ? '' : renderStored(kind, hash, target),
    renderGate(RESOURCE_GATES[`${target.name}/${name}`]),
    renderSubresources(resource, all),
  ]
  return `{ ${parts.filter((part) => part !== '').join(', ')} }`
}

function renderGate(gate: string | undefined): string {
  return gate === undefined ? '' : `gate: '${gate}'`
}

function renderSubresources({ name, kind }: ApiResource, all: readonly ApiResource[]): string {
  const items = all
    .filter((other) => other.name.startsWith(`${name}/`))
    .map((other) => {
      const apiVersion = other.version === undefined ? undefined : `${other.group}/${other.version}`
      const parts = [other.verbs.join(' '), other.kind === kind ? undefined : other.kind, apiVersion]
      const last = parts.findLastIndex((part) => part !== undefined)
      return `${other.name.slice(name.length + 1)}: ${list(parts.slice(0, last + 1) as string[])}`
    })
  return items.length === 0 ? '' : `subresources: { ${items.join(', ')} }`
}

/** The storage version is in its hash: a digest over group, version and kind, of which there are few to try. */
function renderStored(kind: string, hash: string, { name, version, groups }: RenderTarget): string {
  if (hash === storageHash(name, version, kind)) return ''
  const known = groups.flatMap(({ name: group, versions }) => versions.map((item) => [group, item.version] as const))
  for (const [group, candidate] of [...known, [name, 'v1beta1'] as const]) {
    if (hash !== storageHash(group, candidate, kind)) continue
    return `stored: '${group === '' ? candidate : `${group}/${candidate}`}'`
  }
  throw new Error(`No version of "${kind}" has the storage hash "${hash}"`)
}

function storageHash(group: string, version: string, kind: string): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}

function list(items: readonly string[]): string {
  return `[${items.map((item) => `'${item}'`).join(', ')}]`
}
