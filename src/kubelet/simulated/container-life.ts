/**
 * One container that nobody runs: it is pulled, starts, passes its probes or does not, and ends, each when its time has
 * come. Nothing happens in between, so nobody has to look.
 */
import type { Pod, Probe } from '#apis/core/v1.ts'
import { controllerOf } from '#meta/object.ts'

import { type ContainerRecord, isRunning, recordsOf, type Role, type RunEnd } from '../container-runs.ts'
import { type ProbeKind, probeKills, unhealthy } from '../kubelet-notes.ts'
import type { Note } from '../kubelet-notes.ts'
import { afterProbe, firstProbe, periodMsOf, type ProbeState } from '../probe.ts'
import type { Wishes } from './fault.ts'
import { readScript, type Script } from './script.ts'

export interface ContainerLife extends ContainerRecord {
  /** When its image is there and it starts; set while it is pulled. */
  startsMs?: number | undefined
  /** When a pull was last tried in vain, and what it said. */
  failedPull?: { readonly atMs: number; readonly error: string } | undefined
  /** What its environment lacks. */
  configError?: string | undefined
  /** Of the newest run. */
  conduct?: Conduct
  probes?: Map<ProbeKind, ProbeState> | undefined
  /** When it ends because it was told to, and how. */
  stop?: { readonly atMs: number; readonly exitCode: number } | undefined
}

/** What it does, counted from its start. */
export interface Conduct extends Pick<Wishes, 'readyMs' | 'unhealthyMs' | 'log'> {
  /** Infinity: until it is stopped. */
  readonly runMs: number
  readonly exitCode: number
  readonly reason: string
  /** What it does when it is stopped; a server ends well. */
  readonly stoppedCode: number
  readonly script?: Script | undefined
}

/** A pod of a Job whose command says nothing of when it is done. */
const WORK_MS = 1000
const SIGTERM_CODE = 143
const SIGKILL_CODE = 137

export function livesOf(pod: Pick<Pod, 'spec'>): ContainerLife[] {
  return recordsOf(pod.spec)
}

export function conductOf(
  pod: Pick<Pod, 'metadata' | 'spec'>,
  { spec, role }: Pick<ContainerRecord, 'spec' | 'role'>,
  wishes: Wishes,
): Conduct {
  const script = readScript(spec.command, spec.args)
  const isServer = pod.spec.restartPolicy === 'Always' && script === undefined
  const rest = { ...wishes, script, stoppedCode: isServer ? 0 : SIGTERM_CODE }
  const [runMs, exitCode] = endOf(pod, role, wishes, script)
  const reason = wishes.oomMs !== undefined ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error'
  return { ...rest, runMs, exitCode, reason }
}

/** After how long it ends, and with which code. */
function endOf(
  pod: Pick<Pod, 'metadata'>,
  role: Role,
  { oomMs, runMs, exitCode }: Wishes,
  script: Script | undefined,
): [runMs: number, exitCode: number] {
  if (oomMs !== undefined) return [oomMs, SIGKILL_CODE]
  const told = script === undefined || script.runMs === Infinity ? 0 : script.runMs
  if (runMs !== undefined || exitCode !== undefined) return [runMs ?? told, exitCode ?? 0]
  if (script !== undefined) return [script.runMs, script.exitCode]
  if (role === 'init') return [0, 0]
  return [role === 'main' && controllerOf(pod)?.kind === 'Job' ? WORK_MS : Infinity, 0]
}

/** The run begins. */
export function begin(life: ContainerLife, id: string, conduct: Conduct, nowMs: number): void {
  if (life.run !== undefined) {
    life.lastRun = life.run
    life.restartCount++
  }
  life.run = { id, startedMs: nowMs }
  life.startsMs = undefined
  life.failedPull = undefined
  life.waiting = undefined
  life.stop = undefined
  life.conduct = conduct
  const { startupProbe } = life.spec
  life.isStarted = startupProbe === undefined && life.role !== 'ephemeral'
  life.isReady = life.isStarted && isReadyUnprobed(life, nowMs)
  life.probes =
    startupProbe === undefined ? probesAfterStart(life) : new Map([['Startup', firstProbe(startupProbe, nowMs)]])
}

function isReadyUnprobed({ spec, conduct, run }: ContainerLife, nowMs: number): boolean {
  return spec.readinessProbe === undefined && nowMs >= (run?.startedMs ?? 0) + (conduct?.readyMs ?? 0)
}

function probesAfterStart({ spec, run, probes }: ContainerLife): Map<ProbeKind, ProbeState> {
  const startedMs = run?.startedMs ?? 0
  const states = new Map<ProbeKind, ProbeState>()
  // What should have come while the container was starting comes now.
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

/** What has happened by now, as events; the container is as it is then. Undefined when nothing has. */
export function advance(life: ContainerLife, nowMs: number): Note[] | undefined {
  const { run, conduct } = life
  if (run === undefined || run.end !== undefined || conduct === undefined) return undefined
  const endMs = run.startedMs + conduct.runMs
  if (life.stop !== undefined && life.stop.atMs <= nowMs && life.stop.atMs <= endMs) {
    const { atMs, exitCode } = life.stop
    return end(life, { finishedMs: atMs, exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' })
  }
  if (endMs <= nowMs) return end(life, { finishedMs: endMs, exitCode: conduct.exitCode, reason: conduct.reason })
  const notes = advanceProbes(life, nowMs)
  if (notes !== undefined) return notes
  if (!life.isReady && life.isStarted && isReadyUnprobed(life, nowMs)) {
    life.isReady = true
    return []
  }
  return undefined
}

export function end(life: ContainerLife, how: RunEnd): Note[] {
  if (life.run !== undefined) life.run.end = how
  life.isStarted = false
  life.isReady = false
  life.probes = undefined
  life.stop = undefined
  return []
}

function advanceProbes(life: ContainerLife, nowMs: number): Note[] | undefined {
  for (const [kind, state] of life.probes ?? []) if (state.nextMs <= nowMs) return probeNow(life, kind, state)
  return undefined
}

const PROBES: Readonly<Record<ProbeKind, 'livenessProbe' | 'readinessProbe' | 'startupProbe'>> = {
  Liveness: 'livenessProbe',
  Readiness: 'readinessProbe',
  Startup: 'startupProbe',
}

function probeNow(life: ContainerLife, kind: ProbeKind, state: ProbeState): Note[] {
  const probe = life.spec[PROBES[kind]] as Probe
  const isFine = answers(life, state.nextMs)
  const next = afterProbe(probe, state, isFine)
  const { verdict } = next
  const notes = isFine ? [] : [unhealthy(kind, failureText(life, probe))]
  life.probes?.set(
    kind,
    isFine && verdict === true ? { ...next, nextMs: nextFailureMs(life, probe, next.nextMs) } : next,
  )
  if (kind === 'Readiness') life.isReady = verdict === true
  else if (kind === 'Startup' && verdict === true) {
    life.isStarted = true
    life.probes = probesAfterStart({ ...life, probes: new Map([['Startup', state]]) })
    life.isReady = isReadyUnprobed(life, state.nextMs)
  } else if (verdict === false) {
    notes.push(probeKills(life.spec.name, kind))
    end(life, { finishedMs: state.nextMs, exitCode: life.conduct?.stoppedCode ?? SIGTERM_CODE, reason: 'Error' })
  }
  return notes
}

function answers({ run, conduct }: ContainerLife, atMs: number): boolean {
  const sinceMs = atMs - (run?.startedMs ?? 0)
  return sinceMs >= (conduct?.readyMs ?? 0) && sinceMs < (conduct?.unhealthyMs ?? Infinity)
}

/** Nobody asks in between: the answers are known. */
function nextFailureMs({ run, conduct }: ContainerLife, probe: Probe, nextMs: number): number {
  const failsMs = (run?.startedMs ?? 0) + (conduct?.unhealthyMs ?? Infinity)
  if (failsMs === Infinity || failsMs <= nextMs) return failsMs === Infinity ? Infinity : nextMs
  const periodMs = periodMsOf(probe)
  return nextMs + Math.ceil((failsMs - nextMs) / periodMs) * periodMs
}

/** As a server that answers nobody. */
function failureText({ spec }: ContainerLife, { httpGet, tcpSocket, grpc, timeoutSeconds = 1 }: Probe): string {
  if (httpGet !== undefined) return 'HTTP probe failed with statuscode: 503'
  if (tcpSocket !== undefined) return `dial tcp: ${portText(spec, tcpSocket.port)}: connect: connection refused`
  if (grpc === undefined) return ''
  return `timeout: failed to connect service ":${grpc.port}" within ${timeoutSeconds}s: context deadline exceeded`
}

function portText({ ports = [] }: ContainerLife['spec'], port: number | string): string {
  return `:${ports.find(({ name }) => name === port)?.containerPort ?? port}`
}

/** Tells it to end within its grace. Whoever takes longer is killed. */
export function tellToStop(life: ContainerLife, graceMs: number, stopMs: number, nowMs: number): void {
  if (!isRunning(life)) return
  const isLate = stopMs > graceMs
  const exitCode = isLate ? SIGKILL_CODE : (life.conduct?.stoppedCode ?? SIGTERM_CODE)
  life.stop = { atMs: nowMs + Math.min(stopMs, graceMs), exitCode }
}

/** When something happens to it next. */
export function dueMsOf({ run, conduct, isStarted, isReady, spec, probes, startsMs, stop }: ContainerLife): number {
  if (startsMs !== undefined) return startsMs
  if (run === undefined || run.end !== undefined || conduct === undefined) return Infinity
  const dues = [run.startedMs + conduct.runMs, stop?.atMs ?? Infinity]
  for (const { nextMs } of probes?.values() ?? []) dues.push(nextMs)
  if (isStarted && !isReady && spec.readinessProbe === undefined) dues.push(run.startedMs + (conduct.readyMs ?? 0))
  return Math.min(...dues)
}
