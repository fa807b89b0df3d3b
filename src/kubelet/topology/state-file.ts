/**
 * Files in which managers of processors and of memory keep who has what, in upstream's form: the policy, what is left, the entries of
 * pods and a checksum of all that. A kubelet that cannot read its own does not start: nobody knows then what pods have.
 */
import { readFile } from 'node:fs/promises'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { compareText, goQuote } from '#lib/go-text.ts'

interface PolicyState {
  readonly policyName: string
  /** By pod and container; left out of the file when there are none. */
  readonly entries?: Readonly<Record<string, object>>
}

/** What a manager's file looks like. */
export interface StateForm<S extends PolicyState> {
  /** As users are told of it: `CPU manager`. */
  readonly manager: string
  /** Before what is said of its policy. */
  readonly tag: string
  readonly checksum: (state: S) => number
}

export interface StateFile<S extends PolicyState> {
  readonly path: string
  readonly form: StateForm<S>
}

/** Undefined when there is none. Rejects when it is not whole, or of another policy. */
export async function readState<S extends PolicyState>(file: StateFile<S>, policy: string): Promise<S | undefined> {
  const { path, form } = file
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const state = wholeState(text, form)
  if (state === undefined) throw restoreError(file, 'checkpoint is corrupted')
  if (state.policyName === policy) return state
  const names = `configured policy ${goQuote(policy)} differs from state checkpoint policy ${goQuote(state.policyName)}`
  throw restoreError(file, `${form.tag}${names}`)
}

function wholeState<S extends PolicyState>(text: string, { checksum }: StateForm<S>): S | undefined {
  try {
    const { checksum: said, ...state } = JSON.parse(text) as S & { readonly checksum: number }
    // What was taken apart is a state again without its checksum.
    const whole = state as unknown as S
    return said === checksum(whole) ? whole : undefined
  } catch {
    return undefined
  }
}

export function restoreError<S extends PolicyState>({ path, form }: StateFile<S>, why: string): Error {
  const advice = `please drain this node and delete the ${form.manager} checkpoint file ${goQuote(path)} before restarting Kubelet`
  return new Error(`could not restore state from checkpoint: ${why}, ${advice}`)
}

export async function writeState<S extends PolicyState>({ path, form }: StateFile<S>, state: S): Promise<void> {
  const { entries = {}, ...rest } = state
  const sorted = byName(Object.fromEntries(Object.entries(entries).map(([uid, ofPod]) => [uid, byName(ofPod)])))
  const hasEntries = Object.keys(sorted).length > 0
  const text = JSON.stringify({ ...rest, ...(hasEntries && { entries: sorted }), checksum: form.checksum(state) })
  await writeFileAtomically(path, text, { mode: 0o600 })
}

/** As Go writes maps. */
const byName = (map: object): object => Object.fromEntries(Object.entries(map).sort(([a], [b]) => compareText(a, b)))
