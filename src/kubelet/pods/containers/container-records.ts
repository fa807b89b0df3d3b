/** Keeps the container records of one pod in sync with the runtime. */
import { CONTAINER_STATE } from '#cri/codes.ts'
import { hasStatus } from '#lib/grpc/status.ts'

import { type ContainerRecord, idOf, isRunning, type RunEnd, TYPES } from '../../pod/container-runs.ts'
import { moveToOldSandbox } from '../../pod/sandbox-change.ts'
import type { PodContext } from '../pod-context.ts'
import { uidOf } from '../pod-state.ts'
import { markLost, observe } from './observation.ts'
import { readTerminationMessage } from './termination-message.ts'

const LOST = 'The container could not be located when the pod was deleted.  The container used to be Running'

/** Updates all records from the last relist. */
export async function observeContainers(context: PodContext): Promise<void> {
  const { host, state } = context
  const { pleg, clock } = host
  const { containers } = pleg.of(uidOf(state))
  for (const { id, state: containerState, metadata, podSandboxId } of containers) {
    const record = state.records.find(({ spec }) => spec.name === metadata?.name)
    if (record === undefined) continue
    // A container that was removed since the last relist is handled by the next one.
    if (state.observed.get(id) !== containerState) await observeContainer(context, record, id)
    const isOfOldSandbox = state.sandbox !== undefined && podSandboxId !== state.sandbox.id
    if (isOfOldSandbox && idOf(record) === id && !isRunning(record)) moveToOldSandbox(state.pod.spec, record)
  }
  const present = new Set(containers.map(({ id }) => id))
  for (const record of state.records) {
    const id = idOf(record)
    if (id === undefined || present.has(id) || pleg.rounds <= (state.listedFrom.get(id) ?? 0)) continue
    markLost(record, LOST, clock.now())
  }
}

/** Returns false if the runtime does not know the container. */
async function observeContainer(context: PodContext, record: ContainerRecord, id: string): Promise<boolean> {
  const { host, state } = context
  const { runtime, files, pleg } = host
  const { status } = await runtime.containerStatus({ containerId: id }).catch((error: unknown) => {
    if (!hasStatus(error, 'notFound')) throw error
    return { status: undefined }
  })
  if (status === undefined) return false
  state.observed.set(id, status.state)
  const terminationMessage =
    status.state === CONTAINER_STATE.exited ? await readTerminationMessage(files, status, state.records.length) : ''
  const wasRunning = isRunning(record)
  observe(record, status, `${pleg.runtimeName}://${id}`, terminationMessage)
  const { end } = record.run ?? {}
  if (wasRunning && end !== undefined) countEnd(context, record, end)
  return true
}

function countEnd({ host, startup }: PodContext, { role, run }: ContainerRecord, end: RunEnd): void {
  const { exitCode, reason, finishedMs } = end
  const ends = host.meters.family('kubelet_terminated_containers_total')
  ends.labels(TYPES[role], String(exitCode), reason).inc()
  if (role === 'init' && run !== undefined) startup.initialised(finishedMs - run.startedMs)
}

/** For a container that was just stopped. If the runtime no longer has it, its exit code is unknown. */
export async function observeStopped(context: PodContext, record: ContainerRecord, id: string): Promise<void> {
  if (!(await observeContainer(context, record, id))) markLost(record, LOST, context.host.clock.now())
}

/** For a container that was just started. */
export async function observeStarted(context: PodContext, record: ContainerRecord, id: string): Promise<void> {
  context.state.listedFrom.set(id, context.host.pleg.rounds + 1)
  await observeContainer(context, record, id)
}

/** Removes dead containers except the newest, which keeps its log. */
export async function removeDeadContainers({ host, state }: PodContext, record: ContainerRecord): Promise<void> {
  const { runtime, pleg } = host
  const kept = [record.run, record.lastRun].flatMap((run) => (run === undefined ? [] : (idOf({ run }) ?? [])))
  for (const { id, metadata, state: containerState } of pleg.of(uidOf(state)).containers) {
    if (metadata?.name !== record.spec.name || kept.includes(id) || containerState === CONTAINER_STATE.running) continue
    await runtime.removeContainer({ containerId: id }).catch(() => undefined)
    state.observed.delete(id)
    state.listedFrom.delete(id)
  }
}

/** Removes all containers of the record from the runtime. */
export async function removeContainers({ host, state }: PodContext, record: ContainerRecord): Promise<void> {
  const { runtime, pleg } = host
  const listed = pleg.of(uidOf(state)).containers.filter(({ metadata }) => metadata?.name === record.spec.name)
  const newest = idOf(record)
  for (const id of new Set([...listed.map((one) => one.id), ...(newest === undefined ? [] : [newest])])) {
    await runtime.removeContainer({ containerId: id })
  }
}
