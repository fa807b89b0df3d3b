/**
 * Runs one attack in a separate process with the lowest priority, so that it does not disturb the measuring client. Its
 * command line selects the attack.
 */
import { setPriority } from 'node:os'

import type { Target } from '../program.ts'
import { Tally } from './attack.ts'
import { ATTACKS } from './attacks.ts'

export interface OffenderSettings {
  readonly attack: string
  readonly target: Target
  readonly scale: number
  readonly durationMs: number
}

/** The report at its end. */
export type OffenderReport = Pick<Tally, 'sent' | 'cut' | 'statuses'>

setPriority(10)
const { attack, target, scale, durationMs } = JSON.parse(process.argv[2] ?? '{}') as OffenderSettings
const stop = new AbortController()
const tally = new Tally()
process.on('disconnect', () => process.exit(1))
setTimeout(() => stop.abort(), durationMs)
await ATTACKS[attack]?.run({ target, signal: stop.signal, tally, scale })
const { sent, cut, statuses } = tally
process.send?.({ sent, cut, statuses } satisfies OffenderReport, () => process.exit(0))
