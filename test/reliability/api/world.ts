/**
 * Creates the workloads of the kill tests: a Deployment, a StatefulSet and Jobs that change repeatedly. Invariants are
 * checked at every event, and convergence at the end.
 */
import { Deployments, type ReplicaSet, ReplicaSets, StatefulSets } from '#apis/apps/v1.ts'
import { Jobs } from '#apis/batch/v1.ts'
import { ConfigMaps, Namespaces, type Pod, Pods, ServiceAccounts } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { type Random, secureRandom } from '#lib/random.ts'
import { isNotFound } from '#meta/status.ts'
import { isActive, isReady } from '#model/pods.ts'

const namespace = 'default'
const [REPLICAS, SURGE, UNAVAILABLE] = [6, 2, 1]
const PARALLELISM = 3
const COMPLETIONS = 5
const PATIENCE_MS = 120_000
const LOOK_EVERY_MS = 100
/** The number of objects in a namespace that is deleted. */
const OBJECTS = 20

const template = (app: string, image: string, more: object = {}, annotations: object = {}): object => ({
  metadata: { labels: { app }, annotations },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', image, ...COMMANDS[app] }], ...more },
})

const COMMANDS: Readonly<Record<string, object>> = { job: { command: ['sleep', '0.3'] } }

function stateOf({ metadata, spec, status }: Pod): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return [metadata.name, spec.containers[0]?.image, status?.phase, ready?.status, ready?.lastTransitionTime].join(' ')
}

export class World {
  readonly #client: ApiClient
  readonly random: Random
  readonly violations: string[] = []
  readonly #over = new AbortController()
  readonly #pods: Informer<Pod>
  readonly #sets: Informer<ReplicaSet>
  readonly #following: Promise<unknown>
  #isWhole = false
  readonly #places = new Map<string, string>()
  readonly #acknowledged: string[] = []
  /**
   * For each ReplicaSet of the Deployment: the largest requested and the largest actual number of pods since the
   * workloads were last stable.
   */
  readonly #asked = new Map<string, number>()
  readonly #had = new Map<string, number>()
  readonly #generations = new Map<string, number>()
  /** The requested size of the Deployment; also the previous size until the change is complete. */
  #sizes = [REPLICAS]
  seen = 0

  constructor(client: ApiClient, random: Random) {
    this.#client = client
    this.random = random
    const retry = { baseMs: 100, capMs: 500 }
    const around = { client, random: secureRandom, retry, onError: () => undefined }
    this.#pods = new Informer<Pod>({ ...around, kind: Pods })
    this.#sets = new Informer<ReplicaSet>({ ...around, kind: ReplicaSets })
    // When all of a list has been taken over: before, what has gone stands beside what has come.
    const look = (): void => queueMicrotask(() => this.#check())
    this.#pods.listen({ added: look, updated: look, deleted: look })
    const lookAtSets = (): void => queueMicrotask(() => this.#checkSets())
    this.#sets.listen({ added: lookAtSets, updated: lookAtSets, deleted: lookAtSets })
    this.#following = Promise.all([this.#pods.run(this.#over.signal), this.#sets.run(this.#over.signal)])
  }

  async stop(): Promise<void> {
    this.#over.abort()
    await this.#following
  }

  #check(): void {
    this.seen++
    for (const { metadata, spec } of this.#pods.list()) this.#notePlace(metadata.uid ?? '', spec.nodeName ?? '')
    const active = Map.groupBy([...this.#pods.list()].filter(isActive), ({ metadata }) => metadata.labels?.['app'])
    const web = this.#web()
    for (const [set = '', pods] of Map.groupBy(web, ({ metadata }) => metadata.ownerReferences?.[0]?.name))
      this.#had.set(set, Math.max(pods.length, this.#had.get(set) ?? 0))
    const ready = web.filter(isReady).length
    const least = Math.min(...this.#sizes) - UNAVAILABLE
    if (this.#isWhole && ready < least)
      this.violations.push(`${ready} ready pods of the Deployment, ${least} at least: ${web.map(stateOf).join(', ')}`)
    const jobs = Map.groupBy(active.get('job') ?? [], ({ metadata }) => metadata.labels?.['job-name'])
    for (const [job, pods] of jobs) if (pods.length > PARALLELISM) this.violations.push(`${pods.length} pods of ${job}`)
    const ordinals = (active.get('set') ?? []).map(({ metadata }) => metadata.labels?.['apps.kubernetes.io/pod-index'])
    if (new Set(ordinals).size < ordinals.length) this.violations.push(`ordinals ${ordinals.join()}`)
  }

  /**
   * Checks the sum of the requested pods of all ReplicaSets. As in upstream, one more pod may exist for a moment: one
   * ReplicaSet creates a pod although its size was just reduced, while another one creates the replacement.
   */
  #checkSets(): void {
    const most = Math.max(...this.#sizes) + SURGE
    let sum = 0
    for (const { metadata, spec } of this.#sets.list()) {
      const { replicas = 0 } = spec
      sum += replicas
      const { name = '', generation = 0 } = metadata
      // A size that was set between two lists, while the server was down, is unknown; then the bound of the
      // Deployment applies.
      const isMissed = generation > (this.#generations.get(name) ?? 0) + 1
      this.#generations.set(name, generation)
      this.#asked.set(name, Math.max(isMissed ? most : replicas, this.#asked.get(name) ?? 0))
    }
    if (sum > most) this.violations.push(`${sum} pods are asked for by the Deployment`)
  }

  /** At the end: no ReplicaSet has had more pods than its largest requested size. */
  #compareSets(): void {
    // A listener may hear of a new list a moment after it is there.
    this.#checkSets()
    for (const [set, had] of this.#had) {
      const asked = this.#asked.get(set) ?? 0
      if (had > asked) this.violations.push(`${had} pods of ${set}, which was to have ${asked}`)
    }
    for (const memory of [this.#asked, this.#had]) memory.clear()
    this.#checkSets()
  }

  /** The pods of the Deployment, as far as is known. */
  #web(): Pod[] {
    return [...this.#pods.list()].filter((pod) => isActive(pod) && pod.metadata.labels?.['app'] === 'web')
  }

  #notePlace(uid: string, node: string): void {
    const known = this.#places.get(uid) ?? ''
    if (known !== '' && known !== node) this.violations.push(`${uid} was bound to ${known}, and then to "${node}"`)
    if (node !== '') this.#places.set(uid, node)
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
    const counts = { parallelism: PARALLELISM, completions: COMPLETIONS, ttlSecondsAfterFinished: 600 }
    await client.create(Jobs, {
      metadata: { namespace, name: `job-${round}` },
      spec: { ...counts, template: job },
    } as never)
  }

  /** Writes until something ends it: what was acknowledged has to be there ever after. */
  async write(round: number, signal: AbortSignal): Promise<void> {
    for (let at = 0; !signal.aborted; at++) {
      const name = `written-${round}-${at}`
      const made = await this.#client
        .create(ConfigMaps, { metadata: { namespace, name } }, { signal })
        .catch(() => undefined)
      if (made === undefined) return
      this.#acknowledged.push(name)
    }
  }

  /** A namespace with things in it, which is deleted at once. */
  async deleteNamespace(round: number): Promise<void> {
    const client = this.#client
    const name = `going-${round}`
    await client.create(Namespaces, { metadata: { name } })
    const made = Array.from({ length: OBJECTS }, (_, at) =>
      client.create(ConfigMaps, { metadata: { namespace: name, name: `c-${at}` } }),
    )
    await Promise.all(made)
    await client.delete(Namespaces, { name })
  }

  /** Nothing that was acknowledged is lost, and what was deleted stays away. */
  async complete(round: number): Promise<void> {
    const { items } = await this.#client.list(ConfigMaps, { namespace })
    const there = new Set(items.map(({ metadata }) => metadata.name))
    const lost = this.#acknowledged.filter((name) => !there.has(name))
    if (lost.length > 0) this.violations.push(`round ${round}: ${lost.length} writes are lost, as ${lost[0]}`)
    for (const name of this.#acknowledged.splice(0)) await this.#client.delete(ConfigMaps, { namespace, name })
    await this.#until(`round ${round}: the namespace went`, () =>
      this.#client.get(Namespaces, { name: `going-${round}` }).then(() => false, isNotFound),
    )
  }

  /** Waits until all workloads have the requested state. */
  async settled(round: number): Promise<void> {
    const client = this.#client
    await this.#until(`round ${round}: the Deployment`, async () => {
      const { metadata, spec, status } = await client.get(Deployments, { namespace, name: 'web' })
      const counts = [status.updatedReplicas, status.availableReplicas, status.replicas]
      return status.observedGeneration === metadata.generation && counts.every((count) => count === spec.replicas)
    })
    // A watcher of pods may receive older events later, so the previous size counts until then.
    const size = this.#sizes.at(-1)
    await this.#until(`round ${round}: news of pods and sets`, () => {
      const pods = Map.groupBy(this.#web(), ({ metadata }) => metadata.ownerReferences?.[0]?.name)
      const areAlike = [...this.#sets.list()].every(
        ({ metadata, spec }) => (pods.get(metadata.name)?.length ?? 0) === spec.replicas,
      )
      return Promise.resolve(areAlike && this.#web().length === size)
    })
    this.#sizes = this.#sizes.slice(-1)
    this.#compareSets()
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
    const pods = [...this.#pods.list()].map(stateOf).join(', ')
    this.violations.push(`${what} did not come about; pods: ${pods}`)
  }
}
