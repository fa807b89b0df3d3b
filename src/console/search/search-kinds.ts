/**
 * Searches all kinds of a cluster: reads names and labels of objects in pages, a few kinds at a time, and reports what it
 * has found so far.
 */
import { type Kind, listPath } from '../api/kinds.ts'
import { RequestError } from '../api/request.ts'
import { qualified } from '../parts/kind-groups.ts'
import { rankOf, type SearchQuery } from './search-query.ts'

export interface Hit {
  readonly uid: string
  readonly name: string
  /** Empty for objects without a namespace. */
  readonly namespace: string
  readonly createdAt: string
  readonly isTerminating: boolean
}

export interface KindHits {
  readonly kind: Kind
  /** The best first, up to `MAX_HITS`. */
  readonly hits: readonly Hit[]
  /** Of those that were found. */
  readonly total: number
}

export interface Found {
  readonly searched: number
  readonly kinds: number
  readonly groups: readonly KindHits[]
  /** Kinds that the user may not list. */
  readonly refused: number
  readonly failed: readonly { readonly kind: string; readonly message: string }[]
  /** Kinds with more objects than the search reads. */
  readonly cut: readonly { readonly kind: string; readonly read: number; readonly left: number }[]
}

export interface MetadataList {
  readonly metadata?: { readonly continue?: string; readonly remainingItemCount?: number }
  readonly items?: readonly { readonly metadata?: Metadata }[] | null
}

interface Metadata {
  readonly uid?: string
  readonly name?: string
  readonly namespace?: string
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
}

export interface SearchTools {
  /** Reads a list without the contents of its objects. Rejects with RequestError. */
  readonly list: (path: string) => Promise<MetadataList>
  readonly report: (found: Found) => void
  /** Kinds that are read at the same time. */
  readonly atOnce: number
}

export const PAGE = 500
export const MAX_PAGES = 6
export const MAX_HITS = 30

export async function searchKinds(kinds: readonly Kind[], query: SearchQuery, tools: SearchTools): Promise<void> {
  const results = new Map<Kind, KindResult>()
  const waiting = [...kinds]
  tools.report(foundIn(kinds, results))
  const work = async (): Promise<void> => {
    for (let kind = waiting.shift(); kind !== undefined; kind = waiting.shift()) {
      results.set(kind, await searchKind(kind, query, tools))
      tools.report(foundIn(kinds, results))
    }
  }
  await Promise.all(Array.from({ length: tools.atOnce }, work))
}

interface KindResult {
  readonly hits: readonly (Hit & { readonly rank: number })[]
  readonly read: number
  /** Objects that were not read. */
  readonly left: number
  readonly error?: RequestError
}

async function searchKind(kind: Kind, query: SearchQuery, { list }: SearchTools): Promise<KindResult> {
  const found = new Map<string, Hit & { readonly rank: number }>()
  let read = 0
  let left = 0
  const take = ({ items, metadata }: MetadataList): string => {
    for (const item of items ?? []) {
      const hit = hitOf(item?.metadata, query)
      if (hit !== undefined) found.set(hit.uid, hit)
    }
    read += items?.length ?? 0
    left = metadata?.remainingItemCount ?? 0
    return metadata?.continue ?? ''
  }
  try {
    let next = ''
    for (let page = 0; page === 0 || (next !== '' && page < MAX_PAGES); page++)
      next = take(await list(pathOf(kind, query, next)))
    if (next === '') return { hits: [...found.values()], read, left: 0 }
    const [name] = query.words
    const [all, rest] = [read, Math.max(1, left)]
    // The object with exactly this name is found among any number.
    if (name !== undefined) take(await list(pathOf(kind, query, '', name)))
    return { hits: [...found.values()], read: all, left: rest }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return { hits: [...found.values()], read, left, error }
  }
}

function pathOf(kind: Kind, { labels }: SearchQuery, next: string, name?: string): string {
  const query = new URLSearchParams({
    limit: String(PAGE),
    ...(labels !== '' && { labelSelector: labels }),
    ...(next !== '' && { continue: next }),
    ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
  })
  return `${listPath(kind)}?${query.toString()}`
}

function hitOf(metadata: Metadata | undefined, query: SearchQuery): (Hit & { readonly rank: number }) | undefined {
  const { name, namespace = '', creationTimestamp = '', deletionTimestamp } = metadata ?? {}
  const rank = typeof name === 'string' ? rankOf(name, query) : 0
  if (name === undefined || rank === 0) return undefined
  const uid = metadata?.uid ?? `${namespace}/${name}`
  return { uid, name, namespace, createdAt: creationTimestamp, isTerminating: deletionTimestamp !== undefined, rank }
}

function foundIn(kinds: readonly Kind[], results: ReadonlyMap<Kind, KindResult>): Found {
  const known = kinds.flatMap((kind) => {
    const result = results.get(kind)
    return result === undefined ? [] : [{ kind, ...result }]
  })
  const errors = known.flatMap(({ kind, error }) => (error === undefined ? [] : [{ kind, error }]))
  return {
    searched: known.length,
    kinds: kinds.length,
    groups: known
      .filter(({ hits }) => hits.length > 0)
      .map(({ kind, hits }) => ({ kind, total: hits.length, hits: hits.toSorted(better).slice(0, MAX_HITS) })),
    refused: errors.filter(({ error }) => error.code === 403).length,
    failed: errors
      .filter(({ error }) => error.code !== 403)
      .map(({ kind, error }) => ({ kind: qualified(kind), message: error.message })),
    cut: known
      .filter(({ left, error }) => left > 0 && error === undefined)
      .map(({ kind, read, left }) => ({ kind: qualified(kind), read, left })),
  }
}

function better(one: Hit & { readonly rank: number }, other: Hit & { readonly rank: number }): number {
  if (one.rank !== other.rank) return other.rank - one.rank
  const [a, b] = [`${one.name}/${one.namespace}`, `${other.name}/${other.namespace}`]
  return a < b ? -1 : Number(a > b)
}
