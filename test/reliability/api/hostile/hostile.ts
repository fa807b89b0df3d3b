/**
 * Runs the real program under one attack after another, while a well-behaved client measures its own requests. The
 * server stays up, other clients get fast responses, memory stays bounded, and attackers are disconnected. `node
 * test/reliability/main.ts hostile --attack all --seconds 20`
 */
import { type ChildProcess, fork } from 'node:child_process'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'

import { pause } from '../../pause.ts'
import { allowUser, ApiProgram } from '../program.ts'
import type { Attack } from './attack.ts'
import { ATTACKS } from './attacks.ts'
import type { OffenderReport, OffenderSettings } from './offender.ts'
import { type Latency, type Operation, OPERATIONS, Witness } from './witness.ts'

const OFFENDER = fileURLToPath(new URL('offender.ts', import.meta.url))

/** The maximum duration of other clients' requests, for 99 of 100. */
export const P99_LIMIT_MS = 250
/** The limit of the server's memory under any attack, including the 50,000 objects of the lists. */
export const MEMORY_LIMIT_MB = 1024

export interface SiegeOptions {
  readonly attacks: readonly string[]
  readonly durationMs: number
  readonly scale: number
  readonly datastore: string
  /** Called after each attack. */
  readonly progress?: (phase: Phase) => void
}

export interface Phase {
  readonly attack: string
  readonly durationMs: number
  readonly latency: Readonly<Record<Operation, Latency>>
  readonly heldMs: number
  readonly residentMb: number
  readonly offender: OffenderReport
  readonly load: number
  readonly problems: readonly string[]
}

/** Time for the server to come to rest after an attack. */
const REST_MS = 1500

export async function besiege(options: SiegeOptions): Promise<Phase[]> {
  const program = await ApiProgram.create({ datastore: options.datastore })
  const witness = new Witness(program.target)
  const phases: Phase[] = []
  try {
    await program.start()
    await allowUser(program.target)
    await witness.start()
    for (const name of ['none', ...options.attacks]) {
      const phase = await runPhase(name, { program, witness, options })
      phases.push(phase)
      options.progress?.(phase)
      if (!program.isRunning) break
    }
    return phases
  } finally {
    await witness.stop()
    await program.close()
  }
}

interface Siege {
  readonly program: ApiProgram
  readonly witness: Witness
  readonly options: SiegeOptions
}

async function runPhase(name: string, { program, witness, options }: Siege): Promise<Phase> {
  const attack = ATTACKS[name]
  const { scale } = options
  await attack?.prepare?.(program.target, scale)
  await pause(REST_MS)
  program.samples = []
  witness.take()
  const failedBefore = witness.failures.length
  program.takeComplaint()
  const durationMs = Math.max(options.durationMs, scale === 1 ? (attack?.minMs ?? 0) : 0)
  const offender = await runOffender({ attack: name, target: program.target, scale, durationMs })
  const latency = witness.take()
  const { samples } = program
  const phase = {
    attack: name,
    durationMs,
    latency,
    heldMs: Math.max(0, ...samples.map(({ heldMs }) => heldMs)),
    residentMb: Math.max(0, ...samples.map(({ residentBytes }) => residentBytes)) / 2 ** 20,
    offender,
    load: loadavg()[0] ?? 0,
  }
  const said = program.takeComplaint()
  const failures = witness.failures.slice(failedBefore)
  return {
    ...phase,
    problems: problemsOf(phase, {
      attack,
      scale,
      said,
      output: program.output,
      failures,
      isRunning: program.isRunning,
    }),
  }
}

interface Evidence {
  readonly attack: Attack | undefined
  readonly scale: number
  readonly said: string | undefined
  readonly output: string
  readonly failures: readonly string[]
  readonly isRunning: boolean
}

function problemsOf(
  { latency, residentMb, offender, durationMs }: Omit<Phase, 'problems'>,
  { attack, scale, said, output, failures, isRunning }: Evidence,
): string[] {
  const problems: string[] = []
  if (!isRunning) problems.push(`the server ended: ${output.slice(-2000)}`)
  if (said !== undefined) problems.push(`the server said: ${said}`)
  for (const operation of OPERATIONS) {
    const { p99Ms } = latency[operation]
    // A short form is not for measuring: other tests use the machine too.
    if (scale === 1 && p99Ms > P99_LIMIT_MS) problems.push(`${operation} took ${p99Ms.toFixed(0)} ms at p99`)
  }
  if (residentMb > MEMORY_LIMIT_MB) problems.push(`${residentMb.toFixed(0)} MB in memory`)
  if (failures.length > 0) problems.push(`${failures.length} requests of others failed: ${failures[0]}`)
  const mayExpectCut = attack?.isCut === true && scale === 1 && durationMs >= (attack.minMs ?? 0)
  if (mayExpectCut && offender.cut === 0) problems.push('the offender was never cut off')
  return problems
}

function runOffender(settings: OffenderSettings): Promise<OffenderReport> {
  const nothing = { sent: 0, cut: 0, statuses: {} }
  if (ATTACKS[settings.attack] === undefined) return pause(settings.durationMs).then(() => nothing)
  return new Promise((resolve, reject) => {
    const child: ChildProcess = fork(OFFENDER, [JSON.stringify(settings)], { execArgv: [] })
    let report: OffenderReport = nothing
    child.on('message', (message) => (report = message as OffenderReport))
    child.on('error', reject)
    child.on('exit', (code) => (code === 0 ? resolve(report) : reject(new Error(`The offender ended with ${code}`))))
    // One that does not stop by itself is stopped.
    const timer = setTimeout(() => child.kill('SIGKILL'), settings.durationMs + 30_000)
    timer.unref()
  })
}

const COLUMNS = [
  'attack',
  's',
  'load',
  ...OPERATIONS.map((operation) => `${operation} p50/p99/max`),
  'held',
  'MB',
  'sent',
  'cut',
  'answers',
] as const

/** A row of the table people read. */
export function phaseRow(phase: Phase): string {
  const took = OPERATIONS.map((operation) => {
    const { p50Ms, p99Ms, maxMs } = phase.latency[operation]
    return `${p50Ms.toFixed(0)}/${p99Ms.toFixed(0)}/${maxMs.toFixed(0)}`
  })
  const { sent, cut, statuses } = phase.offender
  const answers = Object.entries(statuses).map(([status, count]) => `${status}×${count}`)
  const numbers = [phase.heldMs.toFixed(0), phase.residentMb.toFixed(0), sent, cut, answers.join(' ')]
  return `| ${[phase.attack, (phase.durationMs / 1000).toFixed(0), phase.load.toFixed(1), ...took, ...numbers].join(' | ')} |`
}

export function tableHead(): string {
  return `| ${COLUMNS.join(' | ')} |\n|${'---|'.repeat(COLUMNS.length)}`
}
