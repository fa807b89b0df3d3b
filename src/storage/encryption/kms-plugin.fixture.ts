/** A fake KMS plugin for tests. It encrypts with an XOR mask and can simulate every failure. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { TestContext } from 'node:test'

import { KeyManagementService } from '#apis/wire/kms.ts'
import { type Clock, createVirtualClock, realClock } from '#lib/clock.ts'
import { createGrpcServer, type GrpcServer, handleUnary } from '#lib/grpc/server.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { KmsServices } from './kms.ts'

export interface MockPlugin {
  readonly socket: string
  /** The status that it reports. */
  readonly reported: { keyId: string; healthz: string; version: string }
  /** The key of encryption, if it differs from the one in the status. */
  readonly slip: { keyId?: string }
  readonly calls: { status: number; encrypt: number; decrypt: number }
  start(): Promise<void>
  stop(): Promise<void>
}

/** Encrypts by flipping bits, which is no protection. */
const mask = (bytes: Uint8Array): Buffer => Buffer.from(bytes.map((byte) => byte ^ 0x5a))

export const ANNOTATIONS: ReadonlyMap<string, Buffer> = new Map([
  ['version.example.com', Buffer.from('1')],
  ['a.example.com', Buffer.from('two')],
])

/** Runs by default, and is stopped with the test. */
export async function startPlugin(t: TestContext, isRunning: boolean = true): Promise<MockPlugin> {
  const folder = await mkdtemp(join(tmpdir(), 'kms-test-'))
  const socket = join(folder, 'kms.sock')
  const reported = { keyId: 'key-1', healthz: 'ok', version: 'v2' }
  const slip: MockPlugin['slip'] = {}
  const calls = { status: 0, encrypt: 0, decrypt: 0 }
  const handlers = [
    handleUnary(KeyManagementService.status, () => {
      calls.status++
      return reported
    }),
    handleUnary(KeyManagementService.encrypt, ({ plaintext }) => {
      calls.encrypt++
      return { ciphertext: mask(plaintext), keyId: slip.keyId ?? reported.keyId, annotations: ANNOTATIONS }
    }),
    handleUnary(KeyManagementService.decrypt, ({ ciphertext }) => {
      calls.decrypt++
      return { plaintext: mask(ciphertext) }
    }),
  ]
  let server: GrpcServer | undefined
  const plugin: MockPlugin = {
    socket,
    reported,
    slip,
    calls,
    async start() {
      server = createGrpcServer({ handlers, clock: realClock })
      await server.listen({ path: socket })
    },
    async stop() {
      await server?.stop(0)
      server = undefined
      await rm(socket, { force: true })
    },
  }
  t.after(async () => {
    await plugin.stop()
    await rm(folder, { recursive: true })
  })
  if (isRunning) await plugin.start()
  return plugin
}

export interface TestServices extends KmsServices {
  /** The logged messages. */
  readonly logged: () => string
}

export function testServices(clock: Clock = createVirtualClock()): TestServices {
  let text = ''
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  return { clock, random: createSeededRandom(1), log: createLog({ stream, clock }).logger, logged: () => text }
}
