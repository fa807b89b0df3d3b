/**
 * The Operation kind of the management server: one long task on a built cluster. It shows its plan, waits for
 * approval, and continues after a restart of the server.
 */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  BOOLEAN,
  defineManagementKind,
  type ManagementKind,
  immutable,
  INTEGER,
  list,
  NAME,
  oneOf,
  record,
  type Schema,
  TEXT,
  TIME,
} from './definition.ts'

export interface Operation extends KubeObject {
  readonly spec: OperationSpec
  readonly status?: OperationStatus
}

export const OPERATION_TYPES = [
  'Apply',
  'Remove',
  'SaveSnapshot',
  'RestoreSnapshot',
  'RotateCertificates',
  'RotateEncryptionKey',
] as const
export type OperationType = (typeof OPERATION_TYPES)[number]

/** The services whose certificates can be rotated alone. */
export const ROTATED_SERVICES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'etcd',
] as const

export interface OperationSpec {
  readonly cluster: string
  readonly type: OperationType
  /** The name of the User; empty: the server itself. */
  readonly requestedBy?: string
  /** For Apply: the digest of the cluster file. */
  readonly file?: string
  /** The plan may be applied. */
  readonly approved?: boolean
  /** The digest of the approved plan: another plan needs another approval. */
  readonly approvedPlan?: string
  readonly cancelled?: boolean
  /** A larger number retries a failed operation now. */
  readonly retries?: number
  /** For SaveSnapshot and RestoreSnapshot: its name. */
  readonly snapshot?: string
  /** For RotateCertificates: only those of this service. */
  readonly service?: (typeof ROTATED_SERVICES)[number]
  /** For RotateCertificates: the authorities too. */
  readonly rotatesAuthorities?: boolean
  /** For Remove: unreachable machines stay as they are. */
  readonly force?: boolean
}

/**
 * Pending: not planned yet. Planned: waits for approval. Failed: waits for `retryAt`, or has ended without it. The last
 * three are final.
 */
export type OperationPhase = 'Pending' | 'Planned' | 'Running' | 'Failed' | 'Succeeded' | 'Cancelled' | 'Superseded'

export interface OperationStatus {
  readonly phase: OperationPhase
  readonly message?: string
  readonly plan?: OperationPlan
  /** Of the last attempt. */
  readonly stages?: readonly OperationStage[]
  /** When the first attempt began. */
  readonly startedAt?: string
  readonly endedAt?: string
  /** Failed attempts to plan or to run since the last success. */
  readonly failures?: number
  /** The last `spec.retries` that was obeyed. */
  readonly retries?: number
  readonly retryAt?: string
  /** Steps that this attempt completed. */
  readonly completed?: number
  /** Machines that a removal did not clean, with the reasons. */
  readonly left?: readonly string[]
  /** The size of the whole log in bytes; it grows with every line. */
  readonly logBytes?: number
}

export interface OperationPlan {
  readonly digest: string
  readonly steps: readonly { readonly host: string; readonly describe: string }[]
  /** Steps that `steps` does not show. */
  readonly more?: number
  readonly faults: readonly string[]
  readonly notes: readonly string[]
}

export interface OperationStage {
  readonly name: string
  readonly steps: readonly OperationStep[]
  /** Steps that `steps` does not show. */
  readonly more?: number
}

export interface OperationStep {
  readonly host: string
  readonly describe: string
  readonly state: 'Waiting' | 'Running' | 'Done' | 'Failed'
  readonly startedAt?: string
  readonly endedAt?: string
  readonly message?: string
}

/** So many steps of a plan are in an object. */
export const MAX_STEPS = 2000

const MESSAGE: Schema = { type: 'string', maxLength: 32_768 }
const STEP: Readonly<Record<string, Schema>> = { host: TEXT, describe: MESSAGE }
const STATES = oneOf('Waiting', 'Running', 'Done', 'Failed')

export const OPERATION: ManagementKind<Operation> = defineManagementKind<Operation>({
  kind: 'Operation',
  plural: 'operations',
  description: 'One long piece of work on a built cluster.',
  spec: record(
    {
      cluster: immutable(NAME),
      type: immutable(oneOf(...OPERATION_TYPES)),
      requestedBy: immutable(TEXT),
      file: immutable(TEXT),
      approved: BOOLEAN,
      approvedPlan: TEXT,
      cancelled: BOOLEAN,
      retries: INTEGER,
      snapshot: immutable({ type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' }),
      service: immutable(oneOf(...ROTATED_SERVICES)),
      rotatesAuthorities: immutable(BOOLEAN),
      force: BOOLEAN,
    },
    ['cluster', 'type'],
  ),
  status: record({
    phase: oneOf('Pending', 'Planned', 'Running', 'Failed', 'Succeeded', 'Cancelled', 'Superseded'),
    message: MESSAGE,
    plan: record({
      digest: TEXT,
      steps: list(record(STEP), MAX_STEPS),
      more: INTEGER,
      faults: list(MESSAGE),
      notes: list(MESSAGE),
    }),
    stages: list(
      record({
        name: TEXT,
        steps: list(record({ ...STEP, state: STATES, startedAt: TIME, endedAt: TIME, message: MESSAGE }), MAX_STEPS),
        more: INTEGER,
      }),
    ),
    startedAt: TIME,
    endedAt: TIME,
    failures: INTEGER,
    retries: INTEGER,
    retryAt: TIME,
    completed: INTEGER,
    left: list(MESSAGE),
    logBytes: INTEGER,
  }),
  columns: [
    { name: 'Cluster', jsonPath: '.spec.cluster' },
    { name: 'Type', jsonPath: '.spec.type' },
    { name: 'Phase', jsonPath: '.status.phase' },
    { name: 'Approved', type: 'boolean', jsonPath: '.spec.approved' },
    { name: 'Message', jsonPath: '.status.message' },
  ],
})
export const Operations: Kind<Operation> = OPERATION.kind
