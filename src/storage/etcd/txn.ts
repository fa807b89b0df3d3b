/** Encodes a commit as one etcd transaction, and decodes its result. */
import {
  type Compare,
  CompareTarget,
  type KeyValue as EtcdKeyValue,
  type RequestOp,
  type ResponseOp,
  type TxnRequest,
  type TxnResponse,
} from '#apis/wire/etcd.ts'
import type { Input } from '#lib/protobuf/message.ts'

import type { CommitResult, KeyValue, Write } from '../backend.ts'
import { toKeyValue } from './sequence.ts'

/** All guards hold and all writes happen at one revision; or none does and the current values are read. */
export function planTxn(writes: readonly Write[]): Input<TxnRequest> {
  return {
    compare: writes.flatMap(planCompare),
    success: writes.map(planWrite),
    failure: writes.map(({ key }) => ({ requestRange: { key } })),
  }
}

function planCompare({ key, expected }: Write): Input<Compare>[] {
  if (expected === undefined) return []
  if (expected === 0) return [{ key, target: CompareTarget.CREATE, createRevision: 0 }]
  return [{ key, target: CompareTarget.MOD, modRevision: expected }]
}

function planWrite({ key, value, lease = 0 }: Write): Input<RequestOp> {
  if (value === null) return { requestDeleteRange: { key, prevKv: true } }
  return { requestPut: { key, value, lease, prevKv: true } }
}

export function readTxn(answer: TxnResponse): CommitResult {
  const revision = Number(answer.header?.revision ?? 0)
  const items = answer.responses.map((op) => toItem(foundBy(op)))
  return answer.succeeded ? { ok: true, revision, previous: items } : { ok: false, revision, current: items }
}

function foundBy({ responseRange, responsePut, responseDeleteRange }: ResponseOp): EtcdKeyValue | undefined {
  return responsePut?.prevKv ?? responseDeleteRange?.prevKvs[0] ?? responseRange?.kvs[0]
}

function toItem(found: EtcdKeyValue | undefined): KeyValue | undefined {
  return found && toKeyValue(found)
}
