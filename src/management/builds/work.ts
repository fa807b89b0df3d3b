/** Plans and runs one Operation. It may be interrupted at any moment; the next run continues. */
import { createHash } from 'node:crypto'

import type { ApiClient } from '#client/api-client.ts'
import { ProgramError } from '#lib/program.ts'
import { converge, type ConvergeOptions, type StepWatcher } from '#provision/builder/converge.ts'
import { type PlanView, viewPlan } from '#provision/builder/plan-view.ts'
import { planRemove, removeCluster } from '#provision/builder/remove.ts'
import type { Change } from '#provision/builder/session-options.ts'
import type { Session } from '#provision/builder/session.ts'
import { listSnapshots, restoreSnapshot, saveSnapshot, type SnapshotRow } from '#provision/builder/snapshots.ts'
import type { ManagementServer } from '#provision/cluster.ts'
import { readClusterFile } from '#provision/file/cluster-file.ts'
import { stepsOf } from '#provision/plan/step.ts'
import { certificateStages, keyStages } from '#provision/state/stages.ts'

import type { ClusterBuild } from '../kinds/cluster.ts'
import { MAX_STEPS, type Operation, type OperationPlan } from '../kinds/operation.ts'
import { faultLines, readBuildFile } from './build-file.ts'
import { type BuildSurroundings, type BuildTarget, type OpenBuild, openBuild } from './engine.ts'
import type { BuildSecrets } from './secrets.ts'

export interface Work {
  readonly client: ApiClient
  readonly cluster: string
  readonly build: ClusterBuild
  readonly operation: Operation
  readonly secrets: BuildSecrets
  /** Where the agents of the cluster connect. */
  readonly server: Omit<ManagementServer, 'credential'>
}

export interface WorkEvents {
  readonly say: (text: string) => void
  /** Called before anything changes, unless the plan must be approved again. */
  readonly begun: () => Promise<void>
  /** Called with the uid of the cluster's namespace kube-system. */
  readonly found: (uid: string) => Promise<void>
  readonly watcher: StepWatcher
}

export interface WorkResult {
  /** Nothing was done: the machines are not as they were when the plan was approved. */
  readonly newPlan?: OperationPlan
  /** Files that stay on machines. */
  readonly left?: readonly string[]
}

const UP = { checksPorts: true, workersOnly: false }
const ROTATION = { checksPorts: false, workersOnly: false, keepsPods: true }
const EMPTY: PlanView = { steps: [], faults: [], notes: [], text: '' }

/** Changes nothing, except that new machines' host keys are recorded. */
export async function planWork(
  work: Work,
  around: BuildSurroundings,
  say: WorkEvents['say'],
  signal: AbortSignal,
): Promise<OperationPlan> {
  const { spec } = work.operation
  if (spec.type === 'SaveSnapshot' || spec.type === 'RestoreSnapshot') {
    builtFile(work)
    return shownPlan(EMPTY)
  }
  if (spec.type === 'Remove' && work.secrets.state === undefined) return shownPlan(EMPTY)
  await using closing = new AsyncDisposableStack()
  const open = await openBuild(targetOf(work, say), around, closing, signal)
  await openApi(open)
  if (spec.type === 'Remove') {
    const plan = await planRemove(open.session, around.clock)
    const steps = stepsOf(plan).map(({ host, describe, action: { type } }) => ({ host, describe, type }))
    return shownPlan({ ...plan, steps, text: '' })
  }
  return shownPlan(await viewPlan(open.session, spec.type === 'Apply' ? UP : ROTATION, around.clock))
}

/** Rejects with ProgramError for failures that people can repair. */
export async function runWork(
  work: Work,
  around: BuildSurroundings,
  events: WorkEvents,
  signal: AbortSignal,
): Promise<WorkResult> {
  const { say, watcher } = events
  const { spec } = work.operation
  if (spec.type === 'Remove' && work.secrets.state === undefined) return { left: [] }
  await using closing = new AsyncDisposableStack()
  const open = await openBuild(targetOf(work, say), around, closing, signal)
  const bringing: ConvergeOptions = { say, watcher, clock: around.clock, signal }
  const newPlan = await otherPlan(work, open, bringing)
  if (newPlan !== undefined) return { newPlan }
  await events.begun()
  switch (spec.type) {
    case 'Apply':
      await apply(open, events, bringing)
      return {}
    case 'Remove':
      // Awaited here: the connections close after it.
      return await remove(open.session, spec.force === true, bringing)
    case 'SaveSnapshot':
      await saveSnapshot(open.session, spec.snapshot ?? '', bringing)
      return {}
    case 'RestoreSnapshot':
      await restore(open, spec.snapshot ?? '', bringing)
      await events.found(await open.uid())
      return {}
    case 'RotateCertificates':
    case 'RotateEncryptionKey':
      checkRotation(open.session, spec.type)
      await converge(open.session, ROTATION, bringing)
      return {}
  }
}

/** The snapshots by machine. */
export async function findSnapshots(
  work: Omit<Work, 'operation'>,
  around: BuildSurroundings,
  signal: AbortSignal,
): Promise<readonly { readonly host: string; readonly snapshots: readonly SnapshotRow[] }[]> {
  await using closing = new AsyncDisposableStack()
  const operation: Operation = { metadata: { name: '' }, spec: { cluster: work.cluster, type: 'SaveSnapshot' } }
  const target = targetOf({ ...work, operation }, () => undefined)
  const open = await openBuild(target, around, closing, signal)
  return await listSnapshots(open.session, signal)
}

/** The plan of now, if another one was approved. An Operation that has begun has the approval for the rest. */
async function otherPlan(
  { operation, secrets }: Work,
  open: OpenBuild,
  { clock }: ConvergeOptions,
): Promise<OperationPlan | undefined> {
  const { session } = open
  const { metadata, spec, status } = operation
  const isBegun = status?.startedAt !== undefined || secrets.operation === metadata.name
  if (spec.type !== 'Apply' || spec.approvedPlan === undefined || isBegun) return undefined
  await openApi(open)
  const plan = shownPlan(await viewPlan(session, UP, clock))
  return plan.digest === spec.approvedPlan ? undefined : plan
}

/** The folder of an Operation has no kubeconfig yet, and plans need the nodes of the cluster. */
async function openApi({ session }: OpenBuild): Promise<void> {
  if (session.before !== undefined) await session.saveKubeconfig(session.stage)
}

/** A cluster may run although a part failed, such as an addon: then its agents may connect. */
async function apply(open: OpenBuild, { found }: WorkEvents, bringing: ConvergeOptions): Promise<void> {
  try {
    await converge(open.session, UP, bringing)
  } catch (error) {
    const uid = bringing.signal.aborted ? undefined : await open.uid().catch(() => undefined)
    if (uid !== undefined) await found(uid)
    throw error
  }
  await found(await open.uid())
}

async function remove(session: Session, isForced: boolean, bringing: ConvergeOptions): Promise<WorkResult> {
  const left = await removeCluster(session, bringing)
  if (left.length > 0 && !isForced)
    throw new ProgramError(
      `Some machines could not be restored:\n  ${left.join('\n  ')}\nRepair them, or remove the cluster with force: then they keep its files.`,
    )
  return { left }
}

async function restore(open: OpenBuild, name: string, bringing: ConvergeOptions): Promise<void> {
  let first: Session | undefined = open.session
  await restoreSnapshot(
    {
      name,
      usesLocalState: false,
      open: (change) => {
        const looking = first
        first = undefined
        return looking === undefined || change !== undefined ? open.reopen(change) : Promise.resolve(looking)
      },
      toolFolders: open.toolFolders,
    },
    bringing,
  )
}

function checkRotation(session: Session, type: Operation['spec']['type']): void {
  if (session.before === undefined)
    throw new ProgramError('The cluster was never built completely: apply its file first')
  const { custom_config } = session.cluster.services['kube-api'].secrets_encryption_config
  if (type === 'RotateEncryptionKey' && custom_config !== undefined)
    throw new ProgramError('secrets_encryption_config has a custom_config: change it in the cluster file')
}

/** After the new keys are in the state, the work is to bring the machines there; another rotation would make others. */
function changeOf({ operation: { metadata, spec }, secrets }: Work): Change | undefined {
  if (secrets.operation === metadata.name) return undefined
  const { service, rotatesAuthorities: authorities = false } = spec
  if (spec.type === 'RotateEncryptionKey') return keyStages
  if (spec.type !== 'RotateCertificates') return undefined
  const rotation = { authorities, ...(service !== undefined && { service }) }
  return (cluster, current, tools) => certificateStages(cluster, current, rotation, tools)
}

function targetOf(work: Work, say: WorkEvents['say']): BuildTarget {
  const { client, cluster: name, operation, secrets, server } = work
  const isBegun = secrets.operation === operation.metadata.name
  const file = operation.spec.type === 'Apply' && !isBegun ? wantedFile(work) : builtFile(work)
  const { cluster, faults } = readClusterFile(file)
  if (cluster === undefined) throw new ProgramError(`The cluster file is invalid:\n${faultLines(faults).join('\n')}`)
  const management: ManagementServer = { ...server, credential: secrets.credential }
  const managed = { ...cluster, management }
  const change = changeOf(work)
  return { client, name, cluster: managed, file, operation: operation.metadata.name ?? '', secrets, change, say }
}

function wantedFile({ build, secrets }: Work): string {
  const { text, faults } = readBuildFile(build, secrets.fields)
  if (faults.length > 0) throw new ProgramError(`The cluster file is invalid:\n${faultLines(faults).join('\n')}`)
  return text
}

/** A file that is not applied yet has no part in other work. */
function builtFile({ secrets }: Work): string {
  if (secrets.file === undefined || secrets.state === undefined)
    throw new ProgramError('There is no cluster yet: apply its file first')
  return secrets.file
}

function shownPlan({ steps, faults, notes }: PlanView): OperationPlan {
  const short = steps.map(({ host, describe }) => ({ host, describe }))
  const digest = createHash('sha256').update(JSON.stringify(short)).digest('hex').slice(0, 16)
  const more = Math.max(0, short.length - MAX_STEPS)
  return { digest, steps: short.slice(0, MAX_STEPS), faults, notes, ...(more > 0 && { more }) }
}
