/** The controller of built clusters: plans and runs their Operations, one at a time for each cluster. */
import { aborted } from '#lib/abort.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { type Controller, itself, related, rule } from '#reconcile/controller.ts'

import { type ManagementSettings, writeStatus } from '../clusters/cluster-status.ts'
import { type Cluster, type ClusterBuild, Clusters } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { type Operation, Operations } from '../kinds/operation.ts'
import { divideFile, faultLines, fileDigest, readBuildFile } from './build-file.ts'
import { buildConditions, type BuildState } from './conditions.ts'
import {
  BUILD_FINALIZER,
  type BuildContext,
  type BuildServices,
  CHANGED_BY_ANNOTATION,
  FORCE_ANNOTATION,
  operationName,
} from './context.ts'
import { currentOperation, decide, type Decision, isEnded } from './decide.ts'
import { clearWork } from './engine.ts'
import { outdated } from './history.ts'
import { patchStatus } from './recorder.ts'
import { type BuildSecrets, clusterOwner, deleteSecrets, ensureSecrets } from './secrets.ts'
import { planOperation, runOperation } from './tasks.ts'

/** Other clusters occupy this process. */
const BUSY_MS = 5000
/** Operations of removed clusters are deleted some day. */
const HISTORY_MS = 3_600_000

export function createBuildController(builds: BuildServices): Controller<ManagementSettings> {
  return {
    name: 'cluster-build-controller',
    watches: [itself(Clusters), related(Operations, ({ spec }) => [spec.cluster])],
    rules: [
      rule(GROUP, 'clusters clusters/status operations operations/status', 'get list watch create update patch delete'),
      rule('', 'secrets', 'get create patch delete'),
    ],
    async reconcile(key, context) {
      const cluster = context.cache.get(Clusters, key)
      const operations = operationsOf(key, context)
      for (const { metadata } of outdated(operations, cluster !== undefined, context.clock.now()))
        await ignoreMissing(context.client.delete(Operations, { name: metadata.name ?? '' }))
      const own = { ...context, builds }
      if (cluster?.spec.build === undefined) return endOrphans(operations, own)
      return next(cluster, cluster.spec.build, own)
    },
    async run(context) {
      await clearWork(builds.around.folder)
      await aborted(context.signal)
      await builds.runner.ended()
    },
  }
}

/** Operations of clusters that do not exist, or that the server did not build. */
async function endOrphans(
  operations: readonly Operation[],
  context: BuildContext,
): Promise<{ requeueAfterMs: number } | undefined> {
  const message = 'There is no such cluster that the server builds.'
  for (const operation of operations)
    if (!isEnded(operation)) await end(operation, { phase: 'Cancelled', message }, context)
  return operations.length > 0 ? { requeueAfterMs: HISTORY_MS } : undefined
}

function operationsOf(cluster: string, { cache }: Pick<BuildContext, 'cache'>): readonly Operation[] {
  return [...cache.list(Operations)].filter(({ spec }) => spec.cluster === cluster)
}

async function next(
  cluster: Cluster,
  build: ClusterBuild,
  context: BuildContext,
): Promise<{ requeueAfterMs: number } | undefined> {
  const { metadata } = cluster
  const isLeaving = metadata.deletionTimestamp !== undefined
  if (!isLeaving && metadata.finalizers?.includes(BUILD_FINALIZER) !== true) {
    const finalizers = [...(metadata.finalizers ?? []), BUILD_FINALIZER]
    await context.client.update(Clusters, { ...cluster, metadata: { ...metadata, finalizers } })
    return undefined
  }
  const { random } = context
  const secrets = await ensureSecrets(context.client, cluster, { random })
  const name = metadata.name ?? ''
  await writeFirstStatus(operationsOf(name, context), context)
  const state = stateOf(cluster, build, operationsOf(name, context), secrets)
  await writeBuildStatus(cluster, state, secrets, context)
  // Read again together with the active one, because an Operation may have ended in the meantime.
  const operations = operationsOf(name, context)
  const decision = decide({
    ...state,
    operations,
    isLeaving,
    isForced: metadata.annotations?.[FORCE_ANNOTATION] === 'true',
    active: context.builds.runner.active(name),
    nowMs: context.clock.now(),
  })
  return act(decision, { cluster, operations, context })
}

function stateOf(
  { status }: Cluster,
  build: ClusterBuild,
  operations: readonly Operation[],
  { fields }: BuildSecrets,
): BuildState {
  const invalid = problemOf(build, fields)
  return {
    file: invalid === undefined ? fileDigest(build) : undefined,
    invalid,
    applied: status?.build?.applied,
    isAutomatic: build.approval === 'Automatic',
    operations,
  }
}

/** Objects that kubectl created were not checked before. */
function problemOf(build: ClusterBuild, fields: BuildSecrets['fields']): string | undefined {
  const secret = Object.keys(divideFile(build).secrets)
  if (secret.length > 0)
    return `Keys and passwords are not allowed in the Cluster: ${secret.join(', ')}. Send the file to PUT /v3/clusters/<cluster>/build, which keeps them in a Secret.`
  const { faults } = readBuildFile(build, fields)
  return faults.length === 0 ? undefined : faultLines(faults).join('\n')
}

/** Until an Operation is planned, its status says what it waits for. */
async function writeFirstStatus(operations: readonly Operation[], { client }: BuildContext): Promise<void> {
  const current = currentOperation(operations)?.metadata.name
  for (const operation of operations.filter(({ status }) => status?.phase === undefined)) {
    const { name, resourceVersion = '' } = operation.metadata
    const message = name === current ? 'It is planned next.' : `It waits for operation ${current}.`
    await ignoreStale(patchStatus(client, operation, { phase: 'Pending', message }, resourceVersion))
  }
}

async function writeBuildStatus(
  { metadata, status }: Cluster,
  state: BuildState,
  { sshPublicKey }: BuildSecrets,
  context: BuildContext,
): Promise<void> {
  const operation = currentOperation(state.operations)?.metadata.name
  const { operation: _, sshPublicKey: __, ...before } = status?.build ?? {}
  const build = {
    ...before,
    ...(sshPublicKey !== '' && { sshPublicKey }),
    ...(operation !== undefined && { operation }),
  }
  await writeStatus(context, metadata.name ?? '', { found: { build }, conditions: buildConditions(state) })
}

interface Acting {
  readonly cluster: Cluster
  readonly operations: readonly Operation[]
  readonly context: BuildContext
}

async function act(decision: Decision, acting: Acting): Promise<{ requeueAfterMs: number } | undefined> {
  const { cluster, operations, context } = acting
  const { name = '' } = cluster.metadata
  const { client, builds, signal } = context
  if (decision.do === 'wait') return decision.ms === undefined ? undefined : { requeueAfterMs: decision.ms }
  if (decision.do === 'create') return create(decision, acting)
  if (decision.do === 'release') return release(cluster, context)
  if (decision.do === 'stop') {
    builds.runner.stop(name)
    return undefined
  }
  const operation = operations.find(({ metadata }) => metadata.name === decision.operation)
  if (operation === undefined) return undefined
  if (decision.do === 'end') return end(operation, decision, context)
  if (decision.do === 'force') {
    const value = { spec: { force: true, retries: (operation.spec.retries ?? 0) + 1 } }
    await client.patch(Operations, { name: decision.operation }, { type: 'merge', value })
    return undefined
  }
  const task = decision.do === 'plan' ? planOperation : runOperation
  const isStarted = builds.runner.start(
    { cluster: name, operation: decision.operation, signal },
    (stopping) => task({ cluster, operation, context, signal: stopping }),
    () => context.enqueue(name),
  )
  return isStarted ? undefined : { requeueAfterMs: BUSY_MS }
}

async function create(
  { type, file }: Extract<Decision, { do: 'create' }>,
  { cluster, context }: Acting,
): Promise<undefined> {
  const { name = '', annotations = {} } = cluster.metadata
  const requestedBy = annotations[CHANGED_BY_ANNOTATION]
  // The Operation of a removal outlives the cluster: it says what is left.
  const isRemoval = type === 'Remove'
  await context.client.create(Operations, {
    metadata: { name: operationName(context), ...(!isRemoval && { ownerReferences: [clusterOwner(cluster)] }) },
    spec: {
      cluster: name,
      type,
      ...(file !== undefined && { file }),
      ...(requestedBy !== undefined && { requestedBy }),
      // The deletion of the Cluster is the approval.
      ...(isRemoval && { approved: true, force: annotations[FORCE_ANNOTATION] === 'true' }),
    },
  })
  return undefined
}

async function end(
  operation: Operation,
  { phase, message }: Pick<Extract<Decision, { do: 'end' }>, 'phase' | 'message'>,
  { client, clock }: BuildContext,
): Promise<undefined> {
  const endedAt = new Date(clock.now()).toISOString()
  await ignoreMissing(patchStatus(client, operation, { phase, message, endedAt, retryAt: null }))
  return undefined
}

async function release({ metadata }: Cluster, { client, cache }: BuildContext): Promise<undefined> {
  const { name = '' } = metadata
  const current = cache.get(Clusters, name)?.metadata.finalizers ?? []
  const finalizers = current.filter((one) => one !== BUILD_FINALIZER)
  await ignoreMissing(client.patch(Clusters, { name }, { type: 'merge', value: { metadata: { finalizers } } }))
  // At once: the garbage collector may take a while.
  await ignoreMissing(deleteSecrets(client, name))
  return undefined
}

/** A task may have written a later status. */
async function ignoreStale(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

async function ignoreMissing(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
