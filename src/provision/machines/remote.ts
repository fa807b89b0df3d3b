/**
 * Implements the machine interface of `hyperkube build` for a remote machine, with one frame for each call and answer
 * over two pipes.
 */
import type { Readable, Writable } from 'node:stream'

import { onAbort } from '#lib/abort.ts'

import { type Machine, MACHINE_CALLS, type MachineCall, MachineError, MachineLost } from '../machine.ts'
import { encodeFrame, readFrames, sendFrame } from './frames.ts'
import type { AnswerHead, CallHead } from './serve.ts'

interface PendingCall {
  readonly resolve: (answer: object) => void
  readonly reject: (error: Error) => void
}

export interface RemoteOptions {
  /** The name in error messages. */
  readonly name: string
  readonly input: Readable
  readonly output: Writable
  /** Returns the last output of the other side after the connection has ended. */
  readonly lastWords?: () => Promise<string>
}

/** Calls reject with MachineError for errors of the machine, with MachineLost after the connection has ended. */
export function remoteMachine({ name, input, output, lastWords }: RemoteOptions): Machine {
  const waiting = new Map<number, PendingCall>()
  let lost: MachineLost | undefined
  let last = 0
  output.on('error', () => undefined)
  const followed = async (): Promise<void> => {
    const reason = await listen(input, waiting).then(
      () => 'the connection has ended',
      (error: Error) => error.message,
    )
    const words = (await lastWords?.().catch(() => '')) ?? ''
    lost = new MachineLost(`${name}: ${words === '' ? reason : words}`)
    for (const { reject } of waiting.values()) reject(lost)
    waiting.clear()
  }
  void followed()
  const call = async (method: MachineCall, ask: object, signal?: AbortSignal): Promise<object> => {
    if (lost !== undefined) throw lost
    signal?.throwIfAborted()
    const { content, ...rest } = ask as { content?: Buffer }
    const id = ++last
    const head: CallHead = { id, call: method, ask: rest, ...(content !== undefined && { hasContent: true }) }
    const { promise, resolve, reject } = Promise.withResolvers<object>()
    waiting.set(id, { resolve, reject: (error) => reject(error instanceof MachineLost ? error : named(error, name)) })
    const release = onAbort(signal, () => void sendFrame(output, encodeFrame({ id } satisfies CallHead)))
    await sendFrame(output, encodeFrame(head, content))
    return promise.finally(release)
  }
  const calls = MACHINE_CALLS.map((method) => [
    method,
    (ask: object, signal?: AbortSignal) => call(method, ask, signal),
  ])
  return Object.fromEntries(calls) as Machine
}

function named(error: Error, name: string): MachineError {
  return new MachineError(`${name}: ${error.message}`, { cause: error })
}

async function listen(input: Readable, waiting: Map<number, PendingCall>): Promise<void> {
  for await (const { head, body } of readFrames(input)) {
    const { id, answer = {}, hasContent = false, problem } = head as AnswerHead
    const one = waiting.get(id)
    waiting.delete(id)
    if (problem !== undefined) one?.reject(new Error(problem))
    else one?.resolve(hasContent ? { ...answer, content: body } : answer)
  }
}
