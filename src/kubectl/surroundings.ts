/** What describers and others ask of the cluster around an object, over the session's connection. */
import type { KubeObject } from '#meta/object.ts'

import type { Selecting, Surroundings } from './describe/describer.ts'
import { type Query, queryText, type Rest } from './rest.ts'

/** `v1/pods` and `apps/v1/deployments`, in a namespace or in none. */
export function resourcePath(resource: string, namespace: string, name = ''): string {
  const at = resource.lastIndexOf('/')
  const version = resource.slice(0, at)
  const root = version.includes('/') ? `/apis/${version}` : `/api/${version}`
  const scope = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${root}${scope}/${resource.slice(at + 1)}${name === '' ? '' : `/${encodeURIComponent(name)}`}`
}

export interface SurroundingsOptions {
  readonly rest: Rest
  readonly chunkSize: number
  readonly nowMs: number
  readonly showsEvents: boolean
}

export function surroundings({ rest, chunkSize, nowMs, showsEvents }: SurroundingsOptions): Surroundings {
  return {
    nowMs,
    showsEvents,
    get: (resource, namespace, name) => rest.json(resourcePath(resource, namespace, name)),
    list: (resource, namespace, selecting) => listAll(rest, resourcePath(resource, namespace), chunkSize, selecting),
  }
}

/** All pages; items get the kind and version that only the list says. */
export async function listAll<T extends KubeObject>(
  rest: Rest,
  path: string,
  chunkSize: number,
  { labels, fields }: Selecting = {},
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
