/**
 * Connects the cluster builder to a machine through a stream of its agent's tunnel. Failures are the same as those of
 * a connection over SSH.
 */
import type { Duplex } from 'node:stream'

import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'

import type { MachineConnection } from '../apply/connections.ts'
import { MachineLost } from '../machine.ts'
import { remoteMachine } from '../machines/remote.ts'
import type { Payload } from '../payload.ts'
import { type HandshakeOptions, startProgram } from '../ssh/handshake.ts'

export interface TunnelConnectOptions extends HandshakeOptions {
  /** The name of the machine in messages. */
  readonly name: string
  /** Opens a stream to the machine. Throws MachineLost if its agent is not connected. */
  readonly dial: () => Duplex
  readonly clock: Clock
}

/** The same limit as for SSH. */
const HELLO_MS = 15_000
const END_MS = 5000

/** Rejects with MachineLost and the last words of the machine. */
export async function connectThroughTunnel(
  options: TunnelConnectOptions,
  signal: AbortSignal,
): Promise<MachineConnection> {
  const { name, dial, clock } = options
  signal.throwIfAborted()
  const stream = dial()
  let failure: Error | undefined
  stream.on('error', (error) => (failure ??= error))
  const cut = (why: string): void => void stream.destroy(new Error(why))
  const late = clock.after(HELLO_MS, () => cut(`no answer within ${HELLO_MS / 1000} s`))
  const release = onAbort(signal, () => cut('the builder was stopped'))
  const close = (): Promise<void> => {
    release()
    return endOf(stream, clock)
  }
  // The machine has answered when the program for its architecture is looked up.
  const payload = (kind: string): Promise<Payload> => {
    late.cancel()
    return options.payload(kind)
  }
  try {
    const { program, isThere } = await startProgram({ input: stream, output: stream }, { ...options, payload })
    if (!isThere) return { program, close }
    const lastWords = (): Promise<string> => Promise.resolve(failure?.message ?? '')
    return { machine: remoteMachine({ name, input: stream, output: stream, lastWords }), program, close }
  } catch (cause) {
    release()
    stream.destroy()
    throw new MachineLost(`${name}: ${(failure ?? (cause as Error)).message}`, { cause })
  } finally {
    late.cancel()
  }
}

/** Lets the program end by itself for a while. */
async function endOf(stream: Duplex, clock: Clock): Promise<void> {
  if (stream.closed) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const late = clock.after(END_MS, () => void stream.destroy())
  stream.once('close', resolve)
  stream.end()
  stream.resume()
  await promise
  late.cancel()
}
