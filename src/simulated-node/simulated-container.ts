/**
 * One simulated container. Its times are computed in advance: pull, start, results of probes, end. Between them no work
 * happens.
 */
import type { Pod, Probe } from '#apis/core/v1.ts'
import { type ContainerRecord, isRunning, recordsOf, type Role, type RunEnd } from '#kubelet/pod/container-runs.ts'
import { probeKills, type ProbeKind, unhealthy } from '#kubelet/pod/events.ts'
import type { EventSpec } from '#kubelet/pod/events.ts'
import { afterProbe, firstProbe, periodMsOf, type ProbeState } from '#kubelet/pod/probe.ts'
import { controllerOf } from '#meta/object.ts'

import type { Behavior } from './fault.ts'
import { readScript, type Script } from './script.ts'

export interface SimulatedContainer extends ContainerRecord {
  /** When its image is pulled and it starts; set during the pull. */
  startsMs?: number | undefined
  /** The last failed pull and its error. */
  failedPull?: { readonly atMs: number; readonly error: string } | undefined
  /** The missing part of its environment. */
  configError?: string | undefined
  /** The behavior of the newest run. */
  runPlan?: RunPlan
  probes?: Map<ProbeKind, ProbeState> | undefined
  /** When it ends because it was stopped, and its exit code. */
  stop?: { readonly atMs: number; readonly exitCode: number } | undefined
}

/** Behavior of one run; times count from its start. */
export interface RunPlan extends Pick<Behavior, 'readyMs' | 'unhealthyMs' | 'log'> {
  /** Infinity: until it is stopped. */
  readonly runMs: number
  readonly exitCode: number
  readonly reason: string
  /** Exit code when it is stopped; 0 for a server. */
  readonly stoppedCode: number
  readonly script?: Script | undefined
}

/** Duration of a Job's pod whose command does not tell. */
const WORK_MS = 1000
const SIGTERM_CODE = 143
const SIGKILL_CODE = 137

export function simulatedContainers(pod: Pick<Pod, 'spec'>): SimulatedContainer[] {
  return recordsOf(pod.spec)
}

export function planRun(
  pod: Pick<Pod, 'metadata' | 'spec'>,
  { spec, role }: Pick<ContainerRecord, 'spec' | 'role'>,
  behavior: Behavior,
): RunPlan {
  const script = readScript(spec.command, spec.args)
  const isServer = pod.spec.restartPolicy === 'Always' && script === undefined
  const rest = { ...behavior, script, stoppedCode: isServer ? 0 : SIGTERM_CODE }
  const [runMs, exitCode] = endOf(pod, role, behavior, script)
  const reason = behavior.oomMs !== undefined ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error'
  return { ...rest, runMs, exitCode, reason }
}

/** The duration of the run and its exit code. */
function endOf(
  pod: Pick<Pod, 'metadata'>,
  role: Role,
  { oomMs, runMs, exitCode }: Behavior,
  script: Script | undefined,
): [runMs: number, exitCode: number] {
  if (oomMs !== undefined) return [oomMs, SIGKILL_CODE]
  const scriptMs = script === undefined || script.runMs === Infinity ? 0 : script.runMs
  if (runMs !== undefined || exitCode !== undefined) return [runMs ?? scriptMs, exitCode ?? 0]
  if (script !== undefined) return [script.runMs, script.exitCode]
  if (role === 'init') return [0, 0]
  return [role === 'main' && controllerOf(pod)?.kind === 'Job' ? WORK_MS : Infinity, 0]
}

/** Starts a run. */
export function begin(container: SimulatedContainer, id: string, runPlan: RunPlan, nowMs: number): void {
  if (container.run !== undefined) {
    container.lastRun = container.run
    container.restartCount++
  }
  container.run = { id, startedMs: nowMs }
  container.startsMs = undefined
  container.failedPull = undefined
  container.waiting = undefined
  container.stop = undefined
  container.runPlan = runPlan
  const { startupProbe } = container.spec
  container.isStarted = startupProbe === undefined && container.role !== 'ephemeral'
  container.isReady = container.isStarted && isReadyUnprobed(container, nowMs)
  container.probes =
    startupProbe === undefined ? probesAfterStart(container) : new Map([['Startup', firstProbe(startupProbe, nowMs)]])
}

function isReadyUnprobed({ spec, runPlan, run }: SimulatedContainer, nowMs: number): boolean {
  return spec.readinessProbe === undefined && nowMs >= (run?.startedMs ?? 0) + (runPlan?.readyMs ?? 0)
}

function probesAfterStart({ spec, run, probes }: SimulatedContainer): Map<ProbeKind, ProbeState> {
  const startedMs = run?.startedMs ?? 0
  const states = new Map<ProbeKind, ProbeState>()
  // Probes that were due during the startup run now.
  const notBeforeMs = probes?.get('Startup')?.nextMs ?? 0
  for (const [kind, probe] of [
    ['Readiness', spec.readinessProbe] as const,
    ['Liveness', spec.livenessProbe] as const,
  ]) {
    if (probe === undefined) continue
    const first = firstProbe(probe, startedMs)
    states.set(kind, { ...first, nextMs: Math.max(first.nextMs, notBeforeMs) })
  }
  return states
}

/** Advances to `nowMs` and returns the events; undefined when nothing has happened. */
export function advance(container: SimulatedContainer, nowMs: number): EventSpec[] | undefined {
  const { run, runPlan } = container
  if (run === undefined || run.end !== undefined || runPlan === undefined) return undefined
  const endMs = run.startedMs + runPlan.runMs
  if (container.stop !== undefined && container.stop.atMs <= nowMs && container.stop.atMs <= endMs) {
    const { atMs, exitCode } = container.stop
    return end(container, { finishedMs: atMs, exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' })
  }
  if (endMs <= nowMs) return end(container, { finishedMs: endMs, exitCode: runPlan.exitCode, reason: runPlan.reason })
  const events = advanceProbes(container, nowMs)
  if (events !== undefined) return events
  if (!container.isReady && container.isStarted && isReadyUnprobed(container, nowMs)) {
    container.isReady = true
    return []
  }
  return undefined
}

export function end(container: SimulatedContainer, how: RunEnd): EventSpec[] {
  if (container.run !== undefined) container.run.end = how
  container.isStarted = false
  container.isReady = false
  container.probes = undefined
  container.stop = undefined
  return []
}

function advanceProbes(container: SimulatedContainer, nowMs: number): EventSpec[] | undefined {
  for (const [kind, state] of container.probes ?? []) if (state.nextMs <= nowMs) return probeNow(container, kind, state)
  return undefined
}

const PROBES: Readonly<Record<ProbeKind, 'livenessProbe' | 'readinessProbe' | 'startupProbe'>> = {
  Liveness: 'livenessProbe',
  Readiness: 'readinessProbe',
  Startup: 'startupProbe',
}

function probeNow(container: SimulatedContainer, kind: ProbeKind, state: ProbeState): EventSpec[] {
  const probe = container.spec[PROBES[kind]] as Probe
  const isFine = passesProbes(container, state.nextMs)
  const next = afterProbe(probe, state, isFine)
  const { verdict } = next
  const events = isFine ? [] : [unhealthy(kind, failureText(container, probe))]
  container.probes?.set(
    kind,
    isFine && verdict === true ? { ...next, nextMs: nextFailureMs(container, probe, next.nextMs) } : next,
  )
  if (kind === 'Readiness') container.isReady = verdict === true
  else if (kind === 'Startup' && verdict === true) {
    container.isStarted = true
    container.probes = probesAfterStart({ ...container, probes: new Map([['Startup', state]]) })
    container.isReady = isReadyUnprobed(container, state.nextMs)
  } else if (verdict === false) {
    events.push(probeKills(container.spec.name, kind))
    end(container, {
      finishedMs: state.nextMs,
      exitCode: container.runPlan?.stoppedCode ?? SIGTERM_CODE,
      reason: 'Error',
    })
  }
  return events
}

function passesProbes({ run, runPlan }: SimulatedContainer, atMs: number): boolean {
  const sinceMs = atMs - (run?.startedMs ?? 0)
  return sinceMs >= (runPlan?.readyMs ?? 0) && sinceMs < (runPlan?.unhealthyMs ?? Infinity)
}

/** Skips probes whose result is known, up to the next failure. */
function nextFailureMs({ run, runPlan }: SimulatedContainer, probe: Probe, nextMs: number): number {
  const failsMs = (run?.startedMs ?? 0) + (runPlan?.unhealthyMs ?? Infinity)
  if (failsMs === Infinity || failsMs <= nextMs) return failsMs === Infinity ? Infinity : nextMs
  const periodMs = periodMsOf(probe)
  return nextMs + Math.ceil((failsMs - nextMs) / periodMs) * periodMs
}

/** The error of a server that does not answer. */
function failureText({ spec }: SimulatedContainer, { httpGet, tcpSocket, grpc, timeoutSeconds = 1 }: Probe): string {
  if (httpGet !== undefined) return 'HTTP probe failed with statuscode: 503'
  if (tcpSocket !== undefined) return `dial tcp: ${portText(spec, tcpSocket.port)}: connect: connection refused`
  if (grpc === undefined) return ''
  return `timeout: failed to connect service ":${grpc.port}" within ${timeoutSeconds}s: context deadline exceeded`
}

function portText({ ports = [] }: SimulatedContainer['spec'], port: number | string): string {
  return `:${ports.find(({ name }) => name === port)?.containerPort ?? port}`
}

/** Stops the container within its grace period; a slower one is killed. */
export function stopContainer(container: SimulatedContainer, graceMs: number, stopMs: number, nowMs: number): void {
  if (!isRunning(container)) return
  const isLate = stopMs > graceMs
  const exitCode = isLate ? SIGKILL_CODE : (container.runPlan?.stoppedCode ?? SIGTERM_CODE)
  container.stop = { atMs: nowMs + Math.min(stopMs, graceMs), exitCode }
}

/** Time of the next change. */
export function dueMsOf({
  run,
  runPlan,
  isStarted,
  isReady,
  spec,
  probes,
  startsMs,
  stop,
}: SimulatedContainer): number {
  if (startsMs !== undefined) return startsMs
  if (run === undefined || run.end !== undefined || runPlan === undefined) return Infinity
  const dues = [run.startedMs + runPlan.runMs, stop?.atMs ?? Infinity]
  for (const { nextMs } of probes?.values() ?? []) dues.push(nextMs)
  if (isStarted && !isReady && spec.readinessProbe === undefined) dues.push(run.startedMs + (runPlan.readyMs ?? 0))
  return Math.min(...dues)
}
