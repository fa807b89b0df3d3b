/** The Operations of a built cluster: their form, their states in words, and what can be done with them. */
import type { KubeObject } from '#meta/object.ts'

import type { Tone } from '../parts/tone.ts'

export interface Operation extends KubeObject {
  readonly spec: {
    readonly cluster: string
    readonly type: string
    readonly requestedBy?: string
    readonly approved?: boolean
    readonly cancelled?: boolean
    readonly snapshot?: string
    readonly service?: string
    readonly rotatesAuthorities?: boolean
  }
  readonly status?: OperationStatus
}

export interface OperationStatus {
  readonly phase?: string
  readonly message?: string
  readonly plan?: OperationPlan
  readonly stages?: readonly OperationStage[]
  readonly startedAt?: string
  readonly endedAt?: string
  readonly failures?: number
  readonly retryAt?: string
  readonly completed?: number
  readonly left?: readonly string[]
}

export interface OperationPlan {
  readonly digest: string
  readonly steps: readonly PlannedStep[]
  /** Steps that `steps` does not show. */
  readonly more?: number
  readonly faults?: readonly string[]
  readonly notes?: readonly string[]
}

export interface PlannedStep {
  readonly host: string
  readonly describe: string
}

export interface OperationStage {
  readonly name: string
  readonly steps: readonly OperationStep[]
  readonly more?: number
}

export interface OperationStep extends PlannedStep {
  readonly state: 'Waiting' | 'Running' | 'Done' | 'Failed'
  readonly startedAt?: string
  readonly endedAt?: string
  readonly message?: string
}

export interface OperationState {
  readonly text: string
  readonly tone: Tone | undefined
}

/** "Apply the cluster file", "Restore snapshot before-upgrade". */
export function titleOf({ spec }: Operation): string {
  const { type, snapshot = '', service, rotatesAuthorities } = spec
  switch (type) {
    case 'Apply':
      return 'Apply the cluster file'
    case 'Remove':
      return 'Remove the cluster'
    case 'SaveSnapshot':
      return `Take snapshot ${snapshot}`
    case 'RestoreSnapshot':
      return `Restore snapshot ${snapshot}`
    case 'RotateCertificates':
      if (service !== undefined) return `Rotate the certificates of ${service}`
      return rotatesAuthorities === true ? 'Rotate certificates and authorities' : 'Rotate the certificates'
    case 'RotateEncryptionKey':
      return 'Rotate the encryption key'
    default:
      return type
  }
}

export function stateOfOperation({ spec, status }: Operation): OperationState {
  const { phase = 'Pending', retryAt } = status ?? {}
  if (spec.cancelled === true && !isFinal(phase)) return { text: 'Stops after the steps under way', tone: 'busy' }
  switch (phase) {
    case 'Pending':
      return { text: 'Waits for its plan', tone: 'busy' }
    case 'Planned':
      return spec.approved === true ? { text: 'Approved', tone: 'busy' } : { text: 'Waits for approval', tone: 'busy' }
    case 'Running':
      return { text: 'Running', tone: 'busy' }
    case 'Failed':
      return { text: retryAt === undefined ? 'Failed' : 'Failed, is tried again', tone: 'bad' }
    case 'Succeeded':
      return { text: 'Succeeded', tone: 'good' }
    case 'Superseded':
      return { text: 'Replaced by a newer file', tone: undefined }
    default:
      return { text: phase, tone: undefined }
  }
}

function isFinal(phase: string): boolean {
  return phase === 'Succeeded' || phase === 'Cancelled' || phase === 'Superseded'
}

/** It changes no more by itself. */
export function hasEnded({ status }: Operation): boolean {
  const { phase = 'Pending', retryAt } = status ?? {}
  return isFinal(phase) || (phase === 'Failed' && retryAt === undefined)
}

export function canApprove({ spec, status }: Operation): boolean {
  return status?.phase === 'Planned' && spec.approved !== true && spec.cancelled !== true
}

export function canCancel(operation: Operation): boolean {
  return !hasEnded(operation) && operation.spec.cancelled !== true
}

export function canRetry({ spec, status }: Operation): boolean {
  return status?.phase === 'Failed' && spec.cancelled !== true
}

/** The newest first: names begin with the time. */
export function newestFirst(operations: readonly Operation[]): readonly Operation[] {
  return [...operations].sort((one, other) => (nameOf(one) < nameOf(other) ? 1 : -1))
}

function nameOf({ metadata }: Operation): string {
  return metadata.name ?? ''
}

export interface Progress {
  readonly done: number
  readonly total: number
  readonly running: readonly OperationStep[]
}

export function progressOf(stages: readonly OperationStage[]): Progress {
  const steps = stages.flatMap((stage) => stage.steps)
  const hidden = stages.reduce((sum, { more = 0 }) => sum + more, 0)
  return {
    done: steps.filter(({ state }) => state === 'Done').length,
    total: steps.length + hidden,
    running: steps.filter(({ state }) => state === 'Running'),
  }
}

export function stateOfStage({ steps }: OperationStage): OperationStep['state'] {
  if (steps.some(({ state }) => state === 'Failed')) return 'Failed'
  if (steps.some(({ state }) => state === 'Running')) return 'Running'
  return steps.every(({ state }) => state === 'Done') ? 'Done' : 'Waiting'
}

/** Empty for a step that has not begun. */
export function durationMs({ startedAt, endedAt }: OperationStep, nowMs: number): number | undefined {
  if (startedAt === undefined) return undefined
  const end = endedAt === undefined ? nowMs : Date.parse(endedAt)
  return Math.max(0, end - Date.parse(startedAt))
}

/** The machines of the steps, in their order. Steps without one change the cluster by its API. */
export function machinesIn(steps: readonly PlannedStep[]): readonly string[] {
  return [...new Set(steps.map(({ host }) => host))].filter((host) => host !== '')
}

export function placeOf({ host }: PlannedStep): string {
  return host === '' ? '–' : host
}
