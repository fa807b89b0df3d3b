/** A commit as one etcd transaction, and its answer as the result of a commit. */
import type { Input } from '#lib/protobuf/message.ts'

import type { CommitResult, KeyValue, Write } from '../backend.ts'
import {
  COMPARE_TARGET,
  type Compare,
  type EtcdKeyValue,
  type RequestOp,
  type ResponseOp,
  type TxnRequest,
  type TxnResponse,
} from './messages.ts'
import { toKeyValue } from './sequence.ts'

/** All guards hold and all writes happen at one revision, or none does and what is there is read at that moment. */
export function planTxn(writes: readonly Write[]): Input<TxnRequest> {
  return {
    compare: writes.flatMap(planCompare),
    success: writes.map(planWrite),
    failure: writes.map(({ key }) => ({ range: { key } })),
  }
}

function planCompare({ key, expected }: Write): Input<Compare>[] {
  if (expected === undefined) return []
  if (expected === 0) return [{ key, target: COMPARE_TARGET.create, createRevision: 0 }]
  return [{ key, target: COMPARE_TARGET.mod, modRevision: expected }]
}

function planWrite({ key, value, lease = 0 }: Write): Input<RequestOp> {
  if (value === null) return { delete: { key, prevKv: true } }
  return { put: { key, value, lease, prevKv: true } }
}

export function readTxn(answer: TxnResponse): CommitResult {
  const revision = Number(answer.header?.revision ?? 0)
  const items = answer.responses.map((op) => toItem(foundBy(op)))
  return answer.succeeded ? { ok: true, revision, previous: items } : { ok: false, revision, current: items }
}

function foundBy({ range, put, delete: deleted }: ResponseOp): EtcdKeyValue | undefined {
  return put?.prevKv ?? deleted?.prevKvs[0] ?? range?.kvs[0]
}

function toItem(found: EtcdKeyValue | undefined): KeyValue | undefined {
  return found && toKeyValue(found)
}
