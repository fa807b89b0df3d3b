/**
 * Starts the cluster for replays: in this process, with a virtual clock, the same at each start. Time passes while a
 * command runs and until the cluster has settled, so that each line sees the effects of earlier lines.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { startCluster, type TestCluster } from '#testing/public-api.ts'

import type { Answer } from './answers.ts'
import { type Cluster, furnish, openCluster } from './cluster.ts'
import { maskedOutcome, type Names } from './masks.ts'
import { type Line, lineOf, type Scene } from './scene.ts'
import { type Kubectl, type Workspace, run } from './sides.ts'

const NODES = ['node-0', 'node-1', 'node-2', 'node-3'].map((name) => ({ name }))
const REPOSITORY = join(import.meta.dirname, '..', '..', '..')
/** Without metrics the autoscaler fails again and again. */
const CONTROLLERS = ['*', '-horizontal-pod-autoscaler-controller']
/** Events stay, however long upstream's kubectl takes. */
const SETTINGS = { 'event-ttl': 365 * 24 * 3_600_000 }
/** Virtual time passes a hundred times faster than real time. */
const STEP = '200ms'
const PAUSE_MS = 2

/** Commands that change nothing, so that nothing has to settle after them. */
const READING: ReadonlySet<string> = new Set(
  'get describe explain events version api-versions api-resources top logs diff cluster-info options config completion kuberc plugin __complete __completeNoDesc'.split(
    ' ',
  ),
)

export class Stage implements AsyncDisposable {
  readonly #cluster: TestCluster
  readonly #workspaces: Cluster
  readonly #kubectl: Kubectl
  #shown: Workspace | undefined

  /** Use `openStage`. */
  constructor(cluster: TestCluster, workspaces: Cluster, kubectl: Kubectl) {
    this.#cluster = cluster
    this.#workspaces = workspaces
    this.#kubectl = async (call) => {
      const running = kubectl(call)
      await this.#passTime(running)
      return running
    }
  }

  async furnish(): Promise<void> {
    await furnish(this.#kubectl, await this.#workspaces.workspace(0, 'default'))
    await this.#cluster.settle()
    this.#shown = await this.#workspaces.workspace(0, 'shown')
  }

  /** Runs all lines of the scene; lines that only prepare have no answer. */
  async play(scene: Scene): Promise<Answer[]> {
    const workspace = scene.mode === 'reads' ? this.#shown : await this.#openWorkspace(scene)
    if (workspace === undefined) throw new Error('The stage is not furnished')
    const answers: Answer[] = []
    for (const written of scene.lines) {
      const line = lineOf(written)
      const outcome = await run(this.#kubectl, line, workspace)
      const answer = { line: line.text, ...maskedOutcome(outcome, line.args, 'recorded', this.#namesOf(workspace)) }
      if (!line.prepares) answers.push(answer)
      if (changes(line)) await this.#cluster.settle({ quiet: '2s', limit: '2m' }).catch(() => undefined)
    }
    return answers
  }

  async #openWorkspace({ name }: Scene): Promise<Workspace> {
    const namespace = `twin-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`
    const workspace = await this.#workspaces.workspace(0, namespace)
    await run(this.#kubectl, lineOf('create ns $NS'), workspace)
    await run(this.#kubectl, lineOf('wait --for=create sa/default cm/kube-root-ca.crt --timeout=20s'), workspace)
    return workspace
  }

  #namesOf({ folder, namespace, cache, kinds }: Workspace): Names {
    const own: Names = namespace === 'shown' ? [] : [[namespace, 'NAMESPACE']]
    const port = `:${new URL(this.#cluster.url).port}`
    return [
      [cache, 'CACHE'],
      [folder, 'FOLDER'],
      [kinds, 'KINDS'],
      [REPOSITORY, 'REPOSITORY'],
      [port, ':SERVER-PORT'],
      ...own,
    ]
  }

  async #passTime(running: Promise<unknown>): Promise<void> {
    const state = { isOver: false }
    const end = (): void => void (state.isOver = true)
    running.then(end, end)
    for (;;) {
      await sleep(realClock, PAUSE_MS)
      if (state.isOver) return
      await this.#cluster.clock.advance(STEP)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#workspaces.stop()
    await this.#cluster.stop()
  }
}

function changes({ args }: Line): boolean {
  return !READING.has(args[0] ?? '') && !args.includes('--help')
}

/** Starts the cluster with the objects of `manifests/objects.yaml`; all lines run with this kubectl, which may use virtual time. */
export async function openStage(kubectlAt: (now: () => number) => Kubectl): Promise<Stage> {
  const cluster = await startCluster({
    nodes: NODES,
    clock: 'virtual',
    controllers: CONTROLLERS,
    serverSettings: SETTINGS,
  })
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-stage-'))
  const file = join(folder, 'kubeconfig')
  await writeFile(file, cluster.kubeconfig, { mode: 0o600 })
  const workspaces = await openCluster(file)
  const stop = async (): Promise<void> => {
    await workspaces.stop()
    await rm(folder, { recursive: true, force: true })
  }
  const kubectl = kubectlAt(() => cluster.clock.now().getTime())
  const stage = new Stage(cluster, { ...workspaces, stop }, kubectl)
  await stage.furnish()
  return stage
}
