/** A resource during a build. It records its former ids and name affixes, because references may still use them. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { parseYamlAll } from '#lib/yaml/yaml.ts'

import { type Gvk, gvkOf, type Id, idGoText, idText, KustomizeError, sameId } from './ids.ts'

export type Behavior = 'create' | 'merge' | 'replace' | 'unspecified'

export class Resource {
  value: JsonObject
  readonly previous: Id[] = []
  readonly prefixes: string[] = []
  readonly suffixes: string[] = []
  behavior: Behavior = 'unspecified'
  needsHash = false
  /** The origin, for `buildMetadata`. */
  origin: JsonObject | undefined
  transformations: JsonObject[] = []

  constructor(value: JsonObject) {
    this.value = value
  }

  get gvk(): Gvk {
    return gvkOf(this.value)
  }

  get metadata(): JsonObject {
    return isJsonObject(this.value.metadata ?? null) ? (this.value.metadata as JsonObject) : {}
  }

  get name(): string {
    return textOf(this.metadata['name'])
  }

  get namespace(): string {
    return textOf(this.metadata['namespace'])
  }

  get id(): Id {
    return { ...this.gvk, name: this.name, namespace: this.namespace }
  }

  /** The original id. */
  get originalId(): Id {
    return this.previous[0] ?? this.id
  }

  get labels(): Record<string, string> {
    return mapOf(this.metadata['labels'])
  }

  get annotations(): Record<string, string> {
    return mapOf(this.metadata['annotations'])
  }

  remember(): void {
    this.previous.push(this.id)
  }

  /** Empty for a deleted resource. */
  setMetadata(field: string, value: JsonValue): void {
    const metadata: JsonObject = { ...this.metadata }
    const isEmpty = value === '' || (isJsonObject(value) && Object.keys(value).length === 0)
    if (isEmpty) delete metadata[field]
    else metadata[field] = value
    if (Object.keys(metadata).length > 0 || this.value.metadata !== undefined) this.value.metadata = metadata
  }

  copy(): Resource {
    const copy = new Resource(structuredClone(this.value))
    copy.previous.push(...this.previous)
    copy.prefixes.push(...this.prefixes)
    copy.suffixes.push(...this.suffixes)
    Object.assign(copy, { behavior: this.behavior, needsHash: this.needsHash, origin: this.origin })
    copy.transformations = [...this.transformations]
    return copy
  }
}

export function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null || typeof value === 'object' ? '' : String(value)
}

function mapOf(value: JsonValue | undefined): Record<string, string> {
  if (!isJsonObject(value ?? null)) return {}
  return Object.fromEntries(Object.entries(value as JsonObject).map(([key, item]) => [key, textOf(item)]))
}

/** Resources in order, with unique ids. */
export class Resources {
  list: Resource[] = []

  append(resource: Resource): void {
    const { id } = resource
    if (this.list.some((one) => sameId(one.id, id))) {
      throw new KustomizeError(`may not add resource with an already registered id: ${idText(id)}`)
    }
    this.list.push(resource)
  }

  appendAll(others: readonly Resource[]): void {
    for (const one of others) this.append(one)
  }

  /** Resources with this id, current or former. */
  known(matches: (id: Id) => boolean): Resource[] {
    return this.list.filter((one) => [...one.previous, one.id].some(matches))
  }

  /** Throws KustomizeError unless exactly one matches. */
  byId(id: Id): Resource {
    const found = this.known((one) => sameId(one, id))
    if (found.length === 1) return found[0] as Resource
    const what = found.length > 1 ? 'multiple' : 'no'
    throw new KustomizeError(
      `${what} matches for Id ${idText(id)}; failed to find unique target for patch ${idText(id)}`,
    )
  }

  /** Adds a generated resource, or merges it into or replaces an existing one. */
  absorb(resource: Resource): void {
    const { id, behavior } = resource
    const found = this.known((one) => sameId(one, id))
    const [old] = found
    if (old === undefined) {
      if (behavior === 'merge' || behavior === 'replace') {
        throw new KustomizeError(`id ${idGoText(id)} does not exist; cannot merge or replace`)
      }
      return this.append(resource)
    }
    if (found.length > 1) {
      throw new KustomizeError(
        `found multiple objects ${found.map(({ id: each }) => idText(each)).join(' ')} that could accept merge of ${idText(id)}`,
      )
    }
    if (behavior !== 'merge' && behavior !== 'replace') {
      throw new KustomizeError(
        `id ${idGoText(id)} exists; can not use behavior: '${behavior}', behavior must be merge or replace`,
      )
    }
    inherit(resource, old)
    if (behavior === 'merge') mergeData(resource, old)
    this.list[this.list.indexOf(old)] = resource
  }
}

function inherit(resource: Resource, old: Resource): void {
  resource.setMetadata('labels', { ...old.labels, ...resource.labels })
  resource.setMetadata('annotations', { ...old.annotations, ...resource.annotations })
  resource.setMetadata('name', old.name)
  resource.setMetadata('namespace', old.namespace)
  resource.previous.push(...old.previous)
  resource.prefixes.push(...old.prefixes)
  resource.suffixes.push(...old.suffixes)
  // Handwritten resources keep their names.
  resource.needsHash &&= old.needsHash
  if (old.origin !== undefined && resource.behavior === 'merge') resource.origin = old.origin
}

function mergeData(resource: Resource, old: Resource): void {
  for (const field of ['data', 'binaryData']) {
    const merged = { ...mapOf(old.value[field]), ...mapOf(resource.value[field]) }
    if (Object.keys(merged).length > 0) resource.value[field] = merged
  }
}

/**
 * Parses resources from a text and splits lists. Throws an Error for invalid YAML, KustomizeError for an invalid
 * resource.
 */
export function parseResources(text: string): Resource[] {
  return parseYamlAll(text, { plainBooleans: true }).flatMap((value) => resourcesOf(value))
}

function resourcesOf(value: JsonValue): Resource[] {
  if (!isJsonObject(value)) throw new KustomizeError('expected a mapping node')
  const kind = textOf(value.kind)
  if (kind.endsWith('List') && Array.isArray(value['items'])) return value['items'].flatMap((item) => resourcesOf(item))
  const resource = new Resource(value)
  const { apiVersion } = value
  const shown = `{{${textOf(apiVersion)} ${kind}} {{${resource.name} ${resource.namespace}} map[] map[]}}`
  if (kind === '') throw new KustomizeError(`missing kind in object ${shown}`)
  if (resource.name === '') throw new KustomizeError(`missing metadata.name in object ${shown}`)
  return [resource]
}
