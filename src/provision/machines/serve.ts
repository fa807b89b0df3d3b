/** The far end of a connection: calls come in, the machine does them, answers go out in whatever order they are ready. */
import type { Readable, Writable } from 'node:stream'

import { type Machine, MACHINE_CALLS, type MachineCall } from '../machine.ts'
import { encodeFrame, readFrames, sendFrame } from './frames.ts'

export interface CallHead {
  readonly id: number
  /** Absent: the call of this number is no longer wanted. */
  readonly call?: MachineCall
  readonly ask?: Readonly<Record<string, unknown>>
  /** Whether the body is the content of what is asked. */
  readonly hasContent?: boolean
}

export interface AnswerHead {
  readonly id: number
  readonly answer?: Readonly<Record<string, unknown>>
  readonly hasContent?: boolean
  readonly problem?: string
}

type AnyCall = (ask: object, signal: AbortSignal) => Promise<object>

/** Until whoever asks has gone; what is under way then is aborted. */
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

/** More calls at a time wait in the pipe. */
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
