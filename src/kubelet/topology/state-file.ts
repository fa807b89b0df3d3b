/**
 * Checkpoint files of the CPU and memory managers in upstream's format. A kubelet with an unreadable checkpoint does
 * not start, because the allocations are then unknown.
 */
import { compareText, goQuote } from '#lib/go/text.ts'

import { type CheckpointForm, readCheckpoint, writeCheckpoint } from '../checkpoint/checkpoint.ts'

interface PolicyState {
  readonly policyName: string
  /** By pod and container; omitted from the file when empty. */
  readonly entries?: Readonly<Record<string, object>>
}

/** Describes the checkpoint of one manager. */
export interface StateForm<S extends PolicyState> {
  /** The name in messages: `CPU manager`. */
  readonly manager: string
  /** Prefix of messages about its policy. */
  readonly tag: string
  readonly checksum: (state: S) => number
}

export interface StateFile<S extends PolicyState> {
  readonly path: string
  readonly form: StateForm<S>
}

/** Undefined when the file does not exist. Rejects when it is corrupt or of another policy. */
export async function readState<S extends PolicyState>(file: StateFile<S>, policy: string): Promise<S | undefined> {
  const { path, form } = file
  const state = await readCheckpoint(path, checkpointForm(form)).catch(() => {
    throw restoreError(file, 'checkpoint is corrupted')
  })
  if (state === undefined || state.policyName === policy) return state
  const names = `configured policy ${goQuote(policy)} differs from state checkpoint policy ${goQuote(state.policyName)}`
  throw restoreError(file, `${form.tag}${names}`)
}

function checkpointForm<S extends PolicyState>({ checksum }: StateForm<S>): CheckpointForm<S> {
  return {
    print: (state) => {
      const { entries = {}, ...rest } = state
      const sorted = byName(Object.fromEntries(Object.entries(entries).map(([uid, ofPod]) => [uid, byName(ofPod)])))
      const hasEntries = Object.keys(sorted).length > 0
      return JSON.stringify({ ...rest, ...(hasEntries && { entries: sorted }), checksum: checksum(state) })
    },
    parse: (text) => {
      const { checksum: stored, ...state } = JSON.parse(text) as S & { readonly checksum: number }
      // The rest without the checksum is a state.
      const whole = state as unknown as S
      return stored === checksum(whole) ? whole : undefined
    },
  }
}

export function restoreError<S extends PolicyState>({ path, form }: StateFile<S>, why: string): Error {
  const advice = `please drain this node and delete the ${form.manager} checkpoint file ${goQuote(path)} before restarting Kubelet`
  return new Error(`could not restore state from checkpoint: ${why}, ${advice}`)
}

export function writeState<S extends PolicyState>({ path, form }: StateFile<S>, state: S): Promise<void> {
  return writeCheckpoint(path, checkpointForm(form), state)
}

/** In the key order of Go maps. */
const byName = (map: object): object => Object.fromEntries(Object.entries(map).sort(([a], [b]) => compareText(a, b)))
