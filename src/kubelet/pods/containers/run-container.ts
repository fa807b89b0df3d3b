/** Runs one container: respects its back-off, starts it and runs its postStart hook. */
import { isBackingOff, nextBackOff, setCrashLoopBackOff } from '../../pod/back-off.ts'
import { type ContainerRecord, fieldPathOf, lastEndOf, TYPES } from '../../pod/container-runs.ts'
import { crashBackOff, failed, podText } from '../../pod/events.ts'
import type { PodContext } from '../pod-context.ts'
import { targetOf } from '../pod-probes.ts'
import { publishIps, type Sandbox } from '../pod-state.ts'
import { StartError } from '../start-error.ts'
import { observeStarted, removeDeadContainers } from './container-records.ts'
import { startContainer, type StartContext } from './container-starter.ts'
import { stopContainer } from './container-stopper.ts'
import { runHook } from './hooks.ts'

/** After an error the records may be outdated. */
export async function runContainer(
  context: PodContext,
  record: ContainerRecord,
): Promise<'running' | 'backing-off' | StartError> {
  const { host, state } = context
  const ended = lastEndOf(record)
  if (state.sandbox === undefined || (ended !== undefined && !mayRestart(context, record))) return 'backing-off'
  const { resources } = record.spec
  const type = TYPES[record.role]
  host.meters.family('kubelet_started_containers_total').labels(type).inc()
  try {
    const id = await startContainer(host, startContextOf(context, state.sandbox), record)
    if (resources !== undefined) record.actual = resources
    if (ended !== undefined)
      record.restarts = nextBackOff(record.restarts, ended.finishedMs, host.clock.now(), host.facts.maxRestartMs)
    await observeStarted(context, record, id)
    publishIps(state)
    await runPostStart(context, record, id)
    await removeDeadContainers(context, record)
    return 'running'
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    host.meters.family('kubelet_started_containers_errors_total').labels(type, error.reason).inc()
    const { eventText } = error
    if (eventText !== undefined) host.recordEvent(state.pod, failed(eventText), fieldPathOf(record))
    return error
  }
}

function startContextOf({ state, signal, startup }: PodContext, { id, config, ips }: Sandbox): StartContext {
  const { pod, records, volumes } = state
  const onPulled: StartContext['onPulled'] = (span) => startup.pulled(span)
  return { pod, records, sandboxId: id, sandboxConfig: config, podIps: ips, volumes, signal, onPulled }
}

async function runPostStart(context: PodContext, record: ContainerRecord, id: string): Promise<void> {
  const { host, state, signal } = context
  const { postStart } = record.spec.lifecycle ?? {}
  if (postStart === undefined) return
  try {
    await runHook(host, postStart, targetOf(host, state, record, id), { signal })
  } catch (error) {
    if (signal.aborted) throw error
    const message = 'PostStartHook failed'
    host.recordEvent(state.pod, { type: 'Warning', reason: 'FailedPostStartHook', message }, fieldPathOf(record))
    const why = { type: 'Normal', reason: 'Killing', message: 'FailedPostStartHook' } as const
    await stopContainer(context, { record, why })
    throw new StartError('PostStartHookError', message)
  }
}

function mayRestart({ host, state }: PodContext, record: ContainerRecord): boolean {
  const nowMs = host.clock.now()
  if (!isBackingOff(record, nowMs)) return true
  const text = podText(state.pod)
  if (setCrashLoopBackOff(record, text, nowMs))
    host.recordEvent(state.pod, crashBackOff(record.spec.name, text), fieldPathOf(record))
  return false
}
