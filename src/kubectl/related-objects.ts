/** Reads the objects that are related to another object, for describers and other commands. */
import type { KubeObject } from '#meta/object.ts'

import type { RelatedSelector, RelatedObjects } from './describe/related.ts'
import { type Query, queryText, type Rest } from './session/rest.ts'

/** `v1/pods` and `apps/v1/deployments`, namespaced or cluster-scoped. */
export function resourcePath(resource: string, namespace: string, name = ''): string {
  const at = resource.lastIndexOf('/')
  const version = resource.slice(0, at)
  const root = version.includes('/') ? `/apis/${version}` : `/api/${version}`
  const scope = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${root}${scope}/${resource.slice(at + 1)}${name === '' ? '' : `/${encodeURIComponent(name)}`}`
}

export interface RelatedObjectsOptions {
  readonly rest: Rest
  readonly chunkSize: number
  readonly nowMs: number
  readonly showsEvents: boolean
}

export function createRelatedObjects({ rest, chunkSize, nowMs, showsEvents }: RelatedObjectsOptions): RelatedObjects {
  return {
    nowMs,
    showsEvents,
    get: (resource, namespace, name) => rest.json(resourcePath(resource, namespace, name)),
    list: (resource, namespace, selecting) => listAll(rest, resourcePath(resource, namespace), chunkSize, selecting),
  }
}

/** Reads all pages; items get the kind and version of the list. */
export async function listAll<T extends KubeObject>(
  rest: Rest,
  path: string,
  chunkSize: number,
  { labels, fields }: RelatedSelector = {},
): Promise<T[]> {
  const items: T[] = []
  let next: string | undefined
  do {
    const query: Query = { labelSelector: labels, fieldSelector: fields, limit: chunkSize || undefined, continue: next }
    const page = await rest.json<List<T>>(path + queryText(query))
    const kind = page.kind.replace(/List$/, '')
    for (const item of page.items ?? []) items.push({ apiVersion: page.apiVersion, kind, ...item })
    next = page.metadata.continue
  } while (next !== undefined && next !== '')
  return items
}

interface List<T> {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: { readonly continue?: string }
  readonly items?: readonly T[]
}
