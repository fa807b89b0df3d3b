/**
 * Kills the controller manager, and sometimes the API server, at random moments while a Deployment, a StatefulSet and
 * Jobs change. Invariants are checked at every event; each round ends when the cluster has converged.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { startManager } from '../../upstream/components.ts'
import { end, launch, prepareServer, untilReady } from '../../upstream/kube-apiserver.ts'
import { HYPERKUBE, writeKubeconfig } from '../../upstream/ours.ts'
import { startVirtualNodes } from '../../upstream/virtual-nodes.ts'
import { World } from './world.ts'

export interface ManagersOptions {
  readonly rounds: number
  readonly seed: number
  readonly progress: (line: string) => void
}

/** Every so many rounds the API server is killed as well. */
const SERVER_EVERY = 10
/** The nodes live in this process: on a busy machine they may be late, and are not gone for that. */
const FLAGS = ['--kube-api-qps=500', '--kube-api-burst=1000', '--node-monitor-grace-period=1h']

/** Returns what was violated. */
export async function runManagers({ rounds, seed, progress }: ManagersOptions): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-managers-'))
  await using running = new AsyncDisposableStack()
  running.defer(() => rm(folder, { recursive: true, force: true }))
  const prepared = await prepareServer(folder)
  const flags = [...prepared.flags, `--datastore=sqlite:${join(folder, 'store.db')}`]
  const startServer = () => launch(HYPERKUBE, ['kube-apiserver', ...flags], join(folder, 'server.log'))
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), prepared)
  const startOne = () => startManager(folder, kubeconfig, { make: 'ours', flags: FLAGS })
  let server = await startServer()
  running.defer(() => end(server, 'SIGKILL'))
  await untilReady(prepared, server)
  let manager = await startOne()
  running.defer(() => end(manager, 'SIGKILL'))
  const nodes = await startVirtualNodes({ server: prepared, nodes: [{ name: 'virtual-1' }], binds: true })
  running.defer(() => nodes.stop())
  const world = new World(nodes.client, createSeededRandom(seed))
  running.defer(() => world.stop())
  await world.fill()
  for (let round = 1; round <= rounds && world.violations.length === 0; round++) {
    await world.change(round)
    await sleep(realClock, world.random.int(1500))
    await end(manager, 'SIGKILL')
    if (round % SERVER_EVERY === 0) {
      await end(server, 'SIGKILL')
      server = await startServer()
      await untilReady(prepared, server)
    }
    manager = await startOne()
    await world.settled(round)
    progress(`round ${round} of ${rounds}: ${world.violations.length} violations, ${world.seen} events`)
  }
  return world.violations
}
