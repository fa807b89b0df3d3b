/** Reads ranges from etcd. A long range is read in pages at one revision, so that no message is too large. */
import { KV, type KeyValue as EtcdKeyValue, type RangeRequest, type RangeResponse } from '#apis/wire/etcd.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { StorageError, type KeyValue, type RangeOptions, type RangeResult } from '../backend.ts'
import type { EtcdClient } from './client.ts'
import { toKeyValue } from './sequence.ts'

/** The first page; later ones have as many keys as make about `PAGE_BYTES`. */
const FIRST_PAGE_KEYS = 500
const PAGE_BYTES = 2 << 20
const MAX_PAGE_KEYS = 10_000
/** The smallest possible key; etcd has no empty one. */
const FIRST_KEY = '\0'

/** Fails with `compacted`, also if the revision was compacted between two pages. */
export async function readRange(client: EtcdClient, options: RangeOptions): Promise<RangeResult> {
  const limit = options.limit || Infinity
  const items: KeyValue[] = []
  let pageKeys = FIRST_PAGE_KEYS
  let first: RangeResponse | undefined
  for (;;) {
    const wanted = Math.min(pageKeys, limit - items.length)
    const page = await readPage(client, options, { after: items.at(-1)?.key, first, limit: wanted })
    if (page === 'too-large') {
      pageKeys = Math.ceil(wanted / 8)
      continue
    }
    first ??= page
    for (const kv of page.kvs) items.push(toKeyValue(kv))
    if (!page.more || items.length >= limit) return toResult(options, first, { items, more: page.more })
    pageKeys = nextPageKeys(page.kvs)
  }
}

function toResult(
  { revision }: RangeOptions,
  { header, count }: RangeResponse,
  read: Pick<RangeResult, 'items' | 'more'>,
): RangeResult {
  return { ...read, count: Number(count), revision: revision ?? Number(header?.revision ?? 0) }
}

interface PagePlan {
  /** The last key read. */
  readonly after: string | undefined
  /** The first page, whose revision the others use. */
  readonly first: RangeResponse | undefined
  readonly limit: number
}

async function readPage(
  client: EtcdClient,
  options: RangeOptions,
  plan: PagePlan,
): Promise<RangeResponse | 'too-large'> {
  try {
    return await client.call(KV.range, planPage(options, plan), { kind: 'read', signal: options.signal })
  } catch (error) {
    if (plan.limit > 1 && error instanceof StorageError && error.code === 'too-large') return 'too-large'
    throw error
  }
}

function planPage(
  { start, end, revision, countOnly = false, keysOnly = false }: RangeOptions,
  { after, first, limit }: PagePlan,
): Input<RangeRequest> {
  const key = after === undefined ? start || FIRST_KEY : `${after}\0`
  return {
    key,
    // An end that is not after the start becomes the start itself: an empty one would mean a single key.
    rangeEnd: end === undefined ? '' : end > key ? end : key,
    revision: revision ?? first?.header?.revision ?? 0,
    // A count covers everything, and nothing follows it.
    limit: countOnly ? 0 : limit,
    countOnly,
    keysOnly,
  }
}

function nextPageKeys(kvs: readonly EtcdKeyValue[]): number {
  const bytes = kvs.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
  const average = Math.max(1, bytes / Math.max(1, kvs.length))
  return Math.min(MAX_PAGE_KEYS, Math.max(1, Math.floor(PAGE_BYTES / average)))
}
