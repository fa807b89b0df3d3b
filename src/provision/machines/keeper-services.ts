/**
 * Manages services through the keeper, our supervisor for machines without systemd. The keeper starts on first use and
 * outlives this process.
 */
import { spawn } from 'node:child_process'
import { mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { type Clock, sleep } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'

import { MachineError, type ServiceSpec } from '../machine.ts'
import { serviceDigest } from '../service-digest.ts'
import type { Journal } from './journal.ts'
import { keeperPaths } from './keeper-paths.ts'
import { sendToKeeper, type Reply } from './keeper-protocol.ts'
import type { Services } from './services.ts'

export interface KeeperServicesOptions {
  readonly home: string
  /** The command of the keeper. */
  readonly keeper: readonly string[]
  readonly clock: Clock
  readonly journal: Journal
  readonly env: Readonly<Record<string, string | undefined>>
}

const START_MS = 30_000
const LOOK_MS = 50

export function keeperServices(options: KeeperServicesOptions): Services {
  const { home, clock, journal } = options
  const paths = keeperPaths(home)
  const readSpec = async (name: string): Promise<ServiceSpec | undefined> => {
    const text = await readFile(paths.spec(name), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : (JSON.parse(text) as ServiceSpec)
  }
  return {
    async look(name) {
      const spec = await readSpec(name)
      if (spec === undefined) return undefined
      const state = await sendToKeeper(paths.socket, { order: 'state', name })
      return { digest: serviceDigest(spec), isRunning: state?.isRunning === true }
    },
    async serve(service) {
      const { name } = service
      // Without a keeper no service runs, so there is nothing to stop.
      await sendToKeeper(paths.socket, { order: 'stop', name })
      await journal.file(paths.spec(name))
      await writeFileAtomically(paths.spec(name), `${JSON.stringify(service, undefined, 2)}\n`, { mode: 0o600 })
      const reply = (await sendToKeeper(paths.socket, { order: 'start', name })) ?? (await startKeeper(options, name))
      if (reply.problem !== undefined) throw new MachineError(reply.problem)
    },
    async retire(name) {
      await sendToKeeper(paths.socket, { order: 'stop', name })
      await rm(paths.spec(name), { force: true })
    },
    async tail(name, lines) {
      const text = await readFile(paths.log(name), 'utf8').catch(() => '')
      return text.trimEnd().split('\n').slice(-lines).join('\n')
    },
    async leave() {
      await sendToKeeper(paths.socket, { order: 'leave', name: '' })
      // The socket goes last, because a running keeper would write files again.
      for (let waited = 0; waited < START_MS; waited += LOOK_MS) {
        if ((await sendToKeeper(paths.socket, { order: 'state', name: '' })) === undefined) break
        await sleep(clock, LOOK_MS)
      }
      await rm(paths.specs, { recursive: true, force: true })
    },
  }
}

/** Resolves with the keeper's answer to the start order. */
async function startKeeper(options: KeeperServicesOptions, name: string): Promise<Reply> {
  const { home, clock, journal } = options
  const paths = keeperPaths(home)
  await journal.tree(paths.logs)
  await journal.tree(paths.state)
  await mkdir(paths.logs, { recursive: true, mode: 0o700 })
  await spawnKeeper(options, join(paths.logs, 'keeper.log'))
  for (let waited = 0; waited < START_MS; waited += LOOK_MS) {
    const reply = await sendToKeeper(paths.socket, { order: 'start', name })
    if (reply !== undefined) return reply
    await sleep(clock, LOOK_MS)
  }
  throw new MachineError('The service keeper does not start')
}

async function spawnKeeper({ keeper, env }: KeeperServicesOptions, file: string): Promise<void> {
  await using log = await open(file, 'a', 0o600)
  const [program = '', ...args] = keeper
  const child = spawn(program, args, { detached: true, stdio: ['ignore', log.fd, log.fd], cwd: '/', env })
  child.on('error', () => undefined)
  child.unref()
}
