/**
 * Kills `hyperkube up` with simulated nodes at random moments, while workloads roll out, scale and end and a namespace
 * is deleted. Checks that each restart continues the same cluster and that no acknowledged write is lost.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { connect } from '#client/connection/connect.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { end, freePort } from '../../upstream/kube-apiserver.ts'
import { HYPERKUBE } from '../../upstream/ours.ts'
import type { ManagersOptions } from './managers.ts'
import { World } from './world.ts'

const LIFE_MS = 2500

/** Returns what was violated. */
export async function runClusters({ rounds, seed, progress }: ManagersOptions): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-clusters-'))
  await using running = new AsyncDisposableStack()
  running.defer(() => rm(folder, { recursive: true, force: true }))
  const kubeconfig = join(folder, 'kubeconfig')
  const where = [
    `--data-dir=${join(folder, 'data')}`,
    `--kubeconfig=${kubeconfig}`,
    `--secure-port=${await freePort()}`,
  ]
  let cluster = await startUp(where)
  running.defer(() => end(cluster, 'SIGKILL'))
  const connected = running.use(await connect({ kubeconfig, userAgent: 'world' }))

  const world = new World(connected.client, createSeededRandom(seed))
  running.defer(() => world.stop())
  await world.fill()
  for (let round = 1; round <= rounds && world.violations.length === 0; round++) {
    await Promise.all([world.change(round), world.deleteNamespace(round)])
    const killed = new AbortController()
    const writing = world.write(round, killed.signal)
    await sleep(realClock, world.random.int(LIFE_MS))
    await end(cluster, 'SIGKILL')
    killed.abort()
    await writing
    cluster = await startUp(where)
    await world.settled(round)
    await world.complete(round)
    progress(`round ${round} of ${rounds}: ${world.violations.length} violations, ${world.seen} events`)
  }
  return world.violations
}

/** Resolves when it says that it is ready. */
async function startUp(where: readonly string[]): Promise<ChildProcess> {
  const args = ['up', '--runtime=simulated', '--nodes=3', '-o=json', ...where]
  const child = spawn(HYPERKUBE, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve())
    child.once('exit', (code) => reject(new Error(`up ended with ${code} before it was ready`)))
  })
  return child
}
