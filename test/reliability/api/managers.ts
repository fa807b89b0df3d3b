/**
 * The controller manager killed at any moment, again and again, while a Deployment, a StatefulSet and Jobs are changed, and
 * now and then the API server with it. What controllers promise is looked at with every event; each round ends when
 * everything is as it was asked for.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { Deployments, StatefulSets } from '#apis/apps/v1.ts'
import { Jobs } from '#apis/batch/v1.ts'
import { ConfigMaps, type Pod, Pods, ServiceAccounts } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createSeededRandom, type Random, secureRandom } from '#lib/random.ts'
import { isActive, isReady } from '#model/pods.ts'

import { startManager } from '../../upstream/components.ts'
import { end, launch, prepareServer, untilReady } from '../../upstream/kube-apiserver.ts'
import { HYPERKUBE, writeKubeconfig } from '../../upstream/ours.ts'
import { startVirtualNodes } from '../../upstream/virtual-nodes.ts'

export interface ManagersOptions {
  readonly rounds: number
  readonly seed: number
  readonly progress: (line: string) => void
}

const namespace = 'default'
const [REPLICAS, SURGE, UNAVAILABLE] = [6, 2, 1]
const PARALLELISM = 3
const COMPLETIONS = 5
/** Every so many rounds the API server is killed as well. */
const SERVER_EVERY = 10
const PATIENCE_MS = 120_000
const LOOK_EVERY_MS = 100
const FLAGS = ['--kube-api-qps=500', '--kube-api-burst=1000']

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

const template = (app: string, image: string, more: object = {}, annotations: object = {}): object => ({
  metadata: { labels: { app }, annotations },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', image }], ...more },
})

/** What is in the cluster, what is done to it, and what has to be true of it all the time. */
class World {
  readonly #client: ApiClient
  readonly random: Random
  readonly violations: string[] = []
  readonly #over = new AbortController()
  readonly #pods: Informer<Pod>
  readonly #following: Promise<void>
  #isWhole = false
  /** What is wanted of the Deployment, and until it is there also what was before. */
  #sizes = [REPLICAS]
  seen = 0

  constructor(client: ApiClient, random: Random) {
    this.#client = client
    this.random = random
    this.#pods = new Informer<Pod>({ client, kind: Pods, random: secureRandom, onError: () => undefined })
    const look = (): void => this.#check()
    this.#pods.listen({ added: look, updated: look, deleted: look })
    this.#following = this.#pods.run(this.#over.signal)
  }

  async stop(): Promise<void> {
    this.#over.abort()
    await this.#following
  }

  #check(): void {
    this.seen++
    const active = Map.groupBy([...this.#pods.list()].filter(isActive), ({ metadata }) => metadata.labels?.['app'])
    const web = active.get('web') ?? []
    if (web.length > Math.max(...this.#sizes) + SURGE) this.violations.push(`${web.length} pods of the Deployment`)
    const ready = web.filter(isReady).length
    const least = Math.min(...this.#sizes) - UNAVAILABLE
    if (this.#isWhole && ready < least) this.violations.push(`${ready} ready pods of the Deployment, ${least} at least`)
    const jobs = Map.groupBy(active.get('job') ?? [], ({ metadata }) => metadata.labels?.['job-name'])
    for (const [job, pods] of jobs) if (pods.length > PARALLELISM) this.violations.push(`${pods.length} pods of ${job}`)
    const ordinals = (active.get('set') ?? []).map(({ metadata }) => metadata.labels?.['apps.kubernetes.io/pod-index'])
    if (new Set(ordinals).size < ordinals.length) this.violations.push(`ordinals ${ordinals.join()}`)
  }

  async fill(): Promise<void> {
    const client = this.#client
    await this.#until('an account', async () =>
      client.get(ServiceAccounts, { namespace, name: 'default' }).then(() => true),
    )
    const rollingUpdate = { maxSurge: SURGE, maxUnavailable: UNAVAILABLE }
    const of = (app: string): object => ({ selector: { matchLabels: { app } }, template: template(app, 'img:0') })
    const web = { replicas: REPLICAS, strategy: { rollingUpdate }, ...of('web') }
    await client.create(Deployments, { metadata: { namespace, name: 'web' }, spec: web } as never)
    const set = { replicas: 3, serviceName: 's', podManagementPolicy: 'Parallel', ...of('set') }
    await client.create(StatefulSets, { metadata: { namespace, name: 'set' }, spec: set } as never)
    const { metadata } = await client.create(ConfigMaps, { metadata: { namespace, name: 'owner' } })
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: metadata.uid ?? '' }]
    await client.create(ConfigMaps, { metadata: { namespace, name: 'kept', ownerReferences } })
    await this.settled(0)
    this.#isWhole = true
  }

  async change(round: number): Promise<void> {
    const merge = (value: object) => ({ type: 'merge', value }) as const
    const client = this.#client
    const image = `img:${round}`
    const spec = round % 2 === 0 ? { template: template('web', image) } : {}
    const replicas = REPLICAS + (round % 3 === 0 ? 6 : 0)
    this.#sizes.push(replicas)
    await client.patch(Deployments, { namespace, name: 'web' }, merge({ spec: { ...spec, replicas } }))
    const size = 1 + this.random.int(5)
    await client.patch(StatefulSets, { namespace, name: 'set' }, merge({ spec: { replicas: size } }))
    const fate = { 'stand-in/fate': 'exit 0', 'stand-in/after-ms': '300' }
    const job = template('job', 'i', { restartPolicy: 'Never' }, fate)
    const counts = { parallelism: PARALLELISM, completions: COMPLETIONS, ttlSecondsAfterFinished: 60 }
    await client.create(Jobs, {
      metadata: { namespace, name: `job-${round}` },
      spec: { ...counts, template: job },
    } as never)
  }

  /** Waits until everything is as it was asked for. */
  async settled(round: number): Promise<void> {
    const client = this.#client
    await this.#until(`round ${round}: the Deployment`, async () => {
      const { metadata, spec, status } = await client.get(Deployments, { namespace, name: 'web' })
      const counts = [status.updatedReplicas, status.availableReplicas, status.replicas]
      return status.observedGeneration === metadata.generation && counts.every((count) => count === spec.replicas)
    })
    this.#sizes = this.#sizes.slice(-1)
    await this.#until(`round ${round}: the StatefulSet`, async () => {
      const { spec, status } = await client.get(StatefulSets, { namespace, name: 'set' })
      return status.readyReplicas === spec.replicas && status.replicas === spec.replicas
    })
    if (round > 0) {
      await this.#until(`round ${round}: the Job`, async () => {
        const { status } = await client.get(Jobs, { namespace, name: `job-${round}` })
        return status?.succeeded === COMPLETIONS
      })
    }
    await this.#until('what has a live owner', async () =>
      client.get(ConfigMaps, { namespace, name: 'kept' }).then(() => true),
    )
  }

  async #until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
    for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += LOOK_EVERY_MS) {
      // A server that is away comes back.
      if (await isTrue().catch(() => false)) return
      await sleep(realClock, LOOK_EVERY_MS)
    }
    this.violations.push(`${what} did not come about`)
  }
}
