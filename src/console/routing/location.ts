/**
 * The addresses of the console. Everything that a page shows is in its address, so that a link or a reload shows the same.
 *
 * | address below `/ui` | page |
 * |---|---|
 * | `/` | the clusters |
 * | `/c/<cluster>` | overview of a cluster |
 * | `/c/<cluster>/<view>` | a view of a cluster: create objects, search, … |
 * | `/c/<cluster>/<group or core>/<version>/<plural>` | list |
 * | `/c/<cluster>/<group or core>/<version>/<plural>/<namespace or _>/<name>/<tab>` | one object |
 * | `/<view>/<item>` | a view of the management server: users, tokens, … and one of its items |
 */

export interface KindInUrl {
  readonly group: string
  readonly version: string
  readonly plural: string
}

export type Page =
  | { readonly page: 'clusters' }
  | { readonly page: 'cluster'; readonly cluster: string }
  /** Its name is one of `CLUSTER_VIEWS`. */
  | { readonly page: 'cluster-view'; readonly cluster: string; readonly view: string }
  | { readonly page: 'list'; readonly cluster: string; readonly kind: KindInUrl }
  | {
      readonly page: 'object'
      readonly cluster: string
      readonly kind: KindInUrl
      /** Empty for objects without a namespace. */
      readonly namespace: string
      readonly name: string
      readonly tab: string
    }
  /** Its name is one of `SERVER_VIEWS`. `item` may be empty. */
  | { readonly page: 'server-view'; readonly view: string; readonly item: string }

export interface Location {
  readonly page: Page
  /** Filter, sort order and the like. */
  readonly query: Readonly<Record<string, string>>
}

const BASE = '/ui'

export function parseLocation(path: string, search: string): Location {
  const segments = path.slice(BASE.length).split('/').filter(Boolean).map(decode)
  return { page: pageOf(segments), query: Object.fromEntries(new URLSearchParams(search)) }
}

function pageOf([
  first,
  cluster = '',
  group,
  version = '',
  plural = '',
  namespace = '',
  name,
  tab = '',
]: string[]): Page {
  if (first === undefined) return { page: 'clusters' }
  if (first !== 'c') return { page: 'server-view', view: first, item: cluster }
  if (group === undefined) return { page: 'cluster', cluster }
  if (plural === '') return { page: 'cluster-view', cluster, view: group }
  const kind = { group: group === 'core' ? '' : group, version, plural }
  if (name === undefined) return { page: 'list', cluster, kind }
  return { page: 'object', cluster, kind, namespace: namespace === '_' ? '' : namespace, name, tab }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

export function formatLocation({ page, query }: Location): string {
  const kept = Object.entries(query).filter(([, value]) => value !== '')
  const search = new URLSearchParams(kept).toString()
  return BASE + formatPage(page) + (search === '' ? '' : `?${search}`)
}

function formatPage(page: Page): string {
  if (page.page === 'clusters') return '/'
  if (page.page === 'server-view') return join(page.view, ...(page.item === '' ? [] : [page.item]))
  if (page.page === 'cluster') return join('c', page.cluster)
  if (page.page === 'cluster-view') return join('c', page.cluster, page.view)
  const { cluster, kind } = page
  const list = join('c', cluster, kind.group === '' ? 'core' : kind.group, kind.version, kind.plural)
  if (page.page === 'list') return list
  return list + join(page.namespace === '' ? '_' : page.namespace, page.name, ...(page.tab === '' ? [] : [page.tab]))
}

function join(...segments: readonly string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('')
}
