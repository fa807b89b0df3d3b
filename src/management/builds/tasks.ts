/**
 * The asynchronous tasks of the controller: each plans or runs one Operation and records the outcome. They never
 * reject.
 */
import { exponentialDelayMs } from '#lib/backoff.ts'
import { readKnownHosts } from '#provision/ssh/known-hosts.ts'

import { type Cluster, Clusters, type ClusterStatus } from '../kinds/cluster.ts'
import { type Operation, Operations, type OperationType } from '../kinds/operation.ts'
import type { BuildContext } from './context.ts'
import { explainFailure } from './explain.ts'
import { Recorder, type StatusChange } from './recorder.ts'
import { createRedaction } from './redact.ts'
import { type BuildSecrets, readSecrets } from './secrets.ts'
import { planWork, runWork, type Work } from './work.ts'

const RETRY = { baseMs: 30_000, capMs: 600_000 }
/** Nothing is half done after a failure, so people decide whether to try again. */
const TRIED_ONCE: ReadonlySet<OperationType> = new Set(['SaveSnapshot'])
const MAX_MESSAGE = 16_000

interface Task {
  readonly cluster: Cluster
  readonly operation: Operation
  readonly context: BuildContext
  readonly signal: AbortSignal
}

export async function planOperation(task: Task): Promise<void> {
  await recorded(task, async ({ work, recorder }) => {
    const { around } = task.context.builds
    const endStage = recorder.begin('Planning', 'Read the machines and compute the steps')
    await recorder.write({ phase: 'Pending', message: '', retryAt: null })
    const planning = planWork(work, around, (text) => recorder.say(text), task.signal)
    const plan = await planning.catch((error: Error) => {
      endStage(error)
      throw error
    })
    endStage(plan.faults.length === 0 ? undefined : new Error(plan.faults.join('\n')))
    const retries = { retries: task.operation.spec.retries ?? 0, endedAt: null }
    if (plan.faults.length === 0) {
      recorder.say(`Planned ${plan.steps.length} steps.`)
      return { phase: 'Planned', plan, message: '', failures: 0, retryAt: null, ...retries }
    }
    const message = explainFailure(`Nothing was changed:\n${plan.faults.join('\n')}`)
    recorder.say(message)
    return { plan, ...failureOf(task, message) }
  })
}

export async function runOperation(task: Task): Promise<void> {
  const { context, operation, cluster } = task
  await recorded(task, async ({ work, recorder }) => {
    const startedAt = operation.status?.startedAt ?? now(context)
    recorder.say(operation.status?.startedAt === undefined ? `${operation.spec.type} begins.` : 'It continues.')
    const events = {
      say: (text: string) => recorder.say(text),
      begun: () => recorder.write({ startedAt }),
      found: (uid: string) => recordUid(context, cluster, uid),
      watcher: recorder.watcher,
    }
    const began = { phase: 'Running', message: '', retryAt: null, retries: operation.spec.retries ?? 0 } as const
    await recorder.write(began)
    const { newPlan, left } = await runWork(work, context.builds.around, events, task.signal)
    if (newPlan !== undefined) {
      const message = 'The machines have changed since the plan was approved: approve the new plan.'
      recorder.say(message)
      // First, because the old approval must not apply to the new plan.
      const value = { spec: { approved: null, approvedPlan: null } }
      await context.client.patch(Operations, { name: operation.metadata.name ?? '' }, { type: 'merge', value })
      return { phase: 'Planned', plan: newPlan, message }
    }
    await recordCluster(task, work)
    recorder.say('Done.')
    context.log.info('Operation succeeded', { cluster: cluster.metadata.name, operation: operation.metadata.name })
    return {
      phase: 'Succeeded',
      message: '',
      failures: 0,
      endedAt: now(context),
      ...(left !== undefined && { left }),
    }
  })
}

interface TaskTools {
  readonly work: Work
  readonly recorder: Recorder
}

/** Writes the change that the task resolves to, or its failure. A stopped task changes nothing. */
async function recorded(task: Task, run: (tools: TaskTools) => Promise<StatusChange>): Promise<void> {
  const { context, operation, cluster, signal } = task
  const { client, clock, log } = context
  const names = { cluster: cluster.metadata.name, operation: operation.metadata.name }
  try {
    const secrets = await readSecrets(client, cluster.metadata.name ?? '')
    if (secrets === undefined) throw new Error('The Secret with the keys of the cluster is missing')
    const redact = redactionOf(secrets)
    const recorder = await Recorder.open({ client, clock, log, operation, redact })
    const work = workOf(task, secrets)
    const change = await run({ work, recorder }).catch((error: unknown): StatusChange => {
      if (signal.aborted) {
        recorder.say('It was stopped.')
        return {}
      }
      const message = redact(explainFailure((error as Error).message))
      recorder.say(`FAILED: ${message}`)
      log.info('Failed to complete a step of a cluster operation', { ...names, err: message })
      return failureOf(task, message)
    })
    await recorder.write(change)
  } catch (error) {
    // The API of the server itself has failed: the next reconcile tries again.
    if (!signal.aborted) log.error(error, 'Failed to read or write a cluster operation', names)
  }
}

function workOf({ cluster, operation, context }: Task, secrets: BuildSecrets): Work {
  const { serverUrl, ca } = context.builds
  return {
    client: context.client,
    cluster: cluster.metadata.name ?? '',
    build: cluster.spec.build ?? {},
    operation,
    secrets,
    server: { url: serverUrl(), certificateAuthority: ca() ?? '' },
  }
}

export function redactionOf({ sshKey, credential, fields }: BuildSecrets): (text: string) => string {
  return createRedaction([sshKey, credential, fields])
}

function failureOf({ operation, context }: Task, message: string): StatusChange {
  const failures = (operation.status?.failures ?? 0) + 1
  const isLast = TRIED_ONCE.has(operation.spec.type)
  const delayMs = exponentialDelayMs(RETRY, failures - 1)
  const next = isLast
    ? { retryAt: null, endedAt: now(context) }
    : { retryAt: new Date(context.clock.now() + delayMs).toISOString() }
  const retries = operation.spec.retries ?? 0
  return { phase: 'Failed', message: message.slice(0, MAX_MESSAGE), failures, retries, ...next }
}

/** Agents connect with the uid of the namespace kube-system of their cluster. */
async function recordUid({ client }: BuildContext, { metadata }: Cluster, uid: string): Promise<void> {
  const where = { name: metadata.name ?? '', subresource: 'status' }
  await client.patch(Clusters, where, { type: 'merge', value: { status: { uid } } })
}

async function recordCluster({ context, cluster, operation }: Task, { cluster: name }: Work): Promise<void> {
  const secrets = await readSecrets(context.client, name)
  const hostKeys = readKnownHosts(secrets?.knownHosts ?? '')
  const isApplied = operation.spec.type === 'Apply' && operation.spec.file !== undefined
  const build: ClusterStatus['build'] = {
    ...(context.cache.get(Clusters, name) ?? cluster).status?.build,
    hostKeys,
    ...(isApplied && { applied: operation.spec.file, appliedAt: now(context) }),
  }
  const value = { status: { build } }
  await context.client.patch(Clusters, { name, subresource: 'status' }, { type: 'merge', value })
}

function now({ clock }: BuildContext): string {
  return new Date(clock.now()).toISOString()
}
