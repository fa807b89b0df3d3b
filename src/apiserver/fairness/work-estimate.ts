/**
 * How much work a request will be, in seats: how many it takes while it is answered, and how many for how long
 * afterwards, while watchers are told of what it changed. The numbers are upstream's, v1.36.
 */
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Entry } from '../registry/entry.ts'
import { averageBytes } from '../registry/sizes.ts'
import type { RequestInfo } from '../request-info.ts'

export interface WorkEstimate {
  readonly initialSeats: number
  readonly finalSeats: number
  /** How long the seats stay taken after the answer. */
  readonly additionalMs: number
}

export const ONE_SEAT: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalMs: 0 }

export function maxSeatsOf({ initialSeats, finalSeats }: WorkEstimate): number {
  return Math.max(initialSeats, finalSeats)
}

/** With SizeBasedListCostEstimate; without it, as for writes. */
const MAX_LIST_SEATS = 100
const MAX_SEATS = 10
const BYTES_PER_SEAT = 100_000
/** What is read from the cache is sent as it is made: more than this is never in memory at once. */
const MAX_CACHED_BYTES = 1_000_000
const OBJECTS_PER_SEAT = 100
const WATCHES_PER_SEAT = 10
const EVENT_MS = 5

export interface EstimateParts {
  /** Whether lists are measured by bytes (SizeBasedListCostEstimate) or by objects. */
  readonly bySize: boolean
  /** Whether what a watch begins with counts (WatchList). */
  readonly watchList: boolean
  /** Undefined for what is not kept here. */
  readonly collectionOf: (info: RequestInfo) => Collection<Entry> | undefined
  /** How many watches a write is of interest to. */
  readonly watchersOf: (info: RequestInfo) => number
}

/** What is looked at of the flow that a request belongs to. */
export interface Estimated {
  /** How many seats one request may take at most; 0: the level does not say. */
  readonly level: { readonly maxSeats: number }
  readonly meter: { watched(count: number): void }
}

export type Estimate = (info: RequestInfo, query: URLSearchParams, flow: Estimated) => WorkEstimate

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete'])

export function createEstimate(parts: EstimateParts): Estimate {
  const maxListSeats = parts.bySize ? MAX_LIST_SEATS : MAX_SEATS
  return (info, query, flow) => {
    const { verb, isResource, resource, subresource } = info
    if (!isResource || verb === 'get') return ONE_SEAT
    // What a watch begins with is a list.
    if (verb === 'list' || (verb === 'watch' && parts.watchList && sendsState(query))) {
      const seats = atMost(listSeats(parts, info, query), flow.level.maxSeats, maxListSeats)
      return seats <= 1 ? ONE_SEAT : { initialSeats: seats, finalSeats: 0, additionalMs: 0 }
    }
    // A token is no change of its account.
    const isTold = WRITES.has(verb) && !(resource === 'serviceaccounts' && subresource === 'token')
    return isTold ? writeEstimate(parts.watchersOf(info), flow) : ONE_SEAT
  }
}

function atMost(seats: number, levelMax: number, max: number): number {
  return Math.min(seats, max, levelMax === 0 ? max : levelMax)
}

/** A watch from a known version on begins with nothing. */
function sendsState(query: URLSearchParams): boolean {
  const version = query.get('resourceVersion') ?? ''
  return query.get('sendInitialEvents') === 'true' || version === '' || version === '0'
}

function listSeats({ bySize, collectionOf }: EstimateParts, info: RequestInfo, query: URLSearchParams): number {
  const limitText = query.get('limit') ?? ''
  const limit = limitText === '' ? 0 : Number(limitText)
  // It will be refused; until then it counts as the largest.
  if (!Number.isInteger(limit)) return Infinity
  const collection = collectionOf(info)
  if (collection === undefined) return 1
  const count = collection.size
  const limited = limit > 0 && limit < count ? limit : count
  const isCached = info.verb === 'watch' || isFromCache(query, limit)
  const isSelective = (info.fieldSelector ?? info.labelSelector ?? '') !== ''
  const terms = { count, limited, isCached, isSelective, isSingle: info.name !== '' }
  return bySize ? seatsBySize(terms, averageBytes(collection)) : seatsByCount(terms)
}

interface ListTerms {
  readonly count: number
  /** How many there are at most in the answer. */
  readonly limited: number
  readonly isCached: boolean
  readonly isSelective: boolean
  /** It names the one object it is about. */
  readonly isSingle: boolean
}

/** Exported for its test. */
export function seatsBySize(terms: ListTerms, bytesEach: number): number {
  const { count, limited, isCached, isSelective, isSingle } = terms
  const objects = isSingle ? 1 : !isCached && isSelective ? Math.max(limited, Math.floor(count / 2)) : limited
  const bytes = objects * bytesEach
  return Math.ceil((isCached ? Math.min(bytes, MAX_CACHED_BYTES) : bytes) / BYTES_PER_SEAT)
}

/** Exported for its test. */
export function seatsByCount({ count, limited, isCached, isSelective, isSingle }: ListTerms): number {
  const objects = isSingle ? 1 : isCached ? count : isSelective ? count + limited : 2 * limited
  return Math.ceil(objects / OBJECTS_PER_SEAT)
}

/** Whether upstream would read it from its watch cache; what it reads from etcd costs more. */
function isFromCache(query: URLSearchParams, limit: number): boolean {
  const match = query.get('resourceVersionMatch') ?? ''
  if (match !== '') return match === 'NotOlderThan'
  if ((query.get('continue') ?? '') !== '') return false
  const version = query.get('resourceVersion') ?? ''
  return !(limit > 0 && version !== '' && version !== '0')
}

function writeEstimate(watchers: number, { level, meter }: Estimated): WorkEstimate {
  meter.watched(watchers)
  if (watchers < WATCHES_PER_SEAT) return ONE_SEAT
  const wanted = Math.ceil(watchers / WATCHES_PER_SEAT)
  const finalSeats = atMost(wanted, level.maxSeats, MAX_SEATS)
  // As much work as it was, on fewer seats for longer.
  return { initialSeats: 1, finalSeats, additionalMs: (wanted * EVENT_MS) / finalSeats }
}
