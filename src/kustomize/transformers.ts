/** Implements the built-in transformers of a kustomization, except patches and replacements. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

import { type Id, idText, isClusterScoped, isSelected, KustomizeError, sameId, within } from './ids.ts'
import { type FieldSpec, type ValueSlot, scalarText, visitSpec } from './paths.ts'
import type { Resource, Resources } from './resource.ts'

type StringMap = Readonly<Record<string, string>>

/** Labels and annotations: sets entries of a map. */
export function setEntries({ list }: Resources, entries: StringMap, specs: readonly FieldSpec[]): void {
  const visit = ({ value, set }: ValueSlot): void => {
    if (value !== undefined && value !== null && !isJsonObject(value)) {
      throw new KustomizeError('wrong node kind: expected MappingNode')
    }
    set({ ...value, ...entries })
  }
  if (Object.keys(entries).length === 0) return
  for (const resource of list) for (const spec of specs) visitSpec(resource, spec, { created: () => ({}), visit })
}

const NEVER_RENAMED: readonly Partial<Id>[] = [
  { kind: 'CustomResourceDefinition' },
  { group: 'apiregistration.k8s.io', kind: 'APIService' },
  { kind: 'Namespace' },
]

/** Adds a prefix or suffix to names. */
export function affix({ list }: Resources, text: string, side: 'prefix' | 'suffix', specs: readonly FieldSpec[]): void {
  for (const resource of list) {
    const { originalId } = resource
    if (NEVER_RENAMED.some((gvk) => isSelected(originalId, gvk))) continue
    for (const spec of specs.filter((one) => isSelected(originalId, one))) affixField(resource, text, side, spec)
  }
}

function affixField(resource: Resource, text: string, side: 'prefix' | 'suffix', spec: FieldSpec): void {
  if (spec.path === 'metadata/name') {
    ;(side === 'prefix' ? resource.prefixes : resource.suffixes).push(text)
    if (text !== '') resource.remember()
  }
  const visit = ({ value = null, set }: ValueSlot): void =>
    set(side === 'prefix' ? `${text}${scalarText(value)}` : `${scalarText(value)}${text}`)
  visitSpec(resource, spec, { created: () => '', visit })
}

export type SubjectMode = 'defaultOnly' | 'allServiceAccounts' | 'none'

export interface NamespaceOptions {
  readonly namespace: string
  readonly specs: readonly FieldSpec[]
  readonly subjects?: SubjectMode
  /** Only if the field is missing. */
  readonly unsetOnly?: boolean
}

export function setNamespace(resources: Resources, options: NamespaceOptions): void {
  const { namespace, specs, unsetOnly = false } = options
  const visit = ({ value, set }: ValueSlot): void => {
    if (value !== undefined && value !== null && typeof value === 'object') {
      throw new KustomizeError('namespace field specs must target scalar nodes')
    }
    if (!unsetOnly || value === '' || value === null || value === undefined) set(namespace)
  }
  for (const resource of resources.list) {
    resource.remember()
    setOwnNamespace(resource, namespace, unsetOnly)
    const isBinding = ['RoleBinding', 'ClusterRoleBinding'].includes(resource.gvk.kind)
    if (isBinding) setSubjects(resource, options)
    const wanted = specs.filter(({ path, kind = '' }) => {
      if (path === 'metadata/namespace') return false
      if (path === 'metadata/name') return resource.value.apiVersion === 'v1'
      return !(isBinding && path === 'subjects/namespace' && kind.endsWith('RoleBinding'))
    })
    for (const spec of wanted) {
      try {
        visitSpec(resource, spec, { created: () => '', visit })
      } catch (error) {
        throw within('namespace transformation failed', error)
      }
    }
    const { id } = resource
    const same = resources.list.filter((one) => sameId(one.id, id))
    if (same.length > 1) {
      throw new KustomizeError(
        `namespace transformation produces ID conflict: [${same.map((one) => JSON.stringify(one.value)).join(' ')}]`,
      )
    }
  }
}

function setOwnNamespace(resource: Resource, namespace: string, unsetOnly: boolean): void {
  if (isClusterScoped(resource.gvk) || (unsetOnly && resource.namespace !== '')) return
  resource.setMetadata('namespace', namespace)
}

function setSubjects(resource: Resource, { namespace, subjects = 'defaultOnly', unsetOnly }: NamespaceOptions): void {
  const list = resource.value['subjects']
  if (subjects === 'none' || !Array.isArray(list)) return
  for (const subject of list) {
    if (!isJsonObject(subject)) continue
    const isMeant = subjects === 'defaultOnly' ? subject['name'] === 'default' : subject['kind'] === 'ServiceAccount'
    if (isMeant && (unsetOnly !== true || !subject['namespace'])) subject['namespace'] = namespace
  }
}

export interface ImageChange {
  readonly name?: string
  readonly newName?: string
  readonly newTag?: string
  readonly tagSuffix?: string
  readonly digest?: string
}

export function setImages({ list }: Resources, change: ImageChange, specs: readonly FieldSpec[]): void {
  const visit = ({ value, set }: ValueSlot): void => {
    if (typeof value === 'string') set(changedImage(value, change))
  }
  for (const resource of list) {
    if (resource.gvk.kind !== 'CustomResourceDefinition') eachContainer(resource.value, change)
    for (const spec of specs) visitSpec(resource, { ...spec, create: false }, { created: () => '', visit })
  }
}

/** Finds containers at any path, for unknown kinds. */
function eachContainer(value: JsonValue, change: ImageChange): void {
  if (Array.isArray(value)) return value.forEach((item) => eachContainer(item, change))
  if (value === null || !isJsonObject(value)) return
  for (const [name, member] of Object.entries(value)) {
    if ((name === 'containers' || name === 'initContainers') && Array.isArray(member)) {
      const named = member.filter((item): item is JsonObject => item !== null && isJsonObject(item))
      for (const item of named) changeImageOf(item, change)
    } else eachContainer(member, change)
  }
}

function changeImageOf(container: JsonObject, change: ImageChange): void {
  const { image } = container
  if (typeof image === 'string') container['image'] = changedImage(image, change)
}

/** The image with a changed name, tag or digest, if it matches. */
export function changedImage(image: string, change: ImageChange): string {
  const { name: wanted = '', newName = '', newTag = '', tagSuffix = '', digest: newDigest = '' } = change
  const [, rest = ''] = image.startsWith(wanted) ? [wanted, image.slice(wanted.length)] : [undefined, '\n']
  if (!/^(?::[a-zA-Z0-9_.{}-]*)?(?:@sha256:[a-zA-Z0-9_.{}-]*)?$/.test(rest)) return image
  const found = splitImage(image)
  const name = newName || found.name
  let { tag, digest } = found
  if (newTag !== '' || newDigest !== '') {
    tag = newTag
    digest = newDigest
  } else if (tagSuffix !== '') {
    tag += tagSuffix
    digest = ''
  }
  return `${name}${tag === '' ? '' : `:${tag}`}${digest === '' ? '' : `@${digest}`}`
}

function splitImage(image: string): { name: string; tag: string; digest: string } {
  const slash = Math.max(image.indexOf('/'), 0)
  const at = image.indexOf('@', slash)
  const [rest, digest] = at < 0 ? [image, ''] : [image.slice(0, at), image.slice(at + 1)]
  const colon = rest.indexOf(':', slash)
  return colon < 0
    ? { name: rest, tag: '', digest }
    : { name: rest.slice(0, colon), tag: rest.slice(colon + 1), digest }
}

export interface ReplicaCount {
  readonly name?: string
  readonly count?: number
}

export function setReplicas(
  resources: Resources,
  { name = '', count = 0 }: ReplicaCount,
  specs: readonly FieldSpec[],
): void {
  let isFound = false
  for (const spec of specs) {
    const found = resources.known((id) => id.name === name && isSelected(id, spec))
    if (found.length > 0) isFound = true
    for (const resource of found) {
      visitSpec(resource, spec, { created: () => 0, visit: ({ set }) => set(count) })
    }
  }
  if (isFound) return
  const gvks = specs.map(({ group = '', version = '', kind = '' }) => {
    const shown = { name: '', namespace: '', group, version, kind }
    return idText(shown).split('/')[0] as string
  })
  throw new KustomizeError(
    `resource with name ${name} does not match a config with the following GVK [${gvks.join(' ')}]`,
  )
}
