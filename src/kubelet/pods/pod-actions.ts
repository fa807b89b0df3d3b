/** Executes the actions of a pod's plan and records their results in the pod's state. */
import { messageText } from '#cri/call-text.ts'
import { SANDBOX_STATE } from '#cri/codes.ts'
import { exponentialDelayMs, type Growth, jitteredMs } from '#lib/backoff.ts'

import { RETRY_MS } from '../pod/back-off.ts'
import { isRunning } from '../pod/container-runs.ts'
import { refusalOf } from '../pod/pod-admission.ts'
import { resetRecords } from '../pod/restart-all.ts'
import { resetForNewSandbox } from '../pod/sandbox-change.ts'
import { observeContainers, removeContainers } from './containers/container-records.ts'
import { stopContainer } from './containers/container-stopper.ts'
import { runContainer } from './containers/run-container.ts'
import { removeAll, stopSandboxes } from './pod-cleanup.ts'
import { type PodContext, publish } from './pod-context.ts'
import { type Action, planPod, type PodObservation } from './pod-plan.ts'
import { adoptSandbox, createSandbox } from './pod-sandbox.ts'
import { publishIps, uidOf } from './pod-state.ts'
import { allocateResize, applyResize, completeResize } from './resize-pod.ts'

type Wait = Extract<Action, { readonly type: 'wait' }>

/** Returns false when the action has failed, so that the sync ends and is retried. */
type Perform<T extends Action['type']> = (
  context: PodContext,
  action: Extract<Action, { readonly type: T }>,
) => Promise<boolean | void> | boolean | void

/** Plans and acts, stage by stage. Returns when the next sync is due. */
export async function syncPod(context: PodContext): Promise<Wait> {
  const { host, state } = context
  state.stage = 'admission'
  state.startedCount = 0
  await observePod(context)
  for (;;) {
    for (const action of planPod(state, observationOf(context), host.clock.now())) {
      if (action.type === 'wait') return action
      if ((await perform(context, action)) === false) return { type: 'wait', untilMs: retryAtMs(context) }
    }
  }
}

/** Updates the state from the runtime. */
async function observePod(context: PodContext): Promise<void> {
  await adoptSandbox(context)
  await observeContainers(context)
  publishIps(context.state)
  context.probes.watch()
}

function observationOf({ host, state, writer }: PodContext): PodObservation {
  const { pod } = state
  const [newest] = host.pleg.of(uidOf(state)).sandboxes
  return {
    sandbox: newest && { id: newest.id, isReady: newest.state === SANDBOX_STATE.ready },
    phase: writer.latest.phase,
    pullRetryMs: (image) => host.puller.retryAtMs(pod, image),
  }
}

/**
 * Back-off of volume mounts, whose sources often appear shortly after the pod. The first delays are upstream's; later
 * ones are capped at RETRY_MS instead of two minutes.
 */
const MOUNT_BACKOFF: Growth = { baseMs: 500, capMs: RETRY_MS }

/** Time of the next attempt after a failure. */
function retryAtMs({ host: { clock, random }, state: { mountFailures } }: PodContext): number {
  const delayMs = mountFailures === 0 ? RETRY_MS : exponentialDelayMs(MOUNT_BACKOFF, mountFailures - 1)
  return clock.now() + jitteredMs(random, delayMs, delayMs === RETRY_MS ? 0.5 : 0)
}

export function perform(context: PodContext, action: Action): ReturnType<Perform<Action['type']>> {
  return (ACTIONS[action.type] as Perform<Action['type']>)(context, action)
}

const ACTIONS: { readonly [T in Action['type']]: Perform<T> } = {
  enter: ({ state }, { stage }) => void (state.stage = stage),
  wait: () => undefined,
  publish: (context, { hasSandbox }) => publish(context, hasSandbox),
  'record-event': ({ host, state }, { event }) => host.recordEvent(state.pod, event),
  admit,
  fail: ({ host, state }, { verdict, event }) => {
    state.verdict = verdict
    host.recordEvent(state.pod, event)
  },

  'allocate-resize': (context) => void allocateResize(context),
  'apply-resize': (context) => applyResize(context),
  'complete-resize': (context) => completeResize(context),

  'begin-restart-all': ({ state }) => void (state.isRestartingAll = true),
  'remove-containers': (context, { record }) => removeContainers(context, record),
  'finish-restart-all': ({ host, state }, { records }) => {
    resetRecords(records, host.clock.now())
    state.isRestartingAll = false
  },

  'request-restart': ({ state }, { record, why }) => {
    record.mustRestart = true
    record.restarts = undefined
    state.killRequests.set(record, { why })
  },
  stop: async (context, { stops }) => {
    for (const { record } of stops) if (!isRunning(record)) context.state.killRequests.delete(record)
    await Promise.all(stops.filter(({ record }) => isRunning(record)).map((each) => stopContainer(context, each)))
  },
  'leave-sandbox': async ({ host, state }, { id, isReplaced }) => {
    await host.runtime.stopPodSandbox({ podSandboxId: id })
    state.leftSandbox = id
    state.sandbox = undefined
    state.publishedIps = []
    if (isReplaced) resetForNewSandbox(state.pod.spec, state.records)
  },

  'mount-volumes': mountVolumes,
  'prepare-claims': ({ host, state }) =>
    attempt(host.containerManager.prepare(state.pod), (error) => {
      const message = `Failed to prepare dynamic resources: ${messageText(error)}`
      host.recordEvent(state.pod, { type: 'Warning', reason: 'FailedPrepareDynamicResources', message })
    }),
  'create-cgroup': ({ host, state }) =>
    attempt(host.cgroups.ensure(state.pod, host.containerManager.hasExclusiveCpus(uidOf(state))), (error) => {
      const message = `unable to ensure pod container exists: ${messageText(error)}`
      host.recordEvent(state.pod, { type: 'Warning', reason: 'FailedCreatePodContainer', message })
    }),
  'create-sandbox': (context) => createSandbox(context),
  start: async (context, { record }) => {
    const { host, state } = context
    const result = await runContainer(context, record)
    if (result === 'running') state.startedCount++
    if (typeof result === 'string') return
    await host.pleg.relist()
    await observePod(context)
    record.waiting = { reason: result.reason, message: result.message }
  },
  'watch-probes': ({ probes }) => probes.watch(),

  'begin-end': ({ state, probes }, { sinceMs }) => {
    state.endingSinceMs ??= sinceMs
    probes.endLivenessAndStartup()
  },
  'stop-sandboxes': ({ host, state }) => stopSandboxes(host, uidOf(state), state.sandbox?.id),
  'remove-cgroup': ({ host, state }) => host.cgroups.remove(state.pod),
  'end-probes': ({ probes }) => probes.end(),
  'report-end': ({ state, ended }) => {
    state.hasEnded = true
    ended.resolve()
  },
  'unmount-volumes': async ({ host, state, unmounted }) => {
    await host.volumes.unmount(uidOf(state))
    unmounted.resolve()
  },
  'release-resources': async ({ host, state }) => {
    await host.containerManager.release(uidOf(state))
    host.admission.release(state.pod)
  },
  'settle-status': ({ writer }) => writer.settled(),
  'delete-pod': ({ writer, state }) => writer.remove(state.pod),
  'remove-pod': async ({ host, state, gone }) => {
    const uid = uidOf(state)
    await removeAll(host, uid, state.sandbox?.id)
    host.puller.forget(state.pod)
    host.allocations.remove(uid)
    state.isOver = true
    gone()
  },
}

async function admit({ host, state }: PodContext): Promise<void> {
  state.isAdmitted = true
  const rejection = await host.admission.admit(state.pod)
  if (rejection === undefined) return host.allocations.set(uidOf(state), state.resize.allocation)
  const { verdict, event } = refusalOf(rejection)
  state.isRejected = true
  state.verdict = verdict
  host.recordEvent(state.pod, event)
}

/** Mounted content follows the API while containers run. */
async function mountVolumes(
  { host, state, signal }: PodContext,
  { isOptional = false }: { readonly isOptional?: boolean },
): Promise<boolean> {
  const mounted = await host.volumes.mount(state.pod, signal)
  if ('mounts' in mounted) {
    state.volumes = mounted.mounts
    state.mountFailures = 0
    return true
  }
  state.mountFailures++
  for (const message of mounted.failures)
    host.recordEvent(state.pod, { type: 'Warning', reason: 'FailedMount', message })
  return isOptional
}

async function attempt(work: Promise<unknown>, failed: (error: unknown) => void): Promise<boolean> {
  try {
    await work
    return true
  } catch (error) {
    failed(error)
    return false
  }
}
