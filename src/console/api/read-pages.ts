/** Reads a list in pages and keeps only what the caller needs of each object. */
import type { KubeList, KubeObject } from '#meta/object.ts'

import { sendForJson } from './request.ts'

export interface PagePlan<T> {
  /** With its selectors. */
  readonly path: string
  readonly keep: (object: KubeObject) => readonly T[]
  /** Objects in a page. */
  readonly limit: number
  readonly maxPages: number
}

export interface PagesRead<T> {
  readonly items: readonly T[]
  /** False: the server has more objects than `maxPages` hold. */
  readonly isWhole: boolean
}

/** Rejects with RequestError. */
export async function readPages<T>(
  { path, keep, limit, maxPages }: PagePlan<T>,
  signal?: AbortSignal,
): Promise<PagesRead<T>> {
  const items: T[] = []
  let next = ''
  for (let page = 0; page < maxPages; page++) {
    const query = new URLSearchParams({ limit: String(limit), ...(next !== '' && { continue: next }) }).toString()
    const list = await sendForJson<KubeList<KubeObject>>(`${path}${path.includes('?') ? '&' : '?'}${query}`, { signal })
    for (const object of list.items) items.push(...keep(object))
    next = list.metadata.continue ?? ''
    if (next === '') return { items, isWhole: true }
  }
  return { items, isWhole: false }
}
