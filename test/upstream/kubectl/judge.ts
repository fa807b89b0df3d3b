/** Runs scenes (lists of command lines) with our kubectl and with upstream's and compares the output of each line. */
import { realClock, sleep } from '#lib/clock.ts'

import { HYPERKUBE } from '../ours.ts'
import { upstreamPrograms } from '../programs.ts'
import { type Cluster, furnish, openCluster } from './cluster.ts'
import { LISTED } from './listed.ts'
import { differencesOf, type Names } from './masks.ts'
import { chosen, type Choice } from './sample.ts'
import { type Line, lineOf, type Scene } from './scene.ts'
import { everyScene } from './scenes.ts'
import { type Kubectl, type Outcome, type Workspace, program, run, withinThisProcess } from './sides.ts'

export interface Verdict {
  readonly scene: string
  readonly line: string
  readonly args: readonly string[]
  /** None when they are the same. */
  readonly differences: readonly string[]
  /** Why the difference stays. */
  readonly listed?: string
  /** Upstream's and ours. */
  readonly outcomes: readonly [Outcome, Outcome]
}

export interface JudgeOptions extends Choice {
  /** Scenes under way at a time. */
  readonly jobs: number
  /** Ours as a process of its own. */
  readonly asProgram: boolean
  /** Of a cluster that runs already. */
  readonly kubeconfig?: string
}

interface Court {
  readonly cluster: Cluster
  readonly upstream: Kubectl
  readonly ours: Kubectl
  readonly told: (verdict: Verdict) => void
}

/** A workspace for each side. */
type WorkspacePair = readonly [Workspace, Workspace]

export async function judge(options: JudgeOptions, told: (verdict: Verdict) => void): Promise<Verdict[]> {
  const { kubectl } = await upstreamPrograms(['kubectl'], () => undefined)
  const cluster = await openCluster(options.kubeconfig)
  const verdicts: Verdict[] = []
  const court = {
    cluster,
    upstream: program(kubectl),
    ours: options.asProgram ? program(HYPERKUBE, ['kubectl']) : withinThisProcess,
    told: (verdict: Verdict) => {
      verdicts.push(verdict)
      told(verdict)
    },
  }
  try {
    await furnish(court.upstream, await cluster.workspace(0, 'default'))
    const scenes = chosen(await everyScene(), options)
    await inParallel(scenes.filter(({ mode }) => mode === 'reads').flatMap(pieces), options.jobs, (scene) =>
      reads(court, scene),
    )
    await inParallel(
      scenes.filter(({ mode }) => mode === 'twins'),
      options.jobs,
      (scene) => twins(court, scene),
    )
    // These scenes change cluster-scoped objects, so they run alone.
    await inParallel(
      scenes.filter(({ mode }) => mode === 'turns'),
      1,
      (scene) => turns(court, scene),
    )
  } finally {
    await cluster.stop()
  }
  return verdicts
}

async function inParallel<T>(items: readonly T[], jobs: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values()
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: jobs }, worker))
}

/** Lines that only look do not need each other. */
function pieces(scene: Scene): Scene[] {
  return scene.lines.map((line) => ({ ...scene, lines: [line] }))
}

const shownWorkspaces = new WeakMap<Cluster, Promise<WorkspacePair>>()

async function reads(court: Court, scene: Scene): Promise<void> {
  const { cluster } = court
  const workspaces =
    shownWorkspaces.get(cluster) ?? Promise.all([cluster.workspace(0, 'shown'), cluster.workspace(1, 'shown')])
  shownWorkspaces.set(cluster, workspaces)
  await lineByLine(court, scene, await workspaces)
}

let twinsMade = 0

async function twins(court: Court, scene: Scene): Promise<void> {
  const number = String(twinsMade++).padStart(3, '0')
  const names = [`twin-a-${number}`, `twin-b-${number}`] as const
  const workspaces = await Promise.all([court.cluster.workspace(0, names[0]), court.cluster.workspace(1, names[1])])
  await Promise.all(workspaces.map((workspace) => openNamespace(court, workspace)))
  await lineByLine(court, scene, workspaces)
  await run(court.upstream, lineOf(`delete ns ${names.join(' ')} --wait=false`), workspaces[0])
}

async function openNamespace({ upstream }: Court, workspace: Workspace): Promise<void> {
  await run(upstream, lineOf('create ns $NS'), workspace)
  await run(upstream, lineOf('wait --for=create sa/default cm/kube-root-ca.crt --timeout=20s'), workspace)
}

async function lineByLine(court: Court, scene: Scene, workspaces: WorkspacePair): Promise<void> {
  for (const written of scene.lines) {
    const line = lineOf(written)
    if (line.prepares) await Promise.all(workspaces.map((workspace) => run(court.upstream, line, workspace)))
    else await compare(court, scene, line, workspaces)
  }
}

/** The commands that change nothing. */
const LOOKS: ReadonlySet<string> = new Set(
  'get describe explain events version api-versions api-resources top logs diff cluster-info options'.split(' '),
)
const LOOKS_AGAIN = 6
const PAUSE_MS = 250

async function compare(court: Court, scene: Scene, line: Line, workspaces: WorkspacePair): Promise<void> {
  for (let again = LOOKS.has(line.args[0] ?? '') ? LOOKS_AGAIN : 0; ; again--) {
    const outcomes = await Promise.all([run(court.upstream, line, workspaces[0]), run(court.ours, line, workspaces[1])])
    const verdict = verdictOf(scene, line, workspaces, outcomes)
    if (verdict.differences.length === 0 || verdict.listed !== undefined || again === 0) return court.told(verdict)
    await sleep(realClock, PAUSE_MS)
  }
}

function verdictOf(
  scene: Scene,
  line: Line,
  workspaces: WorkspacePair,
  [theirs, ours]: readonly [Outcome, Outcome],
): Verdict {
  const names = [namesOf(workspaces[0]), namesOf(workspaces[1])] as const
  const differences = differencesOf({ mode: scene.mode, args: line.args, theirs, ours, names })
  const listed = differences.length === 0 ? undefined : LISTED.find(({ lines }) => lines.test(line.text))?.reason
  return {
    scene: scene.name,
    line: line.text,
    args: line.args,
    differences,
    outcomes: [theirs, ours],
    ...(listed !== undefined && { listed }),
  }
}

function namesOf({ folder, namespace, cache }: Workspace): Names {
  const own: Names = /^t(?:win|urn)-/.test(namespace) ? [[namespace, 'NAMESPACE']] : []
  return [[cache, 'CACHE'], [folder, 'FOLDER'], ...own]
}

async function turns(court: Court, scene: Scene): Promise<void> {
  const lines = scene.lines.map(lineOf)
  const namespace = `turn-${String(twinsMade++).padStart(3, '0')}`
  const workspaces: Workspace[] = []
  const heard: Outcome[][] = []
  for (const [side, kubectl] of [court.upstream, court.ours].entries()) {
    const workspace = { ...(await court.cluster.workspace(side as 0 | 1, namespace)), node: 'node-0' }
    await openNamespace(court, workspace)
    const outcomes: Outcome[] = []
    for (const line of lines) outcomes.push(await run(line.prepares ? court.upstream : kubectl, line, workspace))
    await run(court.upstream, lineOf('delete ns $NS'), workspace)
    workspaces.push(workspace)
    heard.push(outcomes)
  }
  for (const [at, line] of lines.entries()) {
    if (line.prepares) continue
    const [theirs, ours] = [heard[0]?.[at], heard[1]?.[at]] as [Outcome, Outcome]
    court.told(verdictOf(scene, line, workspaces as unknown as WorkspacePair, [theirs, ours]))
  }
}
