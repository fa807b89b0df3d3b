/**
 * etcd's v3 API, the part this backend uses, as tables; numbers are those of etcdserverpb and mvccpb in etcd 3.6, all
 * of which 3.4 has too. Keys are text here: they are ASCII where Kubernetes makes them, and bytes that are not UTF-8 in
 * somebody else's keys only come out garbled.
 */
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Input } from '#lib/protobuf/message.ts'
import type { Int64 } from '#lib/protobuf/wire.ts'

export interface ResponseHeader {
  readonly memberId: Int64
  readonly revision: Int64
}

export interface EtcdKeyValue {
  readonly key: string
  readonly createRevision: Int64
  readonly modRevision: Int64
  readonly value: Buffer
  /** Up to 63 bits when somebody else granted it. */
  readonly lease: Int64
}

export interface EtcdEvent {
  /** One of `EVENT_TYPE`. */
  readonly type: number
  readonly kv: EtcdKeyValue | undefined
  readonly prevKv: EtcdKeyValue | undefined
}

/** An answer whose header says at which revision, and by which member, it was made. */
export interface Answer {
  readonly header: ResponseHeader | undefined
}

export interface RangeRequest {
  readonly key: string
  readonly rangeEnd: string
  readonly limit: Int64
  readonly revision: Int64
  readonly serializable: boolean
  readonly keysOnly: boolean
  readonly countOnly: boolean
}

export interface RangeResponse extends Answer {
  readonly kvs: EtcdKeyValue[]
  readonly more: boolean
  readonly count: Int64
}

export interface PutRequest {
  readonly key: string
  readonly value: Buffer
  readonly lease: Int64
  readonly prevKv: boolean
}

export interface DeleteRequest {
  readonly key: string
  readonly prevKv: boolean
}

export interface Compare {
  readonly target: number
  readonly key: string
  readonly createRevision: Int64 | undefined
  readonly modRevision: Int64 | undefined
}

/** Exactly one of them. */
export interface RequestOp {
  readonly range: RangeRequest | undefined
  readonly put: PutRequest | undefined
  readonly delete: DeleteRequest | undefined
}

export interface ResponseOp {
  readonly range: { readonly kvs: EtcdKeyValue[] } | undefined
  readonly put: { readonly prevKv: EtcdKeyValue | undefined } | undefined
  readonly delete: { readonly prevKvs: EtcdKeyValue[] } | undefined
}

export interface TxnRequest {
  readonly compare: Compare[]
  readonly success: RequestOp[]
  readonly failure: RequestOp[]
}

export interface TxnResponse extends Answer {
  readonly succeeded: boolean
  readonly responses: ResponseOp[]
}

export interface WatchRequest {
  readonly create:
    | {
        readonly key: string
        readonly rangeEnd: string
        readonly startRevision: Int64
        readonly prevKv: boolean
        readonly fragment: boolean
      }
    | undefined
}

export interface WatchResponse extends Answer {
  readonly created: boolean
  readonly canceled: boolean
  readonly compactRevision: Int64
  readonly cancelReason: string
  /** More of the same answer follows: it was too large for one message. */
  readonly fragment: boolean
  readonly events: EtcdEvent[]
}

export interface StatusResponse extends Answer {
  readonly version: string
  readonly dbSize: Int64
  readonly leader: Int64
  /** Alarms of all members, and the lack of a leader, in words. */
  readonly errors: string[]
  readonly dbSizeInUse: Int64
}

export interface SnapshotResponse {
  readonly remainingBytes: Int64
  readonly blob: Buffer
}

/** In seconds. */
export interface LeaseTimes {
  /** What is left; less than 1 when the lease has ended. */
  readonly ttl: Int64
  readonly grantedTtl: Int64
}

export const COMPARE_TARGET = { create: 1, mod: 2 } as const
export const EVENT_TYPE = { put: 0, delete: 1 } as const

const header = defineMessage({ memberId: [2, 'uint64'], revision: [3, 'int64'] })
const onlyHeader = defineMessage({ header: [1, header] })
const empty = defineMessage({})

const keyValue = defineMessage({
  key: [1, 'string'],
  createRevision: [2, 'int64'],
  modRevision: [3, 'int64'],
  value: [5, 'bytes'],
  lease: [6, 'int64'],
})
const event = defineMessage({ type: [1, 'enum'], kv: [2, keyValue], prevKv: [3, keyValue] })

const rangeRequest = defineMessage({
  key: [1, 'string'],
  rangeEnd: [2, 'string'],
  limit: [3, 'int64'],
  revision: [4, 'int64'],
  serializable: [7, 'bool'],
  keysOnly: [8, 'bool'],
  countOnly: [9, 'bool'],
})
const rangeResponse = defineMessage({
  header: [1, header],
  kvs: [2, keyValue, 'repeated'],
  more: [3, 'bool'],
  count: [4, 'int64'],
})
const putRequest = defineMessage({ key: [1, 'string'], value: [2, 'bytes'], lease: [3, 'int64'], prevKv: [4, 'bool'] })
const putResponse = defineMessage({ prevKv: [2, keyValue] })
const deleteRequest = defineMessage({ key: [1, 'string'], prevKv: [3, 'bool'] })
const deleteResponse = defineMessage({ prevKvs: [3, keyValue, 'repeated'] })
const requestOp = defineMessage({ range: [1, rangeRequest], put: [2, putRequest], delete: [3, deleteRequest] })
const responseOp = defineMessage({ range: [1, rangeResponse], put: [2, putResponse], delete: [3, deleteResponse] })
/** The result compared for is always EQUAL, which is 0. */
const compare = defineMessage({
  target: [2, 'enum'],
  key: [3, 'string'],
  createRevision: [5, 'int64', 'optional'],
  modRevision: [6, 'int64', 'optional'],
})
const txnRequest = defineMessage({
  compare: [1, compare, 'repeated'],
  success: [2, requestOp, 'repeated'],
  failure: [3, requestOp, 'repeated'],
})
const txnResponse = defineMessage({
  header: [1, header],
  succeeded: [2, 'bool'],
  responses: [3, responseOp, 'repeated'],
})

const watchCreate = defineMessage({
  key: [1, 'string'],
  rangeEnd: [2, 'string'],
  startRevision: [3, 'int64'],
  prevKv: [6, 'bool'],
  fragment: [8, 'bool'],
})
const watchRequest = defineMessage({ create: [1, watchCreate] })
const watchResponse = defineMessage({
  header: [1, header],
  created: [3, 'bool'],
  canceled: [4, 'bool'],
  compactRevision: [5, 'int64'],
  cancelReason: [6, 'string'],
  fragment: [7, 'bool'],
  events: [11, event, 'repeated'],
})

const statusResponse = defineMessage({
  header: [1, header],
  version: [2, 'string'],
  dbSize: [3, 'int64'],
  leader: [4, 'uint64'],
  errors: [8, 'string', 'repeated'],
  dbSizeInUse: [9, 'int64'],
})

type Rpc<Q, R> = Method<Q, Input<Q>, R, Input<R>>

export const RANGE: Rpc<RangeRequest, RangeResponse> = defineMethod(
  '/etcdserverpb.KV/Range',
  rangeRequest,
  rangeResponse,
)
export const TXN: Rpc<TxnRequest, TxnResponse> = defineMethod('/etcdserverpb.KV/Txn', txnRequest, txnResponse)
export const COMPACT: Rpc<{ readonly revision: Int64 }, Answer> = defineMethod(
  '/etcdserverpb.KV/Compact',
  defineMessage({ revision: [1, 'int64'] }),
  onlyHeader,
)
export const WATCH: Rpc<WatchRequest, WatchResponse> = defineMethod(
  '/etcdserverpb.Watch/Watch',
  watchRequest,
  watchResponse,
)
export const LEASE_GRANT: Rpc<{ readonly ttl: Int64; readonly id: Int64 }, Answer> = defineMethod(
  '/etcdserverpb.Lease/LeaseGrant',
  defineMessage({ ttl: [1, 'int64'], id: [2, 'int64'] }),
  onlyHeader,
)
export const LEASE_REVOKE: Rpc<{ readonly id: Int64 }, Answer> = defineMethod(
  '/etcdserverpb.Lease/LeaseRevoke',
  defineMessage({ id: [1, 'int64'] }),
  onlyHeader,
)
export const LEASE_KEEP_ALIVE: Rpc<{ readonly id: Int64 }, Answer & { readonly ttl: Int64 }> = defineMethod(
  '/etcdserverpb.Lease/LeaseKeepAlive',
  defineMessage({ id: [1, 'int64'] }),
  defineMessage({ header: [1, header], ttl: [3, 'int64'] }),
)
export const LEASE_TIME_TO_LIVE: Rpc<{ readonly id: Int64 }, Answer & LeaseTimes> = defineMethod(
  '/etcdserverpb.Lease/LeaseTimeToLive',
  defineMessage({ id: [1, 'int64'] }),
  defineMessage({ header: [1, header], ttl: [3, 'int64'], grantedTtl: [4, 'int64'] }),
)
export const STATUS_OF_MEMBER: Rpc<object, StatusResponse> = defineMethod(
  '/etcdserverpb.Maintenance/Status',
  empty,
  statusResponse,
)
export const SNAPSHOT: Rpc<object, SnapshotResponse> = defineMethod(
  '/etcdserverpb.Maintenance/Snapshot',
  empty,
  defineMessage({ remainingBytes: [2, 'uint64'], blob: [3, 'bytes'] }),
)
export const AUTHENTICATE: Rpc<{ readonly name: string; readonly password: string }, { readonly token: string }> =
  defineMethod(
    '/etcdserverpb.Auth/Authenticate',
    defineMessage({ name: [1, 'string'], password: [2, 'string'] }),
    defineMessage({ token: [2, 'string'] }),
  )
