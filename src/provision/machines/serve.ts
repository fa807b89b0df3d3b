/** Executes the calls of `hyperkube build` on a machine, and sends each answer immediately. */
import type { Readable, Writable } from 'node:stream'

import { type Machine, MACHINE_CALLS, type MachineCall } from '../machine.ts'
import { encodeFrame, readFrames, sendFrame } from './frames.ts'

export interface CallHead {
  readonly id: number
  /** Absent: aborts the call with this number. */
  readonly call?: MachineCall
  readonly ask?: Readonly<Record<string, unknown>>
  /** True if the body is the content of the call. */
  readonly hasContent?: boolean
}

export interface AnswerHead {
  readonly id: number
  readonly answer?: Readonly<Record<string, unknown>>
  readonly hasContent?: boolean
  readonly problem?: string
}

type AnyCall = (ask: object, signal: AbortSignal) => Promise<object>

/** Runs until the client disconnects, then aborts running calls. */
export async function serveMachine(machine: Machine, input: Readable, output: Writable): Promise<void> {
  const running = new Map<number, AbortController>()
  const done: Promise<void>[] = []
  try {
    for await (const { head, body } of readFrames(input)) {
      const { id, call, ask = {}, hasContent = false } = head as CallHead
      if (call === undefined) {
        running.get(id)?.abort()
        continue
      }
      const stop = new AbortController()
      running.set(id, stop)
      const given = hasContent ? { ...ask, content: body } : ask
      const answered = answer(machine, call, given, stop.signal)
        .then((frame) => sendFrame(output, frame(id)))
        .finally(() => running.delete(id))
      done.push(answered)
      if (done.length > MANY) await Promise.all(done.splice(0, MANY / 2))
    }
  } finally {
    for (const stop of running.values()) stop.abort()
    await Promise.allSettled(done)
  }
}

/** More concurrent calls wait in the pipe. */
const MANY = 64

async function answer(
  machine: Machine,
  call: MachineCall,
  ask: object,
  signal: AbortSignal,
): Promise<(id: number) => Buffer> {
  try {
    if (!MACHINE_CALLS.includes(call)) throw new Error(`There is no call "${call}"`)
    const { content, ...rest } = (await (machine[call] as AnyCall)(ask, signal)) as { content?: Buffer }
    const head = { answer: rest, ...(content !== undefined && { hasContent: true }) }
    return (id) => encodeFrame({ id, ...head }, content)
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    return (id) => encodeFrame({ id, problem })
  }
}
