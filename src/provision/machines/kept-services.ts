/** Services that our own keeper keeps, which is started when it is first needed and outlives whoever started it. */
import { spawn } from 'node:child_process'
import { mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type Clock, sleep } from '#lib/clock.ts'

import { MachineError, type ServiceSpec } from '../machine.ts'
import { serviceDigest } from '../service-digest.ts'
import type { Journal } from './journal.ts'
import { askKeeper, type Reply } from './keeper-orders.ts'
import { keeperPlaces } from './keeper-places.ts'
import type { Services } from './services.ts'

export interface KeptServicesOptions {
  readonly home: string
  /** What a keeper is started with. */
  readonly keeper: readonly string[]
  readonly clock: Clock
  readonly journal: Journal
  readonly env: Readonly<Record<string, string | undefined>>
}

const START_MS = 30_000
const LOOK_MS = 50

export function keptServices(options: KeptServicesOptions): Services {
  const { home, clock, journal } = options
  const places = keeperPlaces(home)
  const readSpec = async (name: string): Promise<ServiceSpec | undefined> => {
    const text = await readFile(places.spec(name), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : (JSON.parse(text) as ServiceSpec)
  }
  return {
    async look(name) {
      const spec = await readSpec(name)
      if (spec === undefined) return undefined
      const state = await askKeeper(places.socket, { order: 'state', name })
      return { digest: serviceDigest(spec), isRunning: state?.isRunning === true }
    },
    async serve(service) {
      const { name } = service
      // One that does not run has nothing to stop, and stopping needs no keeper.
      await askKeeper(places.socket, { order: 'stop', name })
      await journal.file(places.spec(name))
      await writeFileAtomically(places.spec(name), `${JSON.stringify(service, undefined, 2)}\n`, { mode: 0o600 })
      const reply = (await askKeeper(places.socket, { order: 'start', name })) ?? (await startKeeper(options, name))
      if (reply.problem !== undefined) throw new MachineError(reply.problem)
    },
    async retire(name) {
      await askKeeper(places.socket, { order: 'stop', name })
      await rm(places.spec(name), { force: true })
    },
    async tail(name, lines) {
      const text = await readFile(places.log(name), 'utf8').catch(() => '')
      return text.trimEnd().split('\n').slice(-lines).join('\n')
    },
    async leave() {
      await askKeeper(places.socket, { order: 'leave', name: '' })
      // The socket goes last: a keeper that is still there would write behind us.
      for (let waited = 0; waited < START_MS; waited += LOOK_MS) {
        if ((await askKeeper(places.socket, { order: 'state', name: '' })) === undefined) break
        await sleep(clock, LOOK_MS)
      }
      await rm(places.specs, { recursive: true, force: true })
    },
  }
}

/** Resolves with what it says to the order to start the service. */
async function startKeeper(options: KeptServicesOptions, name: string): Promise<Reply> {
  const { home, clock, journal } = options
  const places = keeperPlaces(home)
  await journal.tree(places.logs)
  await journal.tree(places.state)
  await mkdir(places.logs, { recursive: true, mode: 0o700 })
  await spawnKeeper(options, join(places.logs, 'keeper.log'))
  for (let waited = 0; waited < START_MS; waited += LOOK_MS) {
    const reply = await askKeeper(places.socket, { order: 'start', name })
    if (reply !== undefined) return reply
    await sleep(clock, LOOK_MS)
  }
  throw new MachineError('The keeper of services does not start')
}

async function spawnKeeper({ keeper, env }: KeptServicesOptions, file: string): Promise<void> {
  await using log = await open(file, 'a', 0o600)
  const [program = '', ...args] = keeper
  const child = spawn(program, args, { detached: true, stdio: ['ignore', log.fd, log.fd], cwd: '/', env })
  child.on('error', () => undefined)
  child.unref()
}
