/**
 * Estimates the work of a request in seats: while the server handles it, and afterwards while watchers are notified.
 * The numbers are upstream's, v1.36.
 */
import type { RequestInfo } from '#auth/request-info.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Entry } from '../registry/entry.ts'
import { averageBytes } from '../registry/sizes.ts'

export interface WorkEstimate {
  readonly initialSeats: number
  readonly finalSeats: number
  /** The time for which the seats stay occupied after the response. */
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
/** Reads from the cache are streamed: more than this is never in memory at once. */
const MAX_CACHED_BYTES = 1_000_000
const OBJECTS_PER_SEAT = 100
const WATCHES_PER_SEAT = 10
const EVENT_MS = 5

export interface EstimateParts {
  /** True if lists are measured by bytes (SizeBasedListCostEstimate), false for objects. */
  readonly bySize: boolean
  /** True if the initial events of a watch count (WatchList). */
  readonly watchList: boolean
  /** Undefined for resources that are not cached. */
  readonly collectionOf: (info: RequestInfo) => Collection<Entry> | undefined
  /** The number of watches that a write notifies. */
  readonly watchersOf: (info: RequestInfo) => number
}

/** The relevant settings of a request's flow. */
export interface Estimated {
  /** The maximum number of seats of one request; 0: unspecified. */
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
    // The initial events of a watch count as a list.
    if (verb === 'list' || (verb === 'watch' && parts.watchList && sendsState(query))) {
      const seats = atMost(listSeats(parts, info, query), flow.level.maxSeats, maxListSeats)
      return seats <= 1 ? ONE_SEAT : { initialSeats: seats, finalSeats: 0, additionalMs: 0 }
    }
    // A token request does not change its account.
    const notifiesWatchers = WRITES.has(verb) && !(resource === 'serviceaccounts' && subresource === 'token')
    return notifiesWatchers ? writeEstimate(parts.watchersOf(info), flow) : ONE_SEAT
  }
}

function atMost(seats: number, levelMax: number, max: number): number {
  return Math.min(seats, max, levelMax === 0 ? max : levelMax)
}

/** A watch from a known version has no initial events. */
function sendsState(query: URLSearchParams): boolean {
  const version = query.get('resourceVersion') ?? ''
  return query.get('sendInitialEvents') === 'true' || version === '' || version === '0'
}

function listSeats({ bySize, collectionOf }: EstimateParts, info: RequestInfo, query: URLSearchParams): number {
  const limitText = query.get('limit') ?? ''
  const limit = limitText === '' ? 0 : Number(limitText)
  // It will be rejected; until then it counts as the largest.
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
  /** The maximum number of objects in the response. */
  readonly limited: number
  readonly isCached: boolean
  readonly isSelective: boolean
  /** True if it names a single object. */
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

/** True if upstream would read it from its watch cache; reading from etcd costs more. */
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
  // The same amount of work on fewer seats for longer.
  return { initialSeats: 1, finalSeats, additionalMs: (wanted * EVENT_MS) / finalSeats }
}
